"""Tests of the CPU, tool and vmstat probes, on synthetic files and on files of Linux 6.18 with two CPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.probed import WORK, warnings_of

from fslab.probes import REGISTRY, Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.trial_record import Severity, Value
from fslab.units import Unit

GOLDEN = Path(__file__).parents[1] / "golden/linux-6.18"
BEFORE = "cpu 1000 20 500 8000 100 10 30 5 700 0\ncpu0 500 10 250 4000 50 5 15 3 350 0\ncpu1 0\nintr 5\n"


def snapshot(probe: Probe, root: Path, file: str, text: str) -> Snapshot:
    (root / file).write_text(text)
    return probe.snapshot(Target(devices=(), filesystem="ext4", directory=Path("/mnt/x"), proc=root))


def cpu(tmp_path: Path, before: str, end: str) -> ProbeFinding:
    probe = REGISTRY.get("cpu")
    taken = {
        SnapshotMoment.BEFORE: snapshot(probe, tmp_path, "stat", before),
        SnapshotMoment.END: snapshot(probe, tmp_path, "stat", end),
    }
    return probe.derive(taken, WORK)


def percent(found: ProbeFinding) -> dict[str, float | None]:
    assert {value.unit for value in found.values.values()} <= {Unit.PERCENT}
    return {name: value.value for name, value in found.values.items()}


def test_shares_of_all_cpus(tmp_path: Path) -> None:
    # of 100 ticks: 20 user + 5 nice, 30 system, 25 idle, 10 iowait, 2 irq, 4 softirq, 4 steal
    end = "cpu 1020 25 530 8025 110 12 34 9 710 0\ncpu0 1\ncpu1 1\n"
    found = cpu(tmp_path, BEFORE, end)
    assert percent(found) == {
        "machine_cpu_user": 25.0,
        "machine_cpu_system": 30.0,
        "machine_cpu_irq": 6.0,
        "machine_cpu_iowait": 10.0,
        "machine_cpu_steal": 4.0,
        "machine_cpu_busy": 65.0,
    }
    assert warnings_of(found) == ()


def test_a_recorded_run(tmp_path: Path) -> None:
    texts = [(GOLDEN / "direct-write" / f"{name}.proc-stat").read_text() for name in ("before", "end")]
    # user 0, system 3, idle 5, iowait 3, softirq 1: 12 ticks
    assert percent(cpu(tmp_path, *texts)) == {
        "machine_cpu_user": 0.0,
        "machine_cpu_system": 25.0,
        "machine_cpu_irq": pytest.approx(100 / 12),
        "machine_cpu_iowait": 25.0,
        "machine_cpu_steal": 0.0,
        "machine_cpu_busy": pytest.approx(400 / 12),
    }


def test_stolen_time_is_a_warning(tmp_path: Path) -> None:
    end = "cpu 1045 20 500 8050 100 10 30 10 0 0\ncpu0 1\ncpu1 1\n"
    (warning,) = warnings_of(cpu(tmp_path, BEFORE, end))
    assert (warning.kind, warning.severity) == ("cpu_stolen", Severity.WARNING)
    assert warning.data == {"steal_percent": 5.0}


def test_no_time_between_the_snapshots_is_unknown(tmp_path: Path) -> None:
    assert cpu(tmp_path, BEFORE, BEFORE) == ProbeFinding(values={})


def test_iowait_that_goes_back_is_no_time(tmp_path: Path) -> None:
    end = "cpu 1050 20 500 8050 90 10 30 5 0 0\ncpu0 1\ncpu1 1\n"
    assert percent(cpu(tmp_path, BEFORE, end))["machine_cpu_busy"] == 50.0


def test_a_machine_without_the_file_is_an_error(tmp_path: Path) -> None:
    target = Target(devices=(), filesystem="ext4", directory=Path("/mnt/x"), proc=tmp_path)
    for name in ("cpu", "vmstat"):
        with pytest.raises(FileNotFoundError):
            REGISTRY.get(name).snapshot(target)


def test_what_the_tool_used() -> None:
    assert REGISTRY.get("tool-cpu").derive({}, WORK).values == {
        "tool_cpu_user_s": Value(value=0.5, unit=Unit.SECONDS),
        "tool_cpu_system_s": Value(value=1.5, unit=Unit.SECONDS),
        "tool_max_rss": Value(value=8192, unit=Unit.BYTES),
        "tool_voluntary_switches": Value(value=3, unit=Unit.COUNT),
        "tool_involuntary_switches": Value(value=4, unit=Unit.COUNT),
    }
    assert REGISTRY.get("tool-cpu").derive({}, replace(WORK, usage=None)).values == {}


def vmstat(tmp_path: Path, before: str, end: str) -> dict[str, Value]:
    probe = REGISTRY.get("vmstat")
    taken = {
        SnapshotMoment.BEFORE: dict(snapshot(probe, tmp_path, "vmstat", before)),
        SnapshotMoment.END: dict(snapshot(probe, tmp_path, "vmstat", end)),
    }
    taken[SnapshotMoment.END]["page_bytes"] = 4096
    return dict(probe.derive(taken, WORK).values)


def test_pages_and_kibibytes_become_bytes(tmp_path: Path) -> None:
    texts = [(GOLDEN / "direct-write" / f"{name}.vmstat").read_text() for name in ("before", "flushed")]
    assert vmstat(tmp_path, *texts) == {
        "all_devices_read_bytes": Value(value=0, unit=Unit.BYTES),
        # 142518912 - 142387736 KiB: the 64 MiB twice, to the loop device and to the disk under it
        "all_devices_written_bytes": Value(value=131176 * 1024, unit=Unit.BYTES),
        "page_cache_dirtied_bytes": Value(value=16445 * 4096, unit=Unit.BYTES),  # 39354811 - 39338366
        "page_cache_written_bytes": Value(value=16404 * 4096, unit=Unit.BYTES),  # 38971373 - 38954969
        "major_faults": Value(value=0, unit=Unit.COUNT),
        "cache_drops": Value(value=None, unit=Unit.COUNT),  # missing in the recorded files
    }


def test_a_counter_that_the_kernel_lacks_is_unknown(tmp_path: Path) -> None:
    found = vmstat(tmp_path, "pgpgin 5\npgpgout 7\n", "pgpgin 6\npgpgout 7\n")
    assert found["all_devices_read_bytes"].value == 1024
    assert found["page_cache_dirtied_bytes"].value is None
    assert found["major_faults"] == Value(value=None, unit=Unit.COUNT)


def memory(tmp_path: Path, before: str, end: str, work: Work) -> ProbeFinding:
    probe = REGISTRY.get("vmstat")
    taken = {
        SnapshotMoment.BEFORE: snapshot(probe, tmp_path, "vmstat", before),
        SnapshotMoment.END: snapshot(probe, tmp_path, "vmstat", end),
    }
    return probe.derive(taken, work)


def test_caches_dropped_by_somebody_else_make_the_trial_invalid(tmp_path: Path) -> None:
    found = memory(
        tmp_path,
        "nr_dirtied 0\ndrop_pagecache 5\ndrop_slab 5\n",
        "nr_dirtied 0\ndrop_pagecache 6\ndrop_slab 6\n",
        WORK,
    )
    (warning,) = warnings_of(found)
    assert (warning.kind, warning.severity) == ("cache_dropped", Severity.INVALID)
    assert warning.data == {"drops": 2}


@pytest.mark.parametrize(("dirtied_pages", "warned"), [(10, False), (600, False), (950, True)])
def test_direct_writes_that_dirty_the_page_cache_are_a_warning(
    tmp_path: Path, dirtied_pages: int, warned: bool
) -> None:
    direct = replace(WORK, written_bytes=1000 * 4096, direct=True)
    found = memory(tmp_path, "nr_dirtied 100\n", f"nr_dirtied {100 + dirtied_pages}\n", direct)
    assert [warning.kind for warning in warnings_of(found, direct)] == ["direct_not_honoured"] * warned
    assert not warnings_of(memory(tmp_path, "nr_dirtied 100\n", "nr_dirtied 700\n", WORK))
