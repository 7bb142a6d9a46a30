"""Tests of studies in a guest: run to the end, killed, interrupted, and run by another user than root."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.e2e.conftest import Fslab, end
from tests.e2e.test_other_user import as_nobody, home
from tests.guest.conftest import group_members
from tests.hold import mark_of
from tests.limits import wait_for

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY
from fslab.system import memory, mounts, paths, process_marks

__all__ = ["home"]

STUDY = """
title: two file systems in a guest
on: uml
guest_memory: 256m
media: {memory: {type: ram, size: 96m}}
stacks: {fs: {medium: memory, filesystem: [ext4, f2fs]}}
workloads:
  write: {tool: fio, rw: randwrite, bs: 4k, iodepth: 8, direct: true, size: 8m, runtime: 1200ms}
trials: 1
"""


@pytest.fixture(autouse=True)
def has_uml() -> None:
    if missing := REGISTRY.get("uml").missing(MachineSpec(type="uml")):
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "guest.yaml"
    path.write_text(STUDY)
    return path


def test_a_study_runs_in_a_guest_and_says_so(fslab: Fslab, study: Path) -> None:
    planned = fslab("plan", study, "--commands").stdout
    assert "write on f2fs in uml" in planned
    assert "linux.uml mem=256m" in planned
    assert "mkfs.f2fs" in planned
    assert "losetup" not in planned
    done = fslab("run", study)
    for word in ("ext4", "f2fs", "IOPS"):
        assert word in done.stdout
    figures = fslab("results", "--all").stdout
    assert "measured in a guest machine" in figures
    assert "in a uml guest: kernel" in figures
    trials = fslab.trials()
    assert len(trials) == 2
    assert {trial["provenance"]["machine"]["machine"] for trial in trials} == {"uml"}
    assert len({trial["provenance"]["machine"]["boot_id"] for trial in trials}) == 1, "one boot for all"


def test_killed_during_a_trial_it_leaves_no_process_and_no_file(
    fslab: Fslab, study: Path, own_directories: Path
) -> None:
    process = fslab.start("run", study, "--set", "workloads.write.runtime=60s")
    state = own_directories / "state"
    wait_for(lambda: bool(list(state.rglob("*.jsonl"))))
    journal = next(state.rglob("*.jsonl"))
    campaign = journal.stem
    images = f"fslab-{campaign}-*"
    wait_for(lambda: mark_of(journal))
    mark = mark_of(journal)
    wait_for(lambda: any("linux.uml" in command_of(pid) for pid in process_marks.marked_processes(mark)))
    leader = next(pid for pid in process_marks.marked_processes(mark) if "linux.uml" in command_of(pid))
    wait_for(lambda: bool(list(memory.SHARED.glob(images))))
    console = paths.runtime() / campaign / "guest-1/console"
    assert (mounts.at(console.parent) is not None) == (os.geteuid() == 0), "bounded, where it may be"
    wait_for(
        lambda: (
            "mounted filesystem" in console.read_text() or "F2FS-fs (ubdb): Mounted" in console.read_text()
        )
    )
    assert len(group_members(leader)) > 2, "the kernel and its helpers"
    end(process, signal.SIGKILL)
    wait_for(lambda: not group_members(leader))
    wait_for(lambda: not list(state.rglob("*.jsonl")))
    assert not process_marks.marked_processes(mark)
    assert not list(memory.SHARED.glob(images))
    assert mounts.at(console.parent) is None
    assert not (paths.runtime() / campaign).exists()
    assert not [path for path in own_directories.rglob("*") if path.name.startswith("guest-")]


@pytest.mark.slow
def test_interrupted_during_a_trial_it_ends_the_guest_and_can_be_finished(
    fslab: Fslab, study: Path, own_directories: Path, tmp_path: Path
) -> None:
    """The workload waits for a file of the host to go, which the guest sees."""
    (held := tmp_path / "held").touch()
    waits = json.dumps(["sh", "-c", f"while test -e '{held}'; do sleep 1; done"])
    work = next(line for line in STUDY.splitlines() if line.startswith("  write:"))
    study.write_text(STUDY.replace(work, f"  write: {{tool: command, run: {waits}, space: 1m}}"))
    process = fslab.start("run", study, "--allow-commands")
    state = own_directories / "state"
    wait_for(lambda: [*state.rglob("*.jsonl")])
    (journal,) = state.rglob("*.jsonl")
    console = paths.runtime() / journal.stem / "guest-1/console"
    wait_for(lambda: console.exists() and "filesystem" in console.read_text())
    leader = next(
        pid for pid in process_marks.marked_processes(mark_of(journal)) if "linux.uml" in command_of(pid)
    )
    _, said = end(process, signal.SIGINT)
    assert process.returncode == 130
    assert "fslab run --resume" in said
    assert not group_members(leader)
    assert not list(memory.SHARED.glob(f"fslab-{journal.stem}-*"))
    held.unlink()
    assert "[2/2]" in fslab("run", "--resume", "--allow-commands").stderr


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def compares(home: Path, *words: str) -> str:
    """Run fslab as another user, check that it leaves only its results and its cache, and return its output."""
    done = as_nobody(home, "run", *words)
    assert done.returncode == 0, done.stderr
    kept = (home / ".local/share/fslab", home / ".cache/fslab")  # results; cache
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    assert all(any(path.is_relative_to(place) for place in kept) for path in files)
    return done.stdout


@pytest.mark.root
@pytest.mark.slow
def test_another_user_compares_file_systems_in_a_guest(home: Path, study: Path) -> None:
    (home / "store.yaml").write_text(study.read_text())
    said = compares(home, "store.yaml")
    assert "ext4" in said
    assert "f2fs" in said


@pytest.mark.root
@pytest.mark.slow
def test_another_user_runs_the_first_study_in_a_guest(home: Path) -> None:
    short = (
        "trials=1",
        "media.memory.size=384m",
        "workloads.sequential-write.size=32m",
        "workloads.small-files.files=1000",
        "workloads.large-directory.files=1000",
        "guest_memory=512m",
    )
    said = compares(home, "quick", "--on", "uml", *(word for setting in short for word in ("--set", setting)))
    for name in ("ext4", "xfs", "btrfs"):
        assert name in said
