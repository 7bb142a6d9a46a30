"""Tests of the validity rules for a trial, with values on both sides of each limit; without its data, no rule warns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fslab import probes
from fslab.campaign import guest_run, probing
from fslab.trial_record import Severity, ValidityWarning, Value
from fslab.units import Unit
from fslab.validity.facts import Depth, ProbeFailure, Rate, TrialFacts, WorkFacts
from fslab.validity.trial_warnings import REGISTRY, trial_warnings

MIB = 1 << 20
GIB = 1 << 30
INVALID, WARNING, NOTE = Severity.INVALID, Severity.WARNING, Severity.NOTE


def figures(**values: float | None) -> dict[str, Value]:
    return {name: Value(value=value, unit=Unit.COUNT) for name, value in values.items()}


def facts(work: WorkFacts | None = None, *, cold: bool = True, **more: Any) -> TrialFacts:
    return TrialFacts(work=work or WorkFacts(), cold=cold, **more)


def only(kind: str, given: TrialFacts) -> ValidityWarning:
    """Return the only warning, which must be of this kind."""
    (warning,) = trial_warnings(given)
    assert warning.kind == kind
    return warning


def verdict(given: TrialFacts) -> list[tuple[str, Severity]]:
    return [(warning.kind, warning.severity) for warning in trial_warnings(given)]


@pytest.mark.parametrize(
    ("syncs", "flushes", "threads", "cache", "warned"),
    [
        (512, 0, 1, True, True), (512, 16, 1, True, True), (512, 26, 1, True, False), (512, 26, 2, True, False),
        (512, 20, 2, True, False),
        (512, 6, 4, True, True), (512, 0, 1, False, False), (19, 0, 1, True, False), (20, 0, 1, True, True),
        (None, 0, 1, True, False),
    ],
)  # fmt: skip
def test_fsync_without_flushes(
    syncs: int | None, flushes: int, threads: int, cache: bool, warned: bool
) -> None:
    """Seen with Linux 6.1: 512 calls, and 512 flushes on ext4, none on jfs, 16 on f2fs with active_logs=2."""
    given = facts(syncs=syncs, figures=figures(device_flushes=flushes), threads=threads, caches_writes=cache)
    assert [kind for kind, _ in verdict(given)] == ["sync_not_flushed"] * warned


def test_errors_of_a_disk_that_the_study_makes_fail_are_no_fault_of_the_trial() -> None:
    """A file system with a second copy goes on: btrfs RAID 1 over two disks, of which reads fail."""
    own = "BTRFS error (device loop67): bdev /dev/loop67 errs: wr 0, rd 1, flush 0, corrupt 0, gen 0"
    other = "I/O error, dev sda, sector 632912 op 0x0:(READ) flags 0x8800"

    def given(*lines: str, faults: bool) -> TrialFacts:
        return facts(texts={"kernel_log": lines}, devices=("loop66", "loop67"), disk_faults=faults)

    assert verdict(given(own, faults=False)) == [("kernel_error", INVALID)]
    assert verdict(given(own, faults=True)) == []
    assert only("kernel_error", given(own, other, faults=True)).data["lines"] == [other]


def test_a_disk_without_a_model_is_not_late() -> None:
    late = {
        service: figures(disk_late_mean=2_000, disk_service_mean=service) for service in (0, 50_000, 80_000)
    }
    assert [bool(verdict(facts(figures=each))) for each in late.values()] == [False, True, False]


def test_unknown_facts_give_no_warning() -> None:
    assert trial_warnings(facts()) == ()
    assert trial_warnings(facts(cold=False)) == ()


@pytest.mark.parametrize("name", REGISTRY.names())
def test_every_rule_says_what_it_is_and_needs_what_probes_have(name: str) -> None:
    rule = REGISTRY.get(name)
    assert rule.kind == name.replace("-", "_")
    assert rule.summary
    assert rule.severity in Severity
    files = [
        *Path(probes.__file__).parent.glob("*.py"),
        *(Path(each.__file__ or "") for each in (guest_run, probing)),
    ]
    sources = "".join(path.read_text() for path in files)
    for needed in rule.needs:
        written = [
            f'"{needed}"',
            f"{needed}=",
            f'f"{needed.partition("_")[0]}_{{name}}"',
        ]  # one probe composes its names
        assert any(each in sources for each in written), f"no probe has {needed}"


def tool(**of: Any) -> TrialFacts:
    """Return facts of a tool that worked like this."""
    return facts(WorkFacts(**of))


def depth(asked: int, at_most: float) -> TrialFacts:
    return tool(depth=Depth(asked=asked, at_least=0.0, at_most=at_most))


def read(
    size: int | None,
    moved: int,
    device: float | None,
    *,
    direct: bool = False,
    written: int | None = 0,
    rounds: int = 1,
) -> TrialFacts:
    """Return facts of cold reads: ``moved`` bytes in total, of files of ``size`` bytes, on a machine with 1 GiB."""
    work = WorkFacts(
        read_bytes=moved, written_bytes=written, direct=direct, working_set_bytes=size, rounds=rounds
    )
    return facts(work, figures=figures(device_read_bytes=device), memory_bytes=GIB)


def cached(size: int, *, limited: bool = True, direct: bool = False) -> TrialFacts:
    """Return facts of a tool with 1 GiB of memory, whose files were read into the page cache before the run."""
    work = WorkFacts(working_set_bytes=size, direct=direct)
    return facts(work, cold=False, memory_bytes=GIB, memory_limited=limited)


def written(times: int, device: float, *, flushed: bool = True) -> TrialFacts:
    """Return facts of writes: ``times`` over files of 64 MiB, on a machine with 1 GiB."""
    work = WorkFacts(
        read_bytes=0, written_bytes=times * 64 * MIB, flushed=flushed, working_set_bytes=64 * MIB
    )
    return facts(work, figures=figures(device_written_bytes_flushed=device), memory_bytes=GIB)


def warm(device: float, *, read: int = 640) -> TrialFacts:
    work = WorkFacts(read_bytes=read * MIB, written_bytes=0, working_set_bytes=64 * MIB)
    return facts(work, cold=False, memory_bytes=GIB, figures=figures(device_read_bytes=device))


def clock(step_s: float, window_s: float) -> TrialFacts:
    return facts(figures=figures(clock_step=step_s, clock_window=window_s))


LIMITS: list[tuple[str, TrialFacts, Severity | None]] = [
    ("too_short", tool(measured_s=0.94, asked_s=1.0), INVALID),
    ("too_short", tool(measured_s=0.96, asked_s=1.0), NOTE),  # 1 s, within the accuracy of a tool
    ("too_short", tool(measured_s=8.9, asked_s=10.0), INVALID),  # ended early
    ("too_short", tool(measured_s=9.1, asked_s=10.0), NOTE),
    ("too_short", tool(measured_s=29.9, asked_s=29.9), NOTE),
    ("too_short", tool(measured_s=30.0, asked_s=30.0), None),
    ("too_short", tool(measured_s=0.5), WARNING),  # the amount of work is fixed; the time is the result
    ("too_short", tool(measured_s=1.0), NOTE),
    ("too_short", tool(measured_s=31.0), None),
    ("too_short", tool(asked_s=10.0), None),
    ("left_work", tool(left_share=0.05), None),
    ("left_work", tool(left_share=0.07), WARNING),
    ("ran_together", tool(together_share=0.1), None),
    ("ran_together", tool(together_share=0.11), WARNING),
    ("depth_not_reached", depth(32, 15.9), INVALID),
    ("depth_not_reached", depth(32, 16.0), NOTE),
    ("depth_not_reached", depth(32, 28.7), NOTE),
    ("depth_not_reached", depth(32, 28.8), None),
    ("depth_not_reached", depth(1, 0.0), None),
    ("written_again", tool(passes=1.0), None),
    ("written_again", tool(passes=2.5), WARNING),
    ("written_again", tool(passes=2.5, direct=True), NOTE),
    ("cache_served", read(64 * MIB, 64 * MIB, 64 * MIB), None),
    ("cache_served", read(64 * MIB, 64 * MIB, MIB), None),
    ("cache_served", read(64 * MIB, 64 * MIB, MIB - 1), INVALID),
    ("cache_served", read(512 * MIB, 512 * MIB, 5 * MIB), INVALID),  # less than 1 %
    ("cache_served", read(512 * MIB, 512 * MIB, 6 * MIB), None),
    ("cache_served", read(15 * MIB, 15 * MIB, 0), None),  # too little to judge
    ("cache_served", read(16 * MIB, 16 * MIB, 0), INVALID),
    ("cache_served", read(2 * GIB, 20 * GIB, 100 * MIB), None),  # most of it was read again
    ("cache_served", read(64 * MIB, 64 * MIB, None), None),
    ("cache_served", read(None, 64 * MIB, 0), INVALID),
    ("cache_served", read(64 * MIB, 64 * MIB, 0, written=None), None),  # may have read what it wrote itself
    ("cache_served", read(64 * MIB, 64 * MIB, 31 * MIB, direct=True), INVALID),
    ("cache_served", read(64 * MIB, 64 * MIB, 32 * MIB, direct=True), None),
    # Each byte was read ten times, but only once from the device.
    ("fits_in_memory", read(64 * MIB, 640 * MIB, 64 * MIB), WARNING),
    ("fits_in_memory", read(64 * MIB, 100 * MIB, 64 * MIB), NOTE),
    ("fits_in_memory", read(64 * MIB, 100 * MIB, 90 * MIB), None),
    ("fits_in_memory", read(64 * MIB, 640 * MIB, None), NOTE),
    ("fits_in_memory", read(2 * GIB, 20 * GIB, GIB), None),  # larger than memory
    # Ten rounds with other files of 8 MiB: read once each, not at all from the device, twice each.
    ("cache_served", read(8 * MIB, 80 * MIB, 80 * MIB, rounds=10), None),
    ("cache_served", read(8 * MIB, 80 * MIB, 0, rounds=10), INVALID),
    ("fits_in_memory", read(8 * MIB, 160 * MIB, 80 * MIB, rounds=10), NOTE),
    ("fits_in_memory", written(1, 64 * MIB), None),
    ("fits_in_memory", written(1, 64 * MIB, flushed=False), WARNING),
    ("fits_in_memory", written(10, 64 * MIB), WARNING),  # a final fsync writes only the last pass
    ("fits_in_memory", written(10, 640 * MIB), None),  # an fsync after each write
    ("cache_not_limited", cached(GIB + 1), WARNING),
    ("cache_not_limited", cached(GIB), None),
    ("cache_not_limited", cached(2 * GIB, limited=False), None),
    ("cache_not_limited", cached(2 * GIB, direct=True), None),
    ("cache_not_warm", warm(0), None),  # what was asked for
    ("cache_not_warm", warm(33 * MIB), WARNING),
    ("cache_not_warm", warm(MIB, read=4), None),  # metadata
    ("cache_not_warm", warm(MIB + 1, read=4), WARNING),
    ("stalled", tool(rates=(Rate(what="bandwidth", interval_s=0.2, values=()),)), None),
    ("clock_stepped", clock(0.004, 1), None),
    ("clock_stepped", clock(0.006, 1), WARNING),
    ("clock_stepped", clock(-0.006, 1), WARNING),
    ("clock_stepped", clock(0.05, 60), None),
    ("guest_figures", facts(machine="host"), None),
    ("guest_figures", facts(machine="uml"), NOTE),
    ("guest_figures", facts(machine="qemu", accelerator="kvm"), NOTE),
    ("guest_figures", facts(machine="qemu", accelerator="tcg"), WARNING),
    ("noisy_neighbour", facts(figures=figures(reference_moved=39.9)), None),
    ("noisy_neighbour", facts(figures=figures(reference_moved=40.0)), WARNING),
    ("cpu_stood_still", facts(figures=figures(cpu_stood_still=2.9)), None),
    ("cpu_stood_still", facts(figures=figures(cpu_stood_still=3.0)), WARNING),
]


@pytest.mark.parametrize(("kind", "given", "severity"), LIMITS)
def test_each_side_of_a_limit(kind: str, given: TrialFacts, severity: Severity | None) -> None:
    assert verdict(given) == ([(kind, severity)] if severity else [])


def test_the_message_says_which_reads_came_from_a_cache_and_how_often_files_were_read() -> None:
    direct = only("cache_served", read(64 * MIB, 64 * MIB, 0, direct=True)).message
    assert direct.startswith("only 0 B of 64 MiB of direct reads")
    assert only("cache_served", read(64 * MIB, 64 * MIB, 0)).message.startswith(
        "only 0 B of 64 MiB of cold reads"
    )
    again = only("fits_in_memory", read(8 * MIB, 160 * MIB, 80 * MIB, rounds=10)).message
    assert again.startswith("the workload accessed 8 MiB of files 2.0 times")


def test_the_last_clock_source_is_named() -> None:
    changed = only("clocksource_changed", facts(texts={"clocksource": ("tsc", "tsc", "hpet")}))
    assert changed.message == "the kernel changed its clock source from tsc to hpet"


def test_many_errors_of_the_kernel_are_counted() -> None:
    lines = [f"EXT4-fs error (device loop3): inode {number}" for number in range(25)]
    one, many = (only("kernel_error", facts(texts={"kernel_log": some})) for some in (lines[:1], lines))
    assert one.message == "the kernel logged: EXT4-fs error (device loop3): inode 0"
    assert many.message == "the kernel logged: EXT4-fs error (device loop3): inode 0 (and 24 more)"
    assert (many.data["count"], len(many.data["lines"])) == (25, 20)


def test_the_parts_that_are_too_short_are_named() -> None:
    work = WorkFacts(measured_s=60.3, parts_s={"create": 60.0, "delete": 0.3})
    warning = only("too_short", facts(work))
    assert warning.severity is WARNING
    assert warning.data == {"seconds": {"delete": 0.3}, "shortest_s": 1.0}
    assert "delete took only 0.3 s" in warning.message


def test_a_run_as_long_as_asked_for_is_not_said_to_be_shorter() -> None:
    whole = only("too_short", tool(measured_s=0.301, asked_s=0.3))
    assert "took only 0.301 s: below 1 s" in whole.message
    early = only("too_short", tool(measured_s=0.2, asked_s=0.3))
    assert "only 0.2 s; it was asked for 0.3 s" in early.message


def test_a_queue_in_the_tool_is_noted() -> None:
    depth = Depth(asked=32, at_least=32.0, at_most=32.0)
    warning = only("queue_in_tool", tool(depth=depth, queue_in_tool=True))
    assert (warning.severity, warning.data) == (NOTE, {"iodepth": 32})


def test_what_the_tool_did_wrong_or_warns_of() -> None:
    failed = only("operations_failed", tool(errors={"create": 0, "read": 3}))
    assert (failed.severity, failed.data) == (INVALID, {"errors": {"read": 3}})
    wrong = only("wrong_answer", tool(wrong={"files": (199, 200)}))
    assert (wrong.severity, wrong.data) == (INVALID, {"answers": {"files": {"found": 199, "truth": 200}}})
    assert "files: found 199, correct is 200" in wrong.message
    assert verdict(tool(messages=("a", "b"))) == [("tool_warning", WARNING)] * 2


@pytest.mark.parametrize(
    ("name", "limit", "kind", "severity"),
    [
        ("machine_cpu_busy_measured", 97.0, "cpu_saturated", WARNING),
        ("machine_cpu_steal", 5.0, "cpu_stolen", WARNING),
        ("foreign_cpu", 5.0, "foreign_load", WARNING),
        ("pressure_memory_some", 10.0, "memory_pressure", WARNING),
        ("cpu_throttle_events", 1.0, "cpu_throttled", WARNING),
        ("cache_drops", 1.0, "cache_dropped", INVALID),
        ("suspended", 0.1, "suspended", INVALID),
    ],
)
def test_limits_of_figures(name: str, limit: float, kind: str, severity: Severity) -> None:
    assert verdict(facts(figures=figures(**{name: limit}))) == [(kind, severity)]
    assert trial_warnings(facts(figures=figures(**{name: limit * 0.9 if limit != 1 else 0}))) == ()
    assert trial_warnings(facts(figures=figures(**{name: None}))) == ()


def test_caches_that_the_tool_itself_dropped_do_not_count() -> None:
    unknown = WorkFacts(drops=None)  # of a command
    assert verdict(facts(unknown, figures=figures(cache_drops=1.0))) == [("cache_dropped", WARNING)]
    assert trial_warnings(facts(unknown, figures=figures(cache_drops=0.0))) == ()
    assert trial_warnings(facts(WorkFacts(drops=2), figures=figures(cache_drops=2.0))) == ()
    more = facts(WorkFacts(drops=2), figures=figures(cache_drops=3.0))
    assert verdict(more) == [("cache_dropped", INVALID)]


def test_a_little_foreign_load_counts_where_tasks_waited_for_a_cpu() -> None:
    assert trial_warnings(facts(figures=figures(foreign_cpu=1.0, pressure_cpu_some=19.0))) == ()
    given = facts(
        figures=figures(foreign_cpu=1.0, pressure_cpu_some=20.0), texts={"foreign_cpu": ("cc1 (7) 0.20 s",)}
    )
    assert "cc1 (7) 0.20 s" in only("foreign_load", given).message


@pytest.mark.parametrize(
    ("busy", "foreign", "kinds"),
    [(99.0, 80.0, ["foreign_load"]), (99.0, 2.0, ["cpu_saturated"]), (90.0, 2.0, ["foreign_load"]),
     (99.0, None, ["cpu_saturated"])],
)  # fmt: skip
def test_busy_cpus_are_said_to_be_the_tool_s_or_those_of_others_not_both(
    busy: float, foreign: float | None, kinds: list[str]
) -> None:
    given = figures(machine_cpu_busy_measured=busy, foreign_cpu=foreign, pressure_cpu_some=50.0)
    assert [kind for kind, _ in verdict(facts(figures=given))] == kinds


@pytest.mark.parametrize(
    ("zeros", "written", "received", "warned"),
    [
        (True, 64, 3, True),
        (True, 64, 63, False),
        (False, 64, 3, False),
        (True, 640, 63, False),
        (True, 640, 3, True),
    ],
)
def test_zeros_that_were_not_stored(zeros: bool, written: int, received: int, warned: bool) -> None:
    work = WorkFacts(written_bytes=written * MIB, working_set_bytes=64 * MIB, zeros=zeros, flushed=True)
    given = facts(work, figures=figures(device_written_bytes_flushed=received * MIB))
    assert [each.kind for each in trial_warnings(given)].count("zeros_only") == warned


VOLUME = "volume_dirtied_bytes", "volume_written_back_bytes_flushed"
MACHINE = "page_cache_dirtied_bytes", "page_cache_written_bytes"


@pytest.mark.parametrize(
    ("of", "dirtied", "written_back", "kinds"),
    [
        (VOLUME, 31, 31, []),  # the same blocks repeatedly
        (VOLUME, 64, 0, []),  # files that were deleted
        (VOLUME, 64, 64, ["zeros_only"]),
        (VOLUME, 0, 0, ["zeros_only"]),  # another cache, as ZFS
        (MACHINE, 31, 31, []),
        (MACHINE, 64, 64, ["zeros_only"]),
    ],
)
def test_what_never_left_the_page_cache_was_not_compressed(
    of: tuple[str, str], dirtied: int, written_back: int, kinds: list[str]
) -> None:
    work = WorkFacts(written_bytes=64 * MIB, working_set_bytes=64 * MIB, zeros=True, flushed=True)
    mib = {"device_written_bytes_flushed": 30, of[0]: dirtied, of[1]: written_back}
    given = facts(work, figures=figures(**{name: value * MIB for name, value in mib.items()}))
    assert [kind for kind, _ in verdict(given)] == kinds


@pytest.mark.parametrize(
    ("what", "option", "received_mib", "kinds"),
    [
        ("repeats", "rw", 3.5, ["repeated_data"]),  # fio's 4 KiB on btrfs: a thirteenth
        ("repeats", "rw", 61, []),
        ("neither", "rw", 3.5, []),  # no data that shrinks: it is not known why
        ("zeros, repeats", "rw", 3.5, ["zeros_only"]),  # fio's zero_buffers
        ("repeats", "compress=zstd:3", 630, ["repeated_data"]),  # of 640 MiB, in ten passes
        # zeros shrink, and metadata is written beside them
        ("zeros", "compress-force=lzo", 630, ["zeros_only"]),
        ("zeros", "compress=none", 630, []),
        (
            "zeros",
            "compress=zstd:3",
            640,
            [],
        ),  # as much as was written, or more: these files are not compressed
        ("zeros", "compress=zstd:3", 650, []),
        ("buffered zeros", "compress=zstd:3", 630, ["zeros_only"]),
        ("buffered repeats", "compress=zstd:3", 630, []),  # passes overwrite data in memory
        ("buffered repeats", "compress=zstd:3", 50, ["repeated_data"]),
        ("two rounds of zeros", "rw", 110, ["zeros_only"]),  # of 128 MiB, each with files of its own
        ("two rounds of zeros", "rw", 120, []),
    ],
)
def test_data_that_was_not_stored_as_it_was_written(
    what: str, option: str, received_mib: float, kinds: list[str]
) -> None:
    work = WorkFacts(
        zeros="zeros" in what, repeats="repeats" in what, written_bytes=640 * MIB, working_set_bytes=64 * MIB,
        direct="buffered" not in what, rounds=2 if "rounds" in what else 1, flushed=True,
    )  # fmt: skip
    given = facts(
        work,
        figures=figures(device_written_bytes_flushed=received_mib * MIB),
        texts={"mount_options": ("rw", option)},
    )
    assert [each.kind for each in trial_warnings(given)] == kinds


@pytest.mark.parametrize(("dirtied", "kinds"), [(31, []), (32, ["direct_not_honoured"])])
def test_direct_writes_that_dirtied_the_cache_of_their_volume(dirtied: int, kinds: list[str]) -> None:
    work = WorkFacts(written_bytes=64 * MIB, working_set_bytes=64 * MIB, direct=True)
    given = figures(volume_dirtied_bytes=dirtied * MIB, device_written_bytes=64 * MIB)
    assert [kind for kind, _ in verdict(facts(work, figures=given))] == kinds


def test_compression_that_is_not_in_effect_compresses_nothing() -> None:
    work = WorkFacts(zeros=True, written_bytes=640 * MIB, working_set_bytes=64 * MIB, flushed=True)
    given = facts(
        work,
        figures=figures(device_written_bytes_flushed=630 * MIB),
        texts={"mount_options": ("rw", "nodatasum", "compress=zstd:3")},
        changed_options={"compress=zstd": None, "ikeep": None, "commit=30": "commit=5"},
        ignored_options={"compress": "with nodatasum"},
    )
    assert only("options_not_in_effect", given).message == (
        "options: 'compress=zstd' has no effect with nodatasum, 'ikeep' is not in effect and 'commit=30' became "
        "'commit=5'"
    )


def test_another_clock_source() -> None:
    assert trial_warnings(facts(texts={"clocksource": ("tsc", "tsc")})) == ()
    warning = only("clocksource_changed", facts(texts={"clocksource": ("tsc", "hpet")}))
    assert warning.data == {"before": "tsc", "after": "hpet"}


def steps(*levels: float) -> Rate:
    """Return a rate over 8 s: each level for the same time, with small variation."""
    each = 40 // len(levels)
    values = [level * (1 + 0.01 * (index * 7 % 5 - 2)) for level in levels for index in range(each)]
    return Rate(what="bandwidth", interval_s=0.2, values=tuple(values))


@pytest.mark.parametrize(
    ("rate", "changed"),
    [
        (steps(100.0), False),
        (steps(100.0, 110.0), False),  # 10 % is within the limit of a steady state
        (steps(100.0, 60.0), True),
        (steps(*(100.0 - 5 * step for step in range(10))), True),  # a slope of 45 %
        (steps(*(100.0 - step for step in range(40))), True),  # of 48 %, whose halves are 24 % apart
        (steps(*(100.0 - 0.7 * step for step in range(40))), True),  # of 31 %, whose halves are 16 % apart
        (steps(*(100.0 - 0.4 * step for step in range(40))), False),
        (steps(100.0, 84.0), False),  # the slope through two levels is steeper than they are apart
        (Rate(what="bandwidth", interval_s=0.2, values=(100.0, 50.0) * 5), False),  # too few values to judge
    ],
)
def test_a_rate_that_changed_while_it_was_measured(rate: Rate, changed: bool) -> None:
    timed = WorkFacts(measured_s=40.0, asked_s=40.0, rates=(rate,))
    assert verdict(facts(timed)) == [("not_steady", WARNING)] * changed
    amount = WorkFacts(measured_s=40.0, rates=(steps(100.0), rate))
    assert verdict(facts(amount)) == [("not_steady", NOTE)] * changed


def test_a_step_is_as_large_as_its_levels_are_apart() -> None:
    (warning,) = trial_warnings(tool(measured_s=40.0, rates=(steps(100.0, 60.0),)))
    # The first 8 of 40 values are left out. Most of the other 16 pairs are near 60, and so is the median: 40 / 60.
    assert warning.data["shift"] == pytest.approx(40 / 60, abs=0.02)


def stalls(values: tuple[float, ...]) -> list[float]:
    found = trial_warnings(
        tool(measured_s=40.0, rates=(Rate(what="bandwidth", interval_s=0.2, values=values),))
    )
    return [warning.data["stalled_s"] for warning in found if warning.kind == "stalled"]


@pytest.mark.parametrize(("standing", "stalled"), [(4, False), (5, True), (15, True)])
def test_a_rate_that_stood_still_for_a_second(standing: int, stalled: bool) -> None:
    values = (100.0,) * 18 + (4.0,) * standing + (100.0,) * (22 - standing)
    assert stalls(values) == [pytest.approx(0.2 * standing)] * stalled


@pytest.mark.parametrize(
    ("values", "stalled_s"),
    [
        ((100.0,) * 10 + (0.0,) * 30 + (100.0,) * 10, 6.0),  # most of the run
        ((0.0,) * 10 + (100.0,) * 40, None),  # the tool had not begun
        (((100.0,) + (0.0,) * 7) * 6, None),  # operations of 1.6 s
        (((100.0,) + (0.0,) * 7) * 5 + (100.0,) + (0.0,) * 30, 6.0),
        (((100.0,) * 20 + (0.0,) * 6) * 4, 1.2),  # a device that cleans up every few seconds
    ],
)
def test_which_pauses_are_stalls(values: tuple[float, ...], stalled_s: float | None) -> None:
    assert stalls(values) == ([] if stalled_s is None else [pytest.approx(stalled_s)])


def test_a_directory_in_memory_is_no_storage() -> None:
    assert verdict(facts(filesystem="tmpfs")) == [("directory_in_memory", WARNING)]
    assert verdict(facts(filesystem="ext4", image_filesystem="tmpfs")) == [("directory_in_memory", WARNING)]
    assert verdict(facts(filesystem="ext4", image_filesystem="xfs")) == []


def test_what_the_trial_says_of_itself() -> None:
    assert verdict(facts(remade=True)) == [("filesystem_remade", NOTE)]
    assert verdict(facts(caches_dropped=False)) == [("cache_not_dropped", WARNING)]
    assert verdict(facts(caches_dropped=False, cold=False)) == []
    assert verdict(facts(medium_buffered=True)) == [("loop_buffered", WARNING)]
    small = facts(filesystem="btrfs", volume_bytes=2 * GIB, fair_volume_bytes=16 * GIB)
    assert only("volume_small", small).message.startswith(
        "the volume has 2 GiB; btrfs is slower below 16 GiB"
    )
    assert trial_warnings(facts(filesystem="btrfs", volume_bytes=16 * GIB, fair_volume_bytes=16 * GIB)) == ()
    failure = ProbeFailure(probe="vmstat", moment="end", error="gone")
    assert only("probe_failed", facts(probe_failures=(failure,))).data == {"probe": "vmstat", "moment": "end"}


def test_a_known_limit_is_noted_and_nothing_worse_is_hidden() -> None:
    given = read(64 * MIB, 640 * MIB, 64 * MIB)
    assert [one.severity for one in trial_warnings(given, ("fits_in_memory",))] == [NOTE]
    assert [one.severity for one in trial_warnings(given, ("too_short",))] == [WARNING]
    broken = tool(measured_s=0.1, asked_s=1.0)
    assert [one.severity for one in trial_warnings(broken, ("too_short",))] == [INVALID]
