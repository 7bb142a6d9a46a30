"""IOzone, bonnie++ and shell loops for real, small, on the file systems that studies compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fslab.campaign.trial import run_trial
from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.record import TrialRecord
from fslab.storage import Site
from fslab.system import proc, tools

FILESYSTEMS = ["ext4", "xfs", "btrfs"]
iozone_is_here = pytest.mark.skipif(tools.find("iozone") is None, reason="iozone3 is in Debian's non-free")


def run(site: Site, filesystem: str, tool: str, parameters: dict[str, Any]) -> TrialRecord:
    medium = MediumSpec(name="m", type="ram", options={"size": "320m"})
    stack = StackSpec(name=filesystem, medium=medium, filesystem=filesystem)
    cell = Cell(
        stack=stack, workload=WorkloadSpec(name="w", tool=tool, parameters=parameters), time_limit_s=60
    )
    return run_trial(
        cell, TrialKey(campaign=site.campaign, block=0, seed=7), site, machine={"kernel": "here"}
    )


def written(record: TrialRecord) -> float:
    found = record.probes["device_written_bytes_flushed"].value
    assert found is not None
    return found


def known(record: TrialRecord) -> dict[str, float]:
    assert record.metrics, record.error
    return {name: value.value for name, value in record.metrics.items() if value.value is not None}


@iozone_is_here
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_iozone_at_a_point(filesystem: str, site: Site) -> None:
    record = run(site, filesystem, "iozone", {"size": "16m", "record": "64k"})
    assert len(known(record)) == 6
    assert record.provenance.tools["iozone"] is not None
    # written, rewritten and written at random, each with an fsync
    assert written(record) >= 3 * (16 << 20)


@iozone_is_here
def test_iozone_reads_cold_what_was_written_before(site: Site) -> None:
    record = run(site, "ext4", "iozone", {"tests": 1, "size": "32m", "record": "64k", "retest": False})
    assert set(known(record)) == {"read_bandwidth"}
    read = record.probes["device_read_bytes"].value
    assert read is not None
    assert read >= 32 << 20


@iozone_is_here
def test_iozone_sweeps_the_points_that_were_planned(site: Site) -> None:
    record = run(site, "xfs", "iozone", {"smallest": "32m", "largest": "64m", "largest-record": "16k"})
    # two sizes, three record lengths from 4k on (also of files from 32m on), six tests
    assert len(known(record)) == 36


@iozone_is_here
def test_iozone_with_processes_and_direct(site: Site) -> None:
    record = run(site, "ext4", "iozone", {"size": "8m", "record": "64k", "threads": 2, "direct": True})
    assert len(known(record)) == 6


@iozone_is_here
def test_iozone_visits_the_same_records_in_every_run(tmp_path: Path) -> None:
    point = ["-s", "256k", "-r", "4k", "-i", "0", "-i", "2", "-f", str(tmp_path / "f")]
    trace = ["strace", "-e", "trace=lseek,pread64"]
    first, second = (proc.run([*trace, "iozone", *point], cwd=tmp_path).stderr for _ in range(2))
    assert "lseek" in first
    assert first == second


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_bonnie(filesystem: str, site: Site) -> None:
    given = {"size": "32m", "files": 2048, "dirs": 4, "max-size": "1k", "min-size": "1k", "fast": False}
    record = run(site, filesystem, "bonnie", given)
    # 3 MiB byte by byte take more than half a second anywhere; the others may not
    assert {"putc_bandwidth", "write_latency_max", "seq_create_latency_max"} <= set(known(record))
    assert record.provenance.tools["bonnie++"] is not None
    assert "tool_warning" in [warning.kind for warning in record.validity]


def test_bonnie_writes_only_its_first_pass_past_the_cache(tmp_path: Path) -> None:
    argv = ["bonnie++", "-q", "-d", str(tmp_path), "-u", "root", "-r", "0", "-s", "2", "-n", "0", "-f", "-D"]
    traced = proc.run(["strace", "-f", "-e", "trace=openat", *argv], cwd=tmp_path).stderr
    opened = [line for line in traced.splitlines() if "/Bonnie." in line]
    assert {"O_DIRECT" in line for line in opened if "O_CREAT" in line} == {True}
    assert {"O_DIRECT" in line for line in opened if "O_CREAT" not in line} == {False}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("operation", ["create", "read", "rmdir"])
def test_shell_loops(filesystem: str, operation: str, site: Site) -> None:
    assert (
        known(run(site, filesystem, "shell", {"operation": operation, "files": 200}))[f"{operation}_rate"] > 0
    )


@pytest.mark.parametrize("operation", ["delete", "mkdir", "touch", "echo", "cat", "dd", "rm"])
def test_every_loop(operation: str, site: Site) -> None:
    record = run(site, "ext4", "shell", {"operation": operation, "files": 50, "sync": True})
    assert known(record)[f"{operation}_rate"] > 0


@pytest.mark.parametrize("operation", ["create", "dd"])
def test_a_loop_on_a_full_disk(operation: str, site: Site) -> None:
    # Too large for the medium on purpose: a study with this would be refused before.
    record = run(site, "ext4", "shell", {"operation": operation, "files": 400, "size": "1m"})
    assert record.status_text == "failed:no_space"


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [("bonnie", {"size": "512m"}), pytest.param("iozone", {"size": "512m"}, marks=iozone_is_here)],
)
def test_a_full_disk(tool: str, parameters: dict[str, Any], site: Site) -> None:
    assert run(site, "ext4", tool, parameters).status_text == "failed:no_space"
