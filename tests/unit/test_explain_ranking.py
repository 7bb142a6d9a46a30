"""Tests of the order of mechanisms: by how much the stacks differ in their evidence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests import made
from tests.unit.explained import MIB, SYNCED, by_mechanism, cell, seen, written

from fslab.api import explanations
from fslab.cli import explain
from fslab.errors import UsageError
from fslab.explain import ranking
from fslab.explain.evidence import Certainty, Evidence, Explanation
from fslab.explain.mechanisms import statements_of
from fslab.trial_record import Provenance, RunPart, Severity, ValidityWarning, Value
from fslab.units import Unit


def ranked(
    monkeypatch: pytest.MonkeyPatch, stacks: list[Evidence], *found: tuple[str, str, float]
) -> list[ranking.RankedMechanism]:
    """Rank statements, given as mechanism, stack and weight."""
    same: dict[str, Any] = {"workload": "w", "text": "", "certainty": Certainty.OBSERVED, "refuted_by": "r"}
    statements = [
        Explanation(mechanism=mechanism, stack=stack, figures=(), weight=weight, **same)
        for mechanism, stack, weight in found
    ]
    monkeypatch.setattr("fslab.explain.mechanisms.all_statements", lambda _: iter(statements))
    return ranking.ranking(stacks)


def test_mechanisms_are_ranked_by_their_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ("journal", "a", 1.0), ("barriers", "a", 4.0), ("journal", "b", 3.0), ("atime", "b", 1.0)
    told = ranked(monkeypatch, [], *found)
    assert [(each.mechanism, each.weight) for each in told] == [("barriers", 4), ("journal", 3), ("atime", 1)]
    assert told[1].cells == ("w on a", "w on b")
    assert told[1].strongest.stack == "b"


def test_what_all_stacks_have_alike_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = [seen(cell(name), {}) for name in ("ext4", "btrfs")]
    a, b = (each.stack for each in stacks)
    found = ("page-cache", a, 4.0), ("page-cache", b, 4.0), ("barriers", b, 2.0), ("journal", a, 0.0)
    contrasts = [(each.mechanism, each.contrast) for each in ranked(monkeypatch, stacks, *found)]
    assert contrasts == [("barriers", 2.0), ("page-cache", 0.0), ("journal", 0.0)]
    near = ("disk-time", a, 3.3), ("disk-time", b, 3.1), ("read-amplification", b, 0.14)
    assert [each.mechanism for each in ranked(monkeypatch, stacks, *near)] == [
        "read-amplification",
        "disk-time",
    ]
    alone = ranked(monkeypatch, stacks[:1], *found)
    assert alone[0].contrast == 4.0, "of one stack, nothing is known to compare"


def timed(name: str, seconds: float, iops: float, **figures: float) -> Evidence:
    """Return the evidence of a run of so many seconds, at this rate."""
    return seen(cell("ext4", name=name), figures, metrics=made.iops(iops), **run_of(seconds))


def test_a_disk_counts_by_the_time_that_it_takes_for_the_same_work() -> None:
    """Both disks are busy all the time: the one that takes twice the time does half as much in it."""
    disks = [
        timed(name, 10, iops, disk_service_mean=1e9 / iops, device_busy=10.0, device_flush_time=0.0)
        for name, iops in (("a", 1000.0), ("b", 980.0), ("slow", 500.0))
    ]
    (alike,) = ranking.ranking(disks[:2])
    (differ,) = ranking.ranking(disks[::2])
    assert (alike.mechanism, alike.why_not) == (
        "disk-time",
        "all stacks have it alike, within 10 % of the run",
    )
    assert (differ.strongest.stack, differ.can_explain) == ("slow", True)
    assert differ.weight == pytest.approx(2.0)
    assert differ.contrast == pytest.approx(1.0), "the whole difference"
    assert "It was busy for 100 % of the run" in differ.strongest.text


def test_a_disk_that_is_hardly_busy_explains_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inodes of 128 and 256 bytes with attributes, as measured: fewer, larger requests have longer mean times."""
    monkeypatch.setenv("COLUMNS", "200")
    small = timed("small", 0.56, 100, disk_service_mean=5.3e5, device_busy=0.010, device_flush_time=0.0)
    large = timed("large", 0.54, 104, disk_service_mean=8.6e5, device_busy=0.012, device_flush_time=0.001)
    assert first_of(small, large) == []
    for printed in (explain.show, lambda seen: explain.show_ranked(seen, "last")):
        printed([small, large])
        assert (
            "no mechanism found that can explain a difference between the stacks: w\n"
            in capsys.readouterr().out
        )
        printed([small])
        assert "no mechanism found that" not in capsys.readouterr().out


def test_what_the_faster_stack_has_more_of_is_not_what_slows_the_other_down() -> None:
    """The faster one has more extents for each byte: it explains nothing, unless it can make a stack faster."""
    slow = timed("slow", 10, 500, **written(100, 2.0))
    fast = timed("fast", 10, 1000, **written(100, 4.0))
    ((_, found),) = [each for each in ranking.in_order([slow, fast]) if each[0] is fast]
    assert [(each.mechanism, why_not) for each, why_not in found] == [
        ("amplification", "stacks with more of it were faster than those with less")
    ]
    assert ranking.on_page([slow, fast], most=0) == ((), ())
    cached = timed("fast", 10, 1000, **written(100), delayed_allocation_bytes=64.0 * MIB)
    assert ("delayed-allocation", "fast") in first_of(timed("slow", 10, 500, **written(100)), cached)


def test_of_three_stacks_those_count_that_a_mechanism_can_explain() -> None:
    """Most is written in addition by the fastest, but also more by the slowest than by the other."""
    stacks = [
        timed(name, 10, iops, **written(100, ratio))
        for name, iops, ratio in (("fastest", 2000, 6.0), ("medium", 1000, 1.0), ("slowest", 500, 4.0))
    ]
    (found,) = ranking.ranking(stacks)
    assert (found.mechanism, found.strongest.stack, found.why_not) == ("amplification", "slowest", "")
    assert found.contrast == ranking.NOTABLE


def test_where_the_time_of_a_stack_is_unknown_shares_are_compared_as_they_are() -> None:
    disk = {"disk_service_mean": 1e6, "device_busy": 4.0, "device_flush_time": 0.0}
    known, unknown = timed("known", 10, 1000, **disk), seen(cell("ext4", name="unknown"), {})
    assert not unknown.times
    for stacks in ([known, unknown], [unknown, known]):
        (found,) = ranking.ranking(stacks)
        assert (found.mechanism, found.strongest.stack) == ("disk-time", "known")
        assert found.contrast == pytest.approx(found.weight)


def test_stacks_are_compared_under_one_workload() -> None:
    """Under ``w``, the slower one writes more; under ``even``, both write as much; under ``other``, a third runs."""
    differ = [
        timed(name, 10, iops, **written(100, ratio))
        for name, iops, ratio in (("a", 500, 4.0), ("b", 900, 2.0))
    ]
    even = [replace(timed(name, 10, 500, **written(100, 3.0)), workload="even") for name in ("a", "b")]
    third = replace(timed("c", 10, 500, **written(100, 1.0)), workload="other")
    (alike,) = ranking.ranking([*even, third])
    assert (alike.alike, alike.contrast) == (True, 0.0)
    (found,) = ranking.ranking([*even, *differ])
    assert (found.strongest.workload, found.strongest.stack, found.can_explain) == ("w", "a", True)
    assert found.contrast == ranking.NOTABLE
    told = {(each.workload, each.stack): why for each, ((_, why),) in ranking.in_order([*even, *differ])}
    alike_words = "all stacks have it alike"
    assert told == {("w", "a"): "", ("w", "b"): "", ("even", "a"): alike_words, ("even", "b"): alike_words}
    assert ranking.unexplained([*even, *differ, third]) == ["even"]
    document = ranking.as_document([*even, *differ])
    assert document["unexplained"] == ["even"]
    (named,) = document["mechanisms"]
    assert (named["strongest"], named["why_not"]) == ({"workload": "w", "stack": "a"}, None)
    (named,) = ranking.as_document(even)["mechanisms"]
    assert named["why_not"] == alike_words


def test_a_short_commit_interval_is_named_before_what_a_commit_waits_for() -> None:
    """commit=1 and commit=60 during 16 s of random overwrites in the page cache, as measured."""
    often, seldom = (
        seen(
            cell("ext4", mount, {"rw": "randwrite", "size": "256m", "rate_iops": 500}),
            {"journal_commits": commits, "clock_window": 15.9, "journal_commit_mean": 86e6},
        )
        for mount, commits in (("commit=1", 16.0), ("commit=60", 1.0))
    )
    assert first_of(often, seldom)[0] == ("commit-interval", "ext4 commit=1")
    assert "the commit interval of 1 s alone makes 15 or 16." in statements_of(often)[0].text


def test_a_stack_without_a_usable_trial_is_not_one_without_the_mechanism() -> None:
    stacks = [timed(name, 10, 500, **written(100, 2.0)) for name in ("a", "b")]
    failed = Evidence(cell=cell("xfs"), workload="w", stack="xfs", trials=[])
    assert first_of(*stacks, failed) == []
    (alone,) = ranking.ranking([stacks[0], failed])
    assert (alone.can_explain, alone.why_not) == (False, "unknown on the other stacks")
    even, lone = (replace(each, workload="even") for each in stacks), stacks[0]
    (compared,) = ranking.ranking([lone, *even])
    assert (compared.strongest.workload, compared.why_not) == ("even", "all stacks have it alike")


@pytest.mark.parametrize(
    ("options", "stated", "unstated", "mechanism"),
    [
        ({}, {"journal_bytes": 90.0 * MIB}, {}, "journal"),
        ({}, {"device_flushes": 16384.0}, {}, "barriers"),
        ({"layout": "md-raid1"}, written(64, 1.5), written(64, 2.0), "amplification"),
    ],
)
def test_what_is_unknown_of_a_stack_is_not_what_it_lacks(
    options: dict[str, Any], stated: dict[str, float], unstated: dict[str, float], mechanism: str
) -> None:
    """A journal, flushes that this kernel does not count, and bytes of which a mirror made copies."""
    known = seen(cell("ext4", name="known"), written(64) | stated)
    unknown = seen(cell("ext4", name="unknown", **options), written(64) | unstated)
    (found,) = [each for each in ranking.ranking([known, unknown]) if each.mechanism == mechanism]
    assert (found.strongest.stack, found.why_not) == ("known", "unknown on the other stacks")
    (alone,) = [each for each in ranking.ranking([known]) if each.mechanism == mechanism]
    assert alone.can_explain


def test_checksums_are_not_what_only_an_undisturbed_stack_has() -> None:
    """The CPU time of the kernel's threads is unknown where another program ran."""
    foreign = ValidityWarning(kind="foreign_load", severity=Severity.WARNING, message="", data={})
    figures = written(64, tool_cpu_system_s=1.0, kernel_threads_cpu=1.0)
    quiet = seen(cell(name="quiet"), figures)
    busy = seen(cell(name="busy"), figures, validity=[foreign])
    whys = {each.mechanism: each.why_not for each in ranking.ranking([quiet, busy])}
    assert whys["data-checksums"] == "unknown on the other stacks"


def test_the_journals_of_ext4_and_xfs_are_compared() -> None:
    ext4 = seen(cell("ext4"), written(64, journal_bytes=192.0 * MIB, journal_commits=1.0))
    xfs = seen(cell("xfs"), written(64, xfs_log_bytes=128.0 * MIB))
    assert (
        by_mechanism(ext4)["journal"]
        == "192 MiB were written to the journal for 64 MiB of data, in 1 commit."
    )
    assert by_mechanism(xfs)["journal"] == "128 MiB were written to the journal for 64 MiB of data."
    found = {each.mechanism: each for each in ranking.ranking([ext4, xfs])}["journal"]
    assert found.strongest.stack == ext4.stack
    assert found.contrast == pytest.approx(1.0)
    assert "xfs-log" not in by_mechanism(xfs), "no transaction waited for a buffer of it"


def test_time_in_the_kernel_is_said_but_comes_after_what_says_why() -> None:
    """ext4 without delayed allocation, as measured; then a directory that is searched from end to end."""
    fast, slow = (
        timed(name, seconds, 256 / seconds, tool_cpu_system_s=cpu_s)
        for name, seconds, cpu_s in (("delalloc", 1.21, 0.309), ("nodelalloc", 1.51, 0.595))
    )
    assert first_of(fast, slow) == [("kernel-cpu", "nodelalloc")]
    (told,) = (each.strongest.text for each in ranking.ranking([fast, slow]))
    assert told == "The tool used 595 ms of CPU time in the kernel: 39 % of the run."
    rates = ((seconds, Value(value=1 / seconds, unit=Unit.FILES_PER_SECOND)) for seconds in (1.0, 35.0))
    searched = [
        seen(
            made.cell(made.spec("ext4", name=name, mkfs_options=options), "engine", FILES),
            {"tool_cpu_system_s": seconds * 0.95},
            metrics=dict.fromkeys(("create_rate", "unlink_rate"), rate),
            **run_of(seconds),
        )
        for (name, options), (seconds, rate) in zip(
            (("index", ""), ("linear", "-O ^dir_index")), rates, strict=True
        )
    ]
    why, where, _ = first_of(*searched)
    assert (why, where) == (("linear-directories", "linear"), ("kernel-cpu", "linear"))


def test_of_two_stacks_what_they_differ_in_comes_first() -> None:
    """ext4 without and with nobarrier, on a disk whose flush takes 3 ms: as measured, but for the flushes."""
    figures = written(
        12, 4.01, journal_bytes=768 * 12288.0, journal_commits=768.0, journal_bytes_error=4096.0
    )
    stacks = [
        seen(cell("ext4", mount), figures | {"device_flushes": flushes})
        for mount, flushes in (("defaults", 830.0), ("nobarrier", 0.0))
    ]
    (_, flushing), (_, other) = ranking.in_order(stacks)
    assert (flushing[0][0].mechanism, flushing[0][1]) == ("barriers", "")
    assert {why_not for _, why_not in (*flushing[1:], *other)} == {"all stacks have it alike"}
    assert [each.mechanism for each in statements_of(stacks[0])].index("barriers") > 1, (
        "of one stack alone, by weight"
    )


def first_of(*stacks: Evidence) -> list[tuple[str, str]]:
    """Return the mechanisms that differ, each with its strongest stack."""
    return [(each.mechanism, each.strongest.stack) for each in ranking.ranking(stacks) if not each.alike]


def run_of(seconds: float) -> dict[str, Any]:
    return {"provenance": Provenance(parts={"run": RunPart(seconds=seconds)})}


def test_flushes_count_by_the_time_that_they_take() -> None:
    """ext4 without and with nobarrier, as measured on a modelled hard disk. With nobarrier, more fsyncs fall into one
    tick of the clock, and have nothing to commit: less is written for each. Then on a disk that flushes at once."""
    flushing = written(9.1, 4.01, device_flushes=1164.0, journal_bytes=6.81 * MIB, journal_commits=582.0)
    not_flushing = written(110, 1.41, device_flushes=0.0, journal_bytes=32.0 * MIB, journal_commits=2700.0)
    for took_s, place in ((13.2, 0), (0.4, -1)):
        found = first_of(
            seen(cell("ext4"), flushing | {"device_flush_time": took_s}, **run_of(15.4)),
            seen(cell("ext4", "nobarrier"), not_flushing | {"device_flush_time": 0.0}, **run_of(15.6)),
        )
        assert found.index(("barriers", "ext4 defaults")) == range(len(found))[place]


@pytest.mark.parametrize(("parts", "percent"), [((), 96), (("create", "delete"), 72)])
def test_shares_are_of_what_the_tool_measured_without_its_start(parts: tuple[str, ...], percent: int) -> None:
    """fio that flushed in 1.92 s of the 2 s that it measured, in a run of 2.66 s; and a tool of two parts, between
    which it may flush, too."""
    whole = {"run": RunPart(seconds=2.66)} | {name: RunPart(seconds=1.0) for name in parts}
    figures = written(8, device_flushes=200.0, device_flush_time=1.92, clock_measured=2.0)
    found = seen(cell("ext4"), figures, provenance=Provenance(parts=whole))
    (stated,) = (each for each in statements_of(found) if each.mechanism == "barriers")
    assert stated.text.endswith(f"they took {percent} % of the run.")


def test_how_long_commits_wait_for_data_is_unknown_and_comes_last() -> None:
    """ext4 without and with a journal, written to a modelled hard disk: commits are in the background."""
    commits = {"journal_commits": 12.0, "journal_commit_mean": 86e6, "journal_bytes": 8.0 * MIB}
    none, ordered = (
        seen(
            cell("ext4", mount, {"rw": "write", "size": "100m"}, mkfs_options=mkfs),
            written(100, device_read_bytes=0.0, device_busy=1.0, tool_cpu_system_s=0.1, **more),
            metrics=made.iops(iops), **run_of(2.0),
        )
        for mount, mkfs, iops, more in (
            ("defaults", "-O ^has_journal", 2000, {}), ("data=ordered", "", 1600, commits)
        )
    )  # fmt: skip
    assert [mechanism for mechanism, _ in first_of(none, ordered)] == ["journal", "ordered-mode"]


@pytest.mark.parametrize(("received", "differs"), [(419.0, False), (200.0, True)])
def test_a_faster_stack_overwrites_more_in_the_page_cache_in_a_set_time(
    received: float, differs: bool
) -> None:
    """ext4 and XFS, whose writers overwrote one file for two seconds, as measured: both devices received the same. A
    device that receives less can be why."""
    over = {"rw": "randwrite", "bs": "4k", "size": "64m", "runtime": "2s"}
    slow, fast = (
        seen(
            cell(filesystem, parameters=over),
            written(mib, mib / whole, device_written_bytes=mib * MIB),
            metrics=made.iops(whole),
        )
        for filesystem, whole, mib in (("ext4", 610.0, 410.0), ("xfs", 906.0, received))
    )
    (found,) = (each for each in ranking.ranking([slow, fast]) if each.mechanism == "page-cache")
    assert found.can_explain is differs


def test_kernel_threads_that_compress_come_first_where_they_take_the_time() -> None:
    """btrfs that compresses with lzo and with zstd:12, on two CPUs: both write the same bytes, as measured."""
    lzo, zstd = (
        seen(
            cell("btrfs", f"compress={how}", {"rw": "write", "size": "96m"}),
            written(
                96, ratio, volume_written_back_bytes_flushed=96.0 * MIB, kernel_threads_cpu=threads_s,
                tool_cpu_system_s=0.12,
            ),
            metrics=made.iops(96 / seconds),
            provenance=Provenance(parts={"run": RunPart(seconds=seconds)}, machine={"cpus": 2}),
        )
        for how, ratio, threads_s, seconds in (("lzo", 0.44, 0.19, 0.52), ("zstd:12", 0.41, 4.4, 2.84))
    )  # fmt: skip
    assert first_of(lzo, zstd)[0] == ("kernel-threads", "btrfs compress=zstd:12")
    (text,) = (each.text for each in statements_of(zstd) if each.mechanism == "kernel-threads")
    assert text == (
        "Kernel threads, such as those that write back, used 4.40 s of CPU time: 77 % of the run of each of 2 CPUs."
    )


@pytest.mark.parametrize(("longest", "percent"), [({}, 50), ({"device_flush_time_longest": 7.5}, 75)])
def test_flushes_of_several_disks_at_once_take_the_time_of_the_slowest(
    longest: dict[str, float], percent: int
) -> None:
    disks = Provenance(parts={"run": RunPart(seconds=10.0)}, device={"parts": [{}, {}]})
    figures = written(64, device_flushes=2.0 * 16384, device_flush_time=10.0, **longest)
    (found,) = (
        each
        for each in statements_of(seen(cell(), figures, provenance=disks))
        if each.mechanism == "barriers"
    )
    assert found.text.endswith(f"of each device on average; they took {percent} % of the run.")


def test_bytes_count_by_the_time_in_which_they_may_have_been_moved() -> None:
    """ext4 with blocks of 1 and 4 KiB, 1 KiB synced at random on a modelled hard disk, as measured: with 4 KiB, the
    journal has 12 bytes for each byte instead of 3, but flushes of 1 KiB take longer."""
    small, large = (
        timed(
            name, 2.8, iops, device_read_bytes=read, device_written_bytes_flushed=received, journal_bytes=journal,
            write_amplification=ratio, journal_commits=syncs, device_flushes=2 * syncs, device_flush_time=flushing,
            device_busy=busy, tool_cpu_system_s=0.03,
        )
        for name, iops, read, received, journal, ratio, syncs, flushing, busy in (
            ("1k", 20.1, 1024.0, 176128.0, 125952.0, 4.195, 41.0, 1.92, 1.95),
            ("4k", 32.2, 270336.0, 1097728.0, 798720.0, 16.49, 65.0, 1.42, 1.81),
        )
    )  # fmt: skip
    assert first_of(small, large)[:2] == [("barriers", "1k"), ("journal", "4k")]
    (journal,) = [each for each in ranking.ranking([small, large]) if each.mechanism == "journal"]
    # 58 % of the bytes of the device, in 66 % of the run, of which three quarters are more than with 1 KiB
    assert journal.contrast == pytest.approx(0.584 * 0.657 * (1 - 3.0 / 12.0), rel=0.01)


def test_what_fstrim_discards_is_alike_without_the_mount_option() -> None:
    discarded = {"device_discarded_bytes": 19968.0 * MIB}
    online, none = (seen(cell("ext4", mount), discarded) for mount in ("discard", "defaults"))
    assert {each.mechanism: each.why_not for each in ranking.ranking([online, none])} == {
        "discard": "all stacks have it alike"
    }
    refuted = [statement.refuted_by for each in (online, none) for statement in statements_of(each)]
    assert refuted == ["equally slow with mount -o nodiscard", None]
    assert first_of(online, seen(cell("ext4"), {"device_discarded_bytes": 0.0})) == [
        ("discard", online.stack)
    ]


def test_times_and_bytes_are_bounded_alike() -> None:
    """Flushes take 60 % of a run that takes 300 times as long; half of the bytes are of its journal."""
    busy = {"device_read_bytes": 0.0, "device_flushes": 9.0, "tool_cpu_system_s": 0.0, "device_busy": 9.0}
    slow = timed("slow", 10, 10, **written(2, 2.0), **busy, device_flush_time=6.0, journal_bytes=1.0 * MIB)
    fast = timed("fast", 10, 3000, **written(1, 1.0), **busy, device_flush_time=1.5, journal_bytes=0.0)
    assert first_of(slow, fast)[0] == ("barriers", "slow")


def test_reads_for_parity_are_not_counted_by_their_bytes() -> None:
    """64 MiB written in order to md RAID 5 on hard disks, with and without stripe hints, as measured: the disks' caches
    take the writes, but a read waits for a seek."""
    aligned, unaligned = (
        seen(
            cell("xfs", layout="md-raid5", name=name),
            {"device_read_bytes": read * MIB, "device_busy": busy, "tool_cpu_system_s": 0.05,
             "disk_service_mean": 2e5, "device_flush_time": 0.0} | written(96, 1.5),
            metrics=made.iops(1 / seconds),
            **run_of(seconds),
        )
        for name, read, busy, seconds in (("aligned", 0.1, 0.08, 0.9), ("unaligned", 16.1, 0.42, 2.6))
    )  # fmt: skip
    assert first_of(aligned, unaligned)[0] == ("parity-updates", "unaligned")


def test_some_waits_for_a_log_buffer_come_after_what_takes_time() -> None:
    """120 MiB for 16 MiB of data in the journal of ext4, and 18 waits of XFS, on a disk in memory."""
    idle = {"device_read_bytes": 0.0, "device_busy": 0.3, "tool_cpu_system_s": 0.1}
    ext4 = timed("ext4", 2, 2000, **written(160, 10.0), **idle, journal_bytes=120.0 * MIB)
    xfs = seen(
        cell("xfs"), written(20, 1.25, xfs_log_bytes=4.0 * MIB, xfs_log_no_buffer=18.0, **idle),
        metrics=made.iops(2000), **run_of(2.0),
    )  # fmt: skip
    assert first_of(ext4, xfs)[0] == ("amplification", "ext4")
    assert first_of(ext4, xfs)[-1] == ("xfs-log", xfs.stack)


def test_what_bytes_are_for_comes_before_all_bytes_in_addition() -> None:
    """data=journal beside data=ordered, written and synced on a modelled SSD, as measured."""
    idle = {"device_read_bytes": 0.0, "device_flushes": 0.0, "tool_cpu_system_s": 0.02}
    ordered, journalled = (
        seen(
            cell("ext4", mount),
            written(128 * ratio, ratio, journal_bytes=journal * MIB, device_busy=busy, **idle),
            metrics=made.iops(1 / seconds),
            **run_of(seconds),
        )
        for mount, ratio, journal, seconds, busy in (
            ("defaults", 1.003, 0.4, 1.0, 0.4), ("data=journal", 2.02, 128.5, 2.4, 1.4)
        )
    )  # fmt: skip
    assert [mechanism for mechanism, _ in first_of(ordered, journalled)] == [
        "data-journalling",
        "amplification",
    ]


def test_many_bytes_of_few_explain_less_than_what_takes_the_time() -> None:
    """Of two stacks on which the disk is hardly busy, one receives four bytes for each byte, and flushes."""
    idle = {"device_read_bytes": 0.0, "device_busy": 1.0, "device_flushes": 100.0, "tool_cpu_system_s": 0.0}
    slow = timed("slow", 10, 900, **written(1, 4.0), **idle, device_flush_time=0.9)
    fast = timed("fast", 10, 1000, **written(1, 1.0), **idle, device_flush_time=0.0)
    contrasts = {each.mechanism: each.contrast for each in ranking.ranking([slow, fast])}
    assert contrasts["amplification"] == pytest.approx(0.75 * 0.1 * 1000 / 900)
    assert contrasts["barriers"] == pytest.approx(0.09 * 1000 / 900)


def test_twice_as_many_bytes_are_not_alike_however_many_they_are() -> None:
    stacks = [timed(name, 10, 500, **written(1, ratio)) for name, ratio in (("a", 41.0), ("b", 81.0))]
    (found,) = ranking.ranking(stacks)
    assert (found.strongest.stack, found.why_not) == ("b", "")


def test_flushes_are_named_by_their_time_where_the_number_of_fsyncs_is_unknown() -> None:
    """Filebench's varmail on a modelled hard disk, without and with nobarrier, as measured."""
    mail = {"personality": "varmail"}
    flushing, not_flushing = (
        seen(
            made.cell(made.spec("ext4", name=mount, mount_options=mount), "filebench", mail),
            {"disk_service_mean": 3e6, "device_busy": busy, "device_flushes": flushes, "device_flush_time": took},
            metrics={"ops_rate": Value(value=rate, unit=Unit.OPERATIONS_PER_SECOND)},
            **run_of(4.2),
        )
        for mount, busy, flushes, took, rate in (
            ("defaults", 4.05, 292.0, 3.9, 242.0), ("nobarrier", 2.5, 0.0, 0.0, 4770.0),
        )
    )  # fmt: skip
    assert by_mechanism(flushing)["barriers"] == "Cache flushes (292) took 93 % of the run."
    assert first_of(flushing, not_flushing)[0] == ("barriers", "defaults")
    assert "barriers" not in by_mechanism(seen(flushing.cell, {"device_flushes": 292.0}, **run_of(4.2)))


def test_the_disks_of_files_and_of_a_journal_flush_one_after_the_other() -> None:
    """200 files with fsync on a modelled hard disk, as measured: the flushes of both disks took 3.0 of 3.5 s."""
    disks = Provenance(parts={"run": RunPart(seconds=3.5)}, device={"parts": [{}, {}]})
    figures = written(0.8, 9.14, device_flushes=601.0, device_flush_time=3.0)
    of = cell("ext4", parameters=SYNCED | {"size": "800k"}, layout="external-journal")
    found = by_mechanism(seen(of, figures, provenance=disks))["barriers"]
    assert found.endswith("of each device on average; they took 86 % of the run.")


def test_the_second_copy_of_metadata_weighs_only_what_it_adds() -> None:
    """With -m dup and -m single, as measured: of 36 bytes for each byte written, one copy is not there twice."""
    extents = {"file_extents_before": 1.0, "file_extents_at_least": 512.0}
    dup = seen(cell(name="dup"), written(72, 36.1, btrfs_metadata_copies=2.0, **extents))
    single = seen(cell(name="single"), written(38, 19.6, btrfs_metadata_copies=1.0, **extents))
    assert first_of(dup, single)[0] == ("metadata-duplication", "dup")
    weights = {each.mechanism: each.weight for each in statements_of(dup)}
    assert weights["metadata-duplication"] < weights["amplification"] < weights["copy-on-write"]


def test_directories_without_an_index_are_named_on_the_stack_that_has_them() -> None:
    """30,000 files in one directory: with the index, 35 times as many were created per second."""

    def created(options: str, commit_ns: float) -> Evidence:
        of = made.cell(made.spec("ext4", name=options or "index", mkfs_options=options), "engine", FILES)
        return seen(of, {"journal_commit_mean": commit_ns, "journal_commits": 5.0, "tool_cpu_system_s": 1.0})

    linear = "-O ^dir_index"
    assert first_of(created("", 0.5e6), created(linear, 2.6e6))[0] == ("linear-directories", linear)
    assert "linear-directories" not in {each.mechanism for each in statements_of(created("", 1e6))}


FILES = {"operation": "meta", "files": 30_000}


def test_reading_whole_blocks_for_small_files_is_no_read_ahead_of_the_other_stack() -> None:
    """Files of 300 bytes, in inodes and in blocks: the latter read 17.2 bytes for each byte, in single blocks; the
    former 3.5, whole tables of inodes."""
    small = {"operations": "read", "size": "300"}
    stacks = [
        seen(
            made.cell(made.spec("ext4", name=name), "engine", small),
            {"read_amplification": ratio, "device_read_bytes": read, "device_read_requests": requests},
        )
        for name, ratio, read, requests in (
            ("inline", 3.50, 31_526_912.0, 694.0), ("blocks", 17.15, 154_382_336.0, 30_688.0),
        )
    ]  # fmt: skip
    assert first_of(*stacks) == [("read-amplification", "blocks")]


def test_a_small_volume_is_named_where_commits_come_early() -> None:
    """Random writes on 400 MiB and on 24 GiB, as measured. With -m dup and single on 2 GiB, both commit early."""
    small = ValidityWarning(kind="volume_small", severity=Severity.WARNING, message="", data={})
    writes = {"rw": "randwrite", "size": "100m"}

    def random(name: str, commits: float, amplification: float, *warnings: ValidityWarning) -> Evidence:
        figures = written(100, amplification, btrfs_commits=commits, clock_window=7.5)
        return seen(cell(parameters=writes, name=name), figures, validity=warnings)

    assert first_of(random("small", 131.0, 5.6, small), random("large", 2.0, 1.0))[0] == (
        "small-volume",
        "small",
    )
    both = random("dup", 8.0, 1.4, small), random("single", 12.0, 1.2, small)
    assert "small-volume" not in dict(first_of(*both))


def test_a_page_begins_with_what_differs_as_the_terminal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = [seen(cell(name), {"device_flushes": 0.0}) for name in ("ext4", "btrfs")]
    a, b = (each.stack for each in stacks)
    found = ("page-cache", a, 9.0), ("page-cache", b, 8.95), ("journal", a, 0.5), ("barriers", b, 2.0)
    ranked(monkeypatch, stacks, *found)
    first, others = ranking.on_page(stacks, most=1)
    assert [(each.mechanism, each.stack) for each in first] == [("barriers", b), ("journal", a)]
    assert [(each.mechanism, each.stack) for each in others] == [("page-cache", a)], "all have it alike"


def test_no_evidence_outweighs_all_other_by_its_unit() -> None:
    of = cell("ext4", parameters={"rw": "write", "size": "64m"})
    found = ranking.ranking([seen(of, written(64, device_written_bytes=0.0))])
    (cached,) = [each for each in found if each.mechanism == "page-cache"]
    assert ranking.MOST_WEIGHT - 0.1 < cached.weight < ranking.MOST_WEIGHT
    assert math.isfinite(cached.strongest.weight), "JSON has no infinity"


def test_a_stack_is_found_by_name_file_system_or_option_and_never_guessed() -> None:
    ext4, noatime, xfs = stacks = [
        seen(cell(*of), {}) for of in (("ext4",), ("ext4", "noatime"), ("xfs", "logbsize=32k"))
    ]
    for wanted, found in (
        ("ext4 defaults", ext4),
        ("noatime", noatime),
        (noatime.cell.id, noatime),
        ("xfs", xfs),
    ):
        first, *others = explanations.chosen(stacks, "w", wanted, None)
        assert first is found
        assert others == [each for each in stacks if each is not found]
    assert explanations.chosen(stacks, None, "xfs", "noatime") == [xfs, noatime]
    with pytest.raises(UsageError, match="'ext4' matches 2 stacks"):
        explanations.chosen(stacks, None, "ext4", None)
    with pytest.raises(UsageError, match="no stack 'zfs'"):
        explanations.chosen(stacks, None, "xfs", "zfs")
    whole = seen(cell(name="ext4"), {})
    assert explanations.chosen([*stacks, whole], None, "ext4", None)[0] is whole, "the whole name comes first"


def test_wrapped_lines_keep_the_indentation_of_their_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    explain.print_wrapped("  There were 4 commits in 0.6 s; the commit interval of 5 s alone makes 0 or 1.")
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("  There were 4 commits")
    assert len(more) == 2
    assert all(line.startswith("  ") and line[2] != " " and len(line) <= 40 for line in more)


def test_the_time_of_a_disk_comes_after_what_says_why() -> None:
    """data=journal on a disk under a loop device, 2.6 times as slow, and busy with what it writes twice."""
    figures = {
        "device_read_bytes": 0.0,
        "device_flush_time": 0.5,
        "device_write_mean": 1e6,
        "journal_commits": 100.0,
    }
    slow, fast = (
        seen(
            cell("ext4", name=name, mount=mount, medium="loop"),
            {**figures, **written(mib, ratio), "device_busy": busy, "journal_bytes": mib * journal * MIB},
            metrics=made.iops(iops), **run_of(5),
        )
        for name, mount, iops, mib, ratio, busy, journal in (
            ("journal", "data=journal", 1000, 200, 2.1, 4.5, 0.5), ("ordered", "defaults", 2600, 260, 1.0, 4.0, 0.01),
        )
    )  # fmt: skip
    names = [name for name, _ in first_of(slow, fast)]
    assert names.index("data-journalling") < names.index("disk-time"), names
