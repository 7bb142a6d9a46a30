"""Tests of the judge of a crash state: a finding counts only if a second examination finds it again."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fslab.applications import RecoveredData, durable, parse_settings
from fslab.crash import examine
from fslab.crash.application_runs import Runs
from fslab.crash.examine import Examined, Subject
from fslab.crash.judge import WHOLE, Judge, Outcome, Positions
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Finding, Kind
from fslab.crash.states import State
from fslab.crash.trial import Tally
from fslab.errors import NoSpaceError, ToolFailedError
from fslab.faults import trial as fault_trial
from fslab.storage.filesystems import REGISTRY
from fslab.system.kernel_log import KernelMessages

STATE = State(cut=1, fate="kept")


class Builder:
    made = 0

    def make(self, state: State, image: Path) -> tuple[int, ...]:
        assert state == STATE
        self.made += 1
        image.touch()
        return ()


class Examiner:
    """An examiner whose examinations find these kinds, one argument for each examination."""

    def __init__(self, *findings: Iterable[Kind]) -> None:
        self.each = iter(findings)

    def examine(self, image: Path, runs: Iterable[int], *, cut_repair: bool) -> Examined:
        assert image.exists()
        assert not cut_repair
        assert list(runs) == []
        found = [Finding(kind=kind, broken=True, detail="", source="") for kind in next(self.each)]
        return Examined(recovery_ns=1, findings=found)


class ExaminerOfRuns:
    """An examiner that reads of one run that its application finds a problem."""

    def examine(self, image: Path, runs: Iterable[int], *, cut_repair: bool) -> Examined:
        return Examined(recovery_ns=1, contents={0: RecoveredData(problem="it cannot start")})


def judge(directory: Path, examiner: Examiner | ExaminerOfRuns, builder: Builder) -> Judge:
    promises = REGISTRY.get("xfs").promises(["rw"], b"")
    assert promises is not None
    tested = Subject(driver=REGISTRY.get("xfs"), options="rw", promises=promises, root="work")
    positions = Positions(rows=(), places=(), steps=(), times_ns=(), returned_ns={})
    parts: dict[str, Any] = {"builder": builder, "examiner": examiner}
    return Judge(tested=tested, source=Sequences(chosen=()), positions=positions, images=directory, **parts)


def test_what_a_file_system_does_where_memory_for_its_image_is_full_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fslab.crash.judge.os.statvfs", lambda _: SimpleNamespace(f_bavail=0))
    with pytest.raises(NoSpaceError, match="memory for images of crash states is full"):
        judge(tmp_path, Examiner([Kind.UNMOUNTABLE]), Builder()).after(STATE)
    assert not [*tmp_path.glob("*.img")]


@pytest.mark.parametrize(
    ("each", "found", "unrepeated"),
    [
        ([[]], [], False),
        ([[Kind.DAMAGED], [Kind.DAMAGED]], [Kind.DAMAGED], False),
        ([[Kind.DAMAGED], []], [], True),
        ([[Kind.DAMAGED, Kind.KERNEL_LOG], [Kind.KERNEL_LOG]], [Kind.KERNEL_LOG], True),
        ([[Kind.UNMOUNTABLE], [Kind.DAMAGED]], [], True),
    ],
)
def test_only_what_comes_again_is_found(
    tmp_path: Path, each: list[list[Kind]], found: list[Kind], unrepeated: bool
) -> None:
    builder = Builder()
    outcome = judge(tmp_path, Examiner(*each), builder).after(STATE)
    assert [finding.kind for finding in outcome.findings] == found
    assert (builder.made, outcome.unrepeated) == (len(each), unrepeated)
    tally = Tally()
    tally.add(outcome)
    assert tally.damaged == bool(found), "damage that only one look finds is none"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("able", [True, False])
def test_data_that_a_program_refuses_is_damaged_only_if_it_takes_intact_data(
    tmp_path: Path, able: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without memory, or without a descriptor, refuses any data."""
    application = durable("maildir")
    intact = RecoveredData() if able else RecoveredData(problem="no memory")
    monkeypatch.setattr(type(application), "look", lambda *_: intact)
    source = Runs(application=application, settings=parse_settings(application, ""), runs=1, transactions=1)
    judged = replace(judge(tmp_path, ExaminerOfRuns(), Builder()), source=source)
    made: list[Path] = []
    real = type(application).lay_out

    def lay_out(application: Any, directory: Path, settings: Any) -> None:
        made.append(directory)
        real(application, directory, settings)

    monkeypatch.setattr(type(application), "lay_out", lay_out)
    for _ in range(2):
        if able:
            assert [finding.kind for finding in judged.after(STATE).findings] == [Kind.DAMAGED]
        else:
            with pytest.raises(ToolFailedError, match="maildir also fails on data that lost no power"):
                judged.after(STATE)
    assert made == [tmp_path / "intact"], "looked at each time, and made once"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('XFS (loop7): metadata I/O error in "xfs_imap_to_bp+0x5c/0xe0"', True),
        ("WARNING: CPU: 1 PID: 7 at fs/xfs/xfs_inode.c:9 xfs_iget+0x1/0x2", True),
        ('XFS (loop8): metadata I/O error in "xfs_imap_to_bp+0x5c/0xe0"', False),
        ("INFO: task mount:77 blocked for more than 120 seconds.", False),
        ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [fio:7]", False),
        ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!", False),
        ("rcu: INFO: rcu_preempt self-detected stall on CPU", False),
        ("Out of memory: Killed process 77 (mariadbd) total-vm:1kB", False),
    ],
)
def test_a_busy_machine_is_no_damage(
    tmp_path: Path, text: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "kmsg"
    log.touch()
    monkeypatch.setattr(examine, "KernelMessages", lambda: KernelMessages(log))
    complaints = examine.Complaints("xfs")
    log.write_text(f"3,1,2,-;{text}\n")
    assert complaints.serious(["loop7"]) == [text] * told


def test_a_checker_that_is_killed_finds_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tested = judge(tmp_path, Examiner(), Builder()).tested

    def check(script: str) -> int:
        monkeypatch.setattr(type(tested.driver), "check_argv", lambda *_: ["sh", "-c", script])
        return tested.check("image").returncode

    assert check("exit 4") == 4
    assert check("kill -SEGV $$") < 0, "it crashes on its image"
    for script in ("kill -KILL $$", "exit 127", "echo 'x: Memory allocation failed' >&2; exit 8"):
        with pytest.raises(ToolFailedError):
            check(script)


def test_a_file_system_that_cannot_be_read_breaks_every_promise() -> None:
    seen = Examined(contents={1: {}})
    finding = Finding(kind=Kind.UNMOUNTABLE, broken=True, detail="", source="")
    outcome = Outcome(seen=seen, findings=[finding], promised={(0, 1), (0, 2), (1, 1)})
    assert outcome.broken_steps == {(WHOLE, 0), (0, 1), (0, 2)}
    lost = Finding(kind=Kind.LOST_NAME, broken=True, detail="", source="", sequence=3, step=0)
    assert replace(outcome, findings=[lost]).broken_steps == {(3, 0)}, "it was durable before"
    assert replace(outcome, findings=[replace(finding, broken=False)]).broken_steps == set()


def test_a_state_after_two_cuts_is_named_by_both(tmp_path: Path) -> None:
    judged = judge(tmp_path, Examiner([Kind.DAMAGED], [Kind.DAMAGED]), Builder())
    (finding,) = judged.after_both(State(cut=9, fate="lost"), STATE, judged.builder).findings
    assert finding.state == "9-lost+1-kept"


@pytest.mark.parametrize(("number", "lost"), [(errno.EIO, True), (errno.EMFILE, False)])
def test_a_file_that_cannot_be_opened_for_lack_of_descriptors_is_not_lost(
    number: int, lost: bool, tmp_path: Path
) -> None:
    """After a fault of the disk, as after a power cut."""
    ground: Any = SimpleNamespace(directory=tmp_path)

    def has(*_: object) -> bool:
        raise OSError(number, os.strerror(number))

    ground.has = has
    if lost:
        assert not fault_trial._has(ground, "a", 1)
    else:
        with pytest.raises(ToolFailedError, match="Too many open files"):
            fault_trial._has(ground, "a", 1)
