"""Tests of probes for disturbances, on synthetic /proc and /sys trees: clock, pressure, throttling, other programs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.probed import WORK, values

from fslab.probes import REGISTRY, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.trial_record import Severity, Value
from fslab.units import Unit
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings


def target(root: Path) -> Target:
    return Target(devices=(), filesystem="ext4", directory=Path("/mnt/x"), sys=root, proc=root)


def derive(name: str, before: Snapshot, end: Snapshot) -> ProbeFinding:
    return REGISTRY.get(name).derive({SnapshotMoment.BEFORE: before, SnapshotMoment.END: end}, WORK)


def clocks(real_s: float, monotonic_s: float, boot_s: float, source: str | None = "tsc") -> Snapshot:
    seconds = {"real_ns": real_s, "monotonic_ns": monotonic_s, "boot_ns": boot_s}
    return {**{name: round(each * 1e9) for name, each in seconds.items()}, "source": source}


def test_clocks_are_read_as_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the task is preempted between two readings, the delay must not look like a suspended machine. Therefore the
    clocks are read again."""
    now_ns, calls = 10**12, 0

    def preempted_at_times(clock: int) -> int:
        nonlocal now_ns, calls
        calls += 1
        # 16 ms pass between two readings of each of the first three attempts.
        now_ns += 16_000_000 if calls in {2, 7, 12} else 500
        return (
            now_ns
            + {time.CLOCK_MONOTONIC: 0, time.CLOCK_REALTIME: 10**18, time.CLOCK_BOOTTIME: 10**15}[clock]
        )

    monkeypatch.setattr(time, "clock_gettime_ns", preempted_at_times)
    taken = REGISTRY.get("clock").snapshot(target(tmp_path))
    assert abs(taken["boot_ns"] - taken["monotonic_ns"] - 10**15) < 2000
    assert abs(taken["real_ns"] - taken["monotonic_ns"] - 10**18) < 2000
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: calls)  # clocks that do not advance
    assert REGISTRY.get("clock").snapshot(target(tmp_path))["boot_ns"] == calls


def test_clocks_that_are_always_read_late_are_read_a_limited_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is never quiet, the closest attempt counts, and reading the clocks ends."""
    calls = 0

    def late(_: int) -> int:
        nonlocal calls
        calls += 1
        assert calls < 1000, "the attempts have no end"
        return calls * 16_000_000

    monkeypatch.setattr(time, "clock_gettime_ns", late)
    taken = REGISTRY.get("clock").snapshot(target(tmp_path))
    assert abs(taken["boot_ns"] - taken["monotonic_ns"]) < 64_000_000


@pytest.mark.parametrize(
    ("end", "step_s", "suspended_s"),
    [
        (clocks(1010, 20, 30), 0.0, 0.0),
        (clocks(1013.5, 20, 30), 3.5, 0.0),  # the wall clock was set forward
        (clocks(1008, 20, 30), -2.0, 0.0),
        (clocks(1017, 20, 37), 0.0, 7.0),  # suspended for 7 s, in which the wall clock advanced too
    ],
)
def test_clocks_that_go_apart(end: Snapshot, step_s: float, suspended_s: float) -> None:
    found = derive("clock", clocks(1000, 10, 20), end)
    assert values(found) == {
        "clock_window": 10.0,
        "clock_measured": 2.0,
        "clock_step": step_s,
        "suspended": suspended_s,
    }
    assert found.texts == {"clocksource": ("tsc", "tsc")}


@pytest.mark.parametrize("work", [replace(WORK, read_bytes=None), replace(WORK, written_bytes=None)])
def test_the_measured_time_is_not_that_of_the_counters_where_the_tool_left_out_a_part(work: Work) -> None:
    """fio does not report what it transfers in its ramp time, which the kernel counts."""
    taken = {SnapshotMoment.BEFORE: clocks(1000, 10, 20), SnapshotMoment.END: clocks(1010, 20, 30)}
    assert values(REGISTRY.get("clock").derive(taken, work))["clock_measured"] is None


def test_the_name_of_the_clock_source(tmp_path: Path) -> None:
    probe = REGISTRY.get("clock")
    assert probe.snapshot(target(tmp_path))["source"] is None
    directory = tmp_path / "devices/system/clocksource/clocksource0"
    directory.mkdir(parents=True)
    (directory / "current_clocksource").write_text("kvm-clock\n")
    taken = probe.snapshot(target(tmp_path))
    assert taken["source"] == "kvm-clock"
    assert min(taken["boot_ns"], taken["monotonic_ns"]) > 0
    assert derive("clock", clocks(1, 1, 1, None), clocks(2, 2, 2, None)).texts == {"clocksource": ()}


def pressure(root: Path, cpu: int, io: int, io_full: int) -> Snapshot:
    directory = root / "pressure"
    directory.mkdir(exist_ok=True)
    (directory / "cpu").write_text(f"some avg10=0.66 avg60=1.28 avg300=1.74 total={cpu}\n")
    (directory / "io").write_text(
        f"some avg10=0.56 avg60=1.27 avg300=1.97 total={io}\n"
        f"full avg10=0.54 avg60=1.21 avg300=1.74 total={io_full}\n"
    )
    return REGISTRY.get("pressure").snapshot(target(root))


def test_shares_of_the_time_that_tasks_waited(tmp_path: Path) -> None:
    before = {**pressure(tmp_path, 1_000_000, 5_000_000, 700_000), "now_us": 100}
    end = {**pressure(tmp_path, 1_500_000, 6_900_000, 1_000_000), "now_us": 2_000_100}
    found = derive("pressure", before, end)
    # In 2 s, some tasks waited for a CPU for 0.5 s and for I/O for 1.9 s; for 0.3 s of this, all tasks waited for I/O.
    assert values(found) == {"pressure_cpu_some": 25.0, "pressure_io_some": 95.0, "pressure_io_full": 15.0}
    assert {value.unit for value in found.values.values()} == {Unit.PERCENT}


def test_a_kernel_without_pressure_tells_nothing(tmp_path: Path) -> None:
    taken = REGISTRY.get("pressure").snapshot(target(tmp_path))
    assert values(derive("pressure", taken, {**taken, "now_us": taken["now_us"] + 1000})) == {}


def test_pressure_that_opens_but_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "pressure/cpu").mkdir(parents=True)  # a directory cannot be read either (EISDIR)
    taken = REGISTRY.get("pressure").snapshot(target(tmp_path))
    assert set(taken) == {"now_us"}


def throttled(root: Path, counts: Mapping[str, tuple[int, int]]) -> Snapshot:
    for cpu, (core, package) in counts.items():
        directory = root / "devices/system/cpu" / cpu / "thermal_throttle"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "core_throttle_count").write_text(f"{core}\n")
        (directory / "package_throttle_count").write_text(f"{package}\n")
    return REGISTRY.get("throttle").snapshot(target(root))


def test_events_of_all_cores_and_of_their_package_once(tmp_path: Path) -> None:
    before = throttled(tmp_path, {"cpu0": (3, 10), "cpu1": (0, 10)})
    end = throttled(tmp_path, {"cpu0": (5, 14), "cpu1": (1, 14)})
    assert values(derive("throttle", before, end)) == {"cpu_throttle_events": 2 + 1 + 4}
    assert values(derive("throttle", end, end)) == {"cpu_throttle_events": 0}


def test_a_processor_that_does_not_count_is_unknown(tmp_path: Path) -> None:
    taken = REGISTRY.get("throttle").snapshot(target(tmp_path))
    assert derive("throttle", taken, taken) == ProbeFinding(values={})


def process(
    pid: int,
    name: str,
    ticks: tuple[int, int, int, int],
    *,
    parent: int = 1,
    flags: int = 0,
    started: int = 1,
) -> bytes:
    user, system, children_user, children_system = ticks
    return (
        f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 {flags} 0 0 0 0 "
        f"{user} {system} {children_user} {children_system} 20 0 1 0 {started} 0 0\n"
    ).encode()


def programs(*lines: bytes, now_s: float, own: frozenset[int] = frozenset()) -> Snapshot:
    by_pid = {int(line.split()[0]): line for line in lines}
    return {"lines": by_pid, "own": own, "now_s": now_s, "tick_s": 0.01, "cpus": 2}


def test_time_of_other_programs_and_who_they_are() -> None:
    kernel = 0x00200040
    before = programs(
        process(10, "init", (5, 5, 0, 0)),
        process(20, "kworker/0:1", (100, 0, 0, 0), flags=kernel),
        process(30, "make (all)", (10, 0, 100, 0)),
        process(31, "cc1", (40, 0, 0, 0), parent=30),
        now_s=0.0,
    )
    end = programs(
        process(10, "init", (5, 5, 0, 0)),
        process(20, "kworker/0:1", (900, 0, 0, 0), flags=kernel),
        # cc1 had used 40 ticks before; it used 20 more and ended, and make waited for it
        process(30, "make (all)", (12, 0, 160, 0)),
        process(40, "hog", (50, 30, 0, 0), started=77),
        now_s=4.0,
    )
    found = derive("foreign-cpu", before, end)
    # 2 of make, 20 of cc1 and 80 of hog are 102 of the 800 ticks that two CPUs have in 4 s. Kernel threads used
    # another 800.
    assert found.values == {
        "foreign_cpu": Value(value=12.75, unit=Unit.PERCENT),
        "kernel_threads_cpu": Value(value=8.0, unit=Unit.SECONDS),
    }
    assert found.texts == {"foreign_cpu": ("hog (40) 0.80 s", "make (all) (30) 0.22 s")}


@pytest.mark.parametrize(("flags", "name"), [(0x00200040, "kernel_threads_cpu"), (0, "foreign_cpu")])
def test_only_what_is_visible_has_a_figure(flags: int, name: str) -> None:
    """In a guest, fslab is the only program; in a container, there are no kernel threads, which may well work."""
    before, end = (
        programs(process(20, "it", (ticks, 0, 0, 0), flags=flags), now_s=now_s)
        for ticks, now_s in ((100, 0.0), (200, 4.0))
    )
    assert [*derive("foreign-cpu", before, end).values] == [name]


def test_what_a_child_used_before_is_nobody_s_work_meanwhile() -> None:
    """When a process ends, all its CPU time is added to the process that waits for it. Time from before the run is
    subtracted again: here an hour of ``long``, which reaches ``sh`` through ``timeout``."""
    before = programs(
        process(10, "sh", (1, 0, 0, 0)), process(11, "timeout", (1, 0, 0, 0), parent=10),
        process(12, "long", (360_000, 0, 0, 0), parent=11), process(13, "hog", (0, 0, 0, 0)), now_s=0.0,
    )  # fmt: skip
    end = programs(process(10, "sh", (1, 0, 360_003, 0)), process(13, "hog", (90, 0, 0, 0)), now_s=1.0)
    found = derive("foreign-cpu", before, end)
    assert found.texts == {"foreign_cpu": ("hog (13) 0.90 s",)}


def test_a_number_that_was_given_to_another_process_counts_from_its_start() -> None:
    before = programs(process(10, "old", (500, 0, 0, 0), started=1), now_s=0.0)
    end = programs(process(10, "new", (30, 0, 0, 0), started=99), now_s=1.0)
    assert derive("foreign-cpu", before, end).texts == {"foreign_cpu": ("new (10) 0.30 s",)}


def test_what_ends_unwaited_for_hides_nobody_else_s_time() -> None:
    kernel = 0x00200040
    before = programs(
        process(10, "init", (1, 0, 0, 0)), process(2, "kthreadd", (1, 0, 0, 0), flags=kernel),
        process(20, "kworker/0:1", (3000, 0, 0, 0), flags=kernel, parent=2),
        process(21, "loop0", (100, 0, 0, 0), flags=kernel), process(30, "orphan", (10_000, 0, 0, 0), parent=99),
        process(40, "hog", (0, 0, 0, 0)), now_s=0.0,
    )  # fmt: skip
    end = programs(
        process(10, "init", (1, 0, 0, 0)),
        process(2, "kthreadd", (1, 0, 0, 0), flags=kernel),
        process(21, "loop0", (400, 0, 0, 0), flags=kernel),
        process(40, "hog", (100, 0, 0, 0)),
        now_s=5.0,
    )
    found = derive("foreign-cpu", before, end)
    assert found.values == {
        "foreign_cpu": Value(value=10.0, unit=Unit.PERCENT),
        "kernel_threads_cpu": Value(value=3.0, unit=Unit.SECONDS),
    }


def test_what_init_inherits_and_waits_for_is_no_load() -> None:
    """A parent ends, init inherits its child, and the child ends: init gets what the child had used all its life."""
    before = programs(
        process(1, "init", (1, 0, 0, 0), parent=0), process(10, "sh", (5, 0, 0, 0), parent=1),
        process(11, "parent", (1, 0, 0, 0), parent=10), process(12, "child", (90_000, 0, 0, 0), parent=11), now_s=0.0,
    )  # fmt: skip
    end = programs(
        process(1, "init", (1, 0, 90_000, 0), parent=0), process(10, "sh", (5, 0, 1, 0), parent=1), now_s=5.0
    )
    assert derive("foreign-cpu", before, end).values["foreign_cpu"].value == 0.0


def test_daemons_of_the_workload_are_no_other_programs() -> None:
    """One goes on, with a child of its own; one that was started before the run ended, and init waited for it."""
    before = programs(
        process(1, "init", (1, 0, 0, 0), parent=0), process(20, "postgres", (10, 0, 0, 0)),
        process(21, "logger", (5, 0, 0, 0)), process(30, "cc1", (0, 0, 0, 0)),
        own=frozenset({20, 21}), now_s=0.0,
    )  # fmt: skip
    end = programs(
        process(1, "init", (1, 0, 400, 0), parent=0), process(20, "postgres", (310, 0, 0, 0)),
        process(22, "worker", (200, 0, 0, 0), parent=20), process(30, "cc1", (100, 0, 0, 0)),
        own=frozenset({20}), now_s=5.0,
    )  # fmt: skip
    found = derive("foreign-cpu", before, end)
    assert found.values["foreign_cpu"].value == 10.0
    assert found.texts["foreign_cpu"] == ("cc1 (30) 1.00 s",)


def test_a_process_that_works_in_the_file_system_under_test_belongs_to_the_trial(tmp_path: Path) -> None:
    for pid, place in ((41, tmp_path / "mnt/work/data"), (42, tmp_path)):
        place.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "stat").write_bytes(process(pid, "x", (1, 1, 0, 0)))
        (tmp_path / "proc" / str(pid) / "cwd").symlink_to(place)
    given = Target(devices=(), filesystem="ext4", directory=tmp_path / "mnt/work", proc=tmp_path / "proc")
    assert REGISTRY.get("foreign-cpu").snapshot(given)["own"] == {41}


def test_where_no_process_can_be_seen_the_load_is_unknown() -> None:
    assert derive("foreign-cpu", programs(now_s=0.0), programs(now_s=1.0)) == ProbeFinding(values={})


def test_our_own_process_and_our_disks_are_left_out(tmp_path: Path) -> None:
    for pid in (os.getpid(), 4711):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_bytes(process(pid, "x", (1, 1, 0, 0)))
    (tmp_path / "4712").mkdir()  # has ended: no stat file
    (tmp_path / "self").mkdir()
    for pid, parent in ((4713, os.getpid()), (4714, 1)):  # a virtual disk of this process, and one of another
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_bytes(process(pid, "fslab-disk", (9, 9, 0, 0), parent=parent))
    taken = REGISTRY.get("foreign-cpu").snapshot(target(tmp_path))
    assert set(taken["lines"]) == {4711, 4714}


def test_the_reference_loop_tells_how_much_the_machine_s_speed_moved() -> None:
    found = derive("reference-loop", {"rate": 100.0}, {"rate": 400.0})
    assert values(found) == {
        "reference_rate": pytest.approx(200.0),
        "reference_before": 100.0,
        "reference_moved": pytest.approx(75.0),
    }
    assert values(derive("reference-loop", {"rate": 100.0}, {"rate": 100.0}))["reference_moved"] == 0


def test_the_reference_loop_reads_something(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    assert REGISTRY.get("reference-loop").snapshot(target(tmp_path))["rate"] > 0
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def array(root: Path, name: str, missing: int | str, action: int | str, last: int | str = "none") -> None:
    directory = root / "class/block" / name / "md"
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in (("degraded", str(missing)), ("raid_disks", "2"), ("sync_action", action),
                       ("last_sync_action", last)):  # fmt: skip
        (directory / file).write_text(f"{text}\n")


@pytest.mark.parametrize("volume", ["md0", "sda"])  # that of a layout; one that lies on an array
def test_arrays_that_lack_a_disk_or_are_rebuilt(tmp_path: Path, volume: str) -> None:
    """RAID 1 with one of two disks is another stack than the one of that name."""
    probe = REGISTRY.get("md-arrays")
    watched = replace(
        target(tmp_path), volume=volume, devices=("sda", "sdb"), below=("md0",) * (volume != "md0")
    )

    def warned(*states: tuple[int | str, ...], faults: bool = False) -> list[tuple[Severity, str]]:
        taken = {}
        for moment, state in zip(probe.moments, states, strict=True):
            array(tmp_path, "md0", *state)
            taken[moment] = probe.snapshot(watched)
        found = probe.derive(taken, WORK)
        facts = TrialFacts(work=WorkFacts(), cold=True, texts=found.texts, disk_faults=faults)
        return [(each.severity, each.message) for each in trial_warnings(facts)]

    severity = Severity.INVALID if volume == "md0" else Severity.WARNING
    assert warned((0, "idle"), (0, "idle")) == []
    assert [(severity, True)] == [
        (each, "md0 lacked 1 of its 2 disks" in text) for each, text in warned((0, "idle"), (1, "frozen"))
    ]
    assert [(severity, True)] == [
        (each, "md0: a resync was running" in text) for each, text in warned((0, "resync"), (0, "idle"))
    ]
    assert [(severity, True)] == [
        (each, "md0: a recovery has run" in text)
        for each, text in warned((0, "idle"), (0, "idle", "recovery"))
    ], "it began and ended in the run"
    assert warned((0, "idle", "recovery"), (0, "idle", "recovery")) == [], "an earlier one"
    assert [each for each, _ in warned((0, "idle"), (1, "idle"), faults=True)] == [Severity.WARNING]


def test_a_disk_without_an_array_has_none(tmp_path: Path) -> None:
    (tmp_path / "class/block/md1/md").mkdir(parents=True)  # RAID 0: no disk can be missing
    probe = REGISTRY.get("md-arrays")
    taken = probe.snapshot(replace(target(tmp_path), volume="md1", devices=("sda",)))
    assert probe.derive(dict.fromkeys(probe.moments, taken), WORK) == ProbeFinding(values={})
