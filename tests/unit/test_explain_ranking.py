"""Tests of the order of mechanisms: by how much the stacks differ in their evidence."""

from __future__ import annotations

from typing import Any

import pytest
from tests import made
from tests.unit.explained import MIB, cell, seen, written

from fslab.api import explanations
from fslab.cli import explain
from fslab.explain.evidence import Certainty, Evidence, Explanation
from fslab.explain.mechanisms import MOST_WEIGHT, statements_of
from fslab.trial_record import Provenance, RunPart, Severity, ValidityWarning


def ranked(
    monkeypatch: pytest.MonkeyPatch, stacks: list[Evidence], *found: tuple[str, str, float]
) -> list[explanations.RankedMechanism]:
    """Rank statements, given as mechanism, stack and weight."""
    same: dict[str, Any] = {"workload": "w", "text": "", "certainty": Certainty.OBSERVED, "refuted_by": "r"}
    statements = [
        Explanation(mechanism=mechanism, stack=stack, figures=(), weight=weight, **same)
        for mechanism, stack, weight in found
    ]
    monkeypatch.setattr("fslab.explain.mechanisms.all_statements", lambda _: iter(statements))
    return explanations.ranking(stacks)


def test_mechanisms_are_ranked_by_their_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ("journal", "a", 1.0), ("barriers", "a", 6.0), ("journal", "b", 3.0), ("atime", "b", 1.0)
    told = ranked(monkeypatch, [], *found)
    assert [(each.mechanism, each.weight) for each in told] == [("barriers", 6), ("journal", 3), ("atime", 1)]
    assert told[1].cells == ("w on a", "w on b")
    assert told[1].strongest.stack == "b"


def test_what_all_stacks_have_alike_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = [seen(cell(name), {}) for name in ("ext4", "btrfs")]
    a, b = (each.stack for each in stacks)
    found = ("page-cache", a, 10.0), ("page-cache", b, 10.0), ("barriers", b, 2.0), ("journal", a, 0.0)
    contrasts = [(each.mechanism, each.contrast) for each in ranked(monkeypatch, stacks, *found)]
    assert contrasts == [("barriers", 2.0), ("page-cache", 0.0), ("journal", 0.0)]
    near = ("disk-time", a, 3.3), ("disk-time", b, 3.1), ("read-amplification", b, 0.14)
    assert [each.mechanism for each in ranked(monkeypatch, stacks, *near)] == [
        "read-amplification",
        "disk-time",
    ]
    alone = ranked(monkeypatch, stacks[:1], *found)
    assert alone[0].contrast == 10.0, "of one stack, nothing is known to compare"


@pytest.mark.parametrize("fast_ns", [1e5, 1e6, 5e6, 2e7])
def test_a_disk_that_takes_twice_the_time_is_not_alike(fast_ns: float) -> None:
    times = {"a": fast_ns, "b": 1.02 * fast_ns, "slow": 2 * fast_ns}
    stacks = {
        name: seen(cell("ext4", name=name), {"disk_service_mean": time_ns}) for name, time_ns in times.items()
    }
    (alike,) = explanations.ranking([stacks["a"], stacks["b"]])
    (differ,) = explanations.ranking([stacks["a"], stacks["slow"]])
    assert (alike.mechanism, alike.alike, differ.alike) == ("disk-time", True, False)


def test_of_two_stacks_what_they_differ_in_comes_first() -> None:
    """ext4 without and with nobarrier, on a disk whose flush takes 3 ms: as measured, but for the flushes."""
    figures = written(
        12, 4.01, journal_bytes=768 * 12288.0, journal_commits=768.0, journal_bytes_error=4096.0
    )
    stacks = [
        seen(cell("ext4", mount), figures | {"device_flushes": flushes})
        for mount, flushes in (("defaults", 830.0), ("nobarrier", 0.0))
    ]
    (_, flushing), (_, other) = explanations.in_order(stacks)
    assert (flushing[0][0].mechanism, flushing[0][1]) == ("barriers", False)
    assert {alike for _, alike in (*flushing[1:], *other)} == {True}
    assert [each.mechanism for each in statements_of(stacks[0])].index("barriers") > 1, (
        "of one stack alone, by weight"
    )


def first_of(*stacks: Evidence) -> list[tuple[str, str]]:
    """Return the mechanisms that differ, each with its strongest stack."""
    return [(each.mechanism, each.strongest.stack) for each in explanations.ranking(stacks) if not each.alike]


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


def test_flushes_of_several_disks_at_once_take_their_time_once() -> None:
    disks = Provenance(parts={"run": RunPart(seconds=10.0)}, device={"parts": [{}, {}]})
    figures = written(64, device_flushes=2.0 * 16384, device_flush_time=10.0)
    (found,) = (
        each
        for each in statements_of(seen(cell(), figures, provenance=disks))
        if each.mechanism == "barriers"
    )
    assert found.text.endswith("of each device on average; they took 50 % of the run.")
    assert found.weight == pytest.approx(1.0)


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
    stacks = [seen(cell(name), {}) for name in ("ext4", "btrfs")]
    a, b = (each.stack for each in stacks)
    found = ("page-cache", a, 10.0), ("page-cache", b, 9.5), ("journal", a, 0.5), ("barriers", b, 2.0)
    ranked(monkeypatch, stacks, *found)
    first, others = explanations.on_page(stacks, most=1)
    assert [(each.mechanism, each.stack) for each in first] == [("barriers", b), ("journal", a)]
    assert [(each.mechanism, each.stack) for each in others] == [("page-cache", a)], "all have it alike"


def test_no_evidence_outweighs_all_other_by_its_unit() -> None:
    of = cell("ext4", parameters={"rw": "write", "size": "64m"})
    found = statements_of(seen(of, written(64, device_written_bytes=0.0)))
    (cached,) = [each for each in found if each.mechanism == "page-cache"]
    assert MOST_WEIGHT - 0.1 < cached.weight < MOST_WEIGHT


def test_wrapped_lines_keep_the_indentation_of_their_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    explain.print_wrapped("  There were 4 commits in 0.6 s; the commit interval of 5 s alone makes 0 or 1.")
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("  There were 4 commits")
    assert len(more) == 2
    assert all(line.startswith("  ") and line[2] != " " and len(line) <= 40 for line in more)
