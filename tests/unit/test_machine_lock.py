"""Tests of the machine lock: a campaign that waits for it reports who holds it. Uses real locks and processes."""

from __future__ import annotations

import fcntl
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests import made
from tests.limits import LIMIT_S

from fslab.campaign import machine_lock, trial_dispatch, trial_loop
from fslab.campaign.observer import Observer
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.campaign.trial_loop import TrialHistory, _CampaignRun
from fslab.cell import Cell
from fslab.cli.progress import Lines, LiveView
from fslab.machine import facts
from fslab.storage import Workspace
from fslab.store.campaign import CampaignStatus
from fslab.trial_record import TrialRecord

OTHER = "20260101-000000-aaaa"
HOLD = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
from fslab.campaign import machine_lock
from fslab.campaign.observer import Observer
directory = Path(sys.argv[1])
workspace = SimpleNamespace(campaign={OTHER!r}, runtime=directory / {OTHER!r})
with machine_lock.held(workspace, None):
    print("ready", flush=True)
    sys.stdin.read()
"""


class NoJournal:
    """A journal that fails the test if anything is created."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        raise AssertionError(kind + target)

    def undone(self, entry: str) -> None:
        raise AssertionError(entry)


@dataclass
class Told(Observer):
    """A waiter that calls ``let_go`` at the second report of waiting. Until then, the lock stays held."""

    let_go: Callable[[], object]
    whom: list[str] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)

    def waits(self, whom: str, waited_s: float) -> None:
        assert waited_s >= 0
        self.whom.append(whom)
        if len(self.whom) == 2:
            self.let_go()

    def turn_begins(self, waited_s: float) -> None:
        self.waited_s.append(waited_s)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine_lock, "TELL_EVERY_S", 0.01)
    for campaign in (OTHER, "ours"):
        (tmp_path / campaign / "scratch").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def workspace(directory: Path) -> Workspace:
    return Workspace(campaign="ours", runtime=directory / "ours", images=directory, journal=NoJournal())


def test_who_waits_is_told_again_and_again_for_whom(directory: Path, workspace: Workspace) -> None:
    argv = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            told = Told(process.stdin.close)
            with machine_lock.held(workspace, told) as waited_s:
                assert told.waited_s == [waited_s]
                assert waited_s > 0
            assert len(told.whom) >= 2
            for whom in told.whom[:2]:
                assert whom.startswith(f"campaign {OTHER} of ")
                assert f"(process {process.pid}), which has run a trial since " in whom
        finally:
            process.kill()


def test_a_lock_of_another_process_is_told_with_its_process(directory: Path, workspace: Workspace) -> None:
    (directory / OTHER / machine_lock.NOTE).write_text("what a campaign left that was killed: {")
    foreign = os.open(directory, os.O_RDONLY)
    fcntl.flock(foreign, fcntl.LOCK_EX)
    told = Told(lambda: os.close(foreign))
    with machine_lock.held(workspace, told):
        pass
    assert told.whom[0].startswith(f"process {os.getpid()} (")


def test_a_wait_ends_at_its_limit_and_the_lock_is_not_taken_later(
    directory: Path, workspace: Workspace
) -> None:
    foreign = os.open(directory, os.O_RDONLY)
    fcntl.flock(foreign, fcntl.LOCK_EX)
    with pytest.raises(machine_lock.WaitedTooLongError, match=f"process {os.getpid()}"):  # noqa: SIM117
        with machine_lock.held(workspace, Told(lambda: None), until=time.monotonic() + 0.1):
            pytest.fail("the lock is held by somebody else")
    os.close(foreign)
    with machine_lock.held(workspace, Told(lambda: None), until=time.monotonic() + LIMIT_S):
        pass  # after the thread that got it too late has given it up


def test_nobody_is_told_of_a_turn_that_is_free_and_no_note_stays(
    directory: Path, workspace: Workspace
) -> None:
    told = Told(lambda: None)
    with machine_lock.held(workspace, told) as waited_s:
        assert (waited_s, told.whom) == (0.0, [])
        assert (directory / "ours" / machine_lock.NOTE).exists()
    assert not (directory / "ours" / machine_lock.NOTE).exists()


class Clock:
    """A clock that advances only when the test changes ``now``."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Watcher:
    """Replaces the observer, the store and the machines. A trial takes 10 s on ``clock``."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.said: list[str] = []

    def run(self, cell: Cell, key: Any, _: object) -> TrialRecord:
        self.clock.now += 10
        return made.trial(of=cell, key=key, duration_s=10)

    def note(self, text: str) -> None:
        self.said.append(text)

    def nothing(self, *_: object) -> None:
        pass

    trial_started = trial_ended = add_trial = waits = turn_begins = nothing


def test_waiting_does_not_use_up_the_budget(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget of 100 s is enough for ten trials of 10 s, although each waits 50 s for the lock."""
    clock = Clock()
    watcher: Any = Watcher(clock)
    cell = made.cell(parameters={"rw": "read", "size": "1m"})
    campaign: Any = SimpleNamespace(id="ours", seed=1, settings=SimpleNamespace(budget_s=100.0))
    schedule: Any = SimpleNamespace(trials=[(block, cell) for block in range(20)])

    def wait(*_: object) -> float:
        clock.now += 50
        return 50.0

    monkeypatch.setattr(trial_loop, "time", clock)
    monkeypatch.setattr(machine_lock, "_wait", wait)

    def course(**limits: Any) -> _CampaignRun:
        clock.now = 0.0
        return _CampaignRun(
            campaign=campaign, store=watcher, observer=watcher, workspace=workspace, history=TrialHistory(),
            schedule=schedule, finished=set(), machines=watcher, begun=0.0, **limits,
        )  # fmt: skip

    budget = course(budget_s=100.0)
    assert budget.run_planned() is CampaignStatus.BUDGET_SPENT
    assert len(budget.finished) == 10
    wall = course(budget_s=100.0, wall_s=200.0)
    assert wall.run_planned() is CampaignStatus.BUDGET_SPENT
    assert len(wall.finished) == 4, "the fourth begins at 180 s, before its wait"
    assert (
        watcher.said[-1] == "the limit of 3 min 20 s on the clock is reached, 3 min 20 s of it spent waiting"
    )
    wall.tell_waits()
    assert watcher.said[-1] == "trials waited 3 min 20 s for those of other campaigns"
    course(budget_s=None).tell_waits()
    assert watcher.said[-1].startswith("trials waited 3 min 20 s"), "nothing is said of no wait"


def test_facts_are_those_of_the_own_turn(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial of another campaign that runs when this one begins has set the governor, and puts it back."""
    governor, stored = ["performance"], []
    cell = made.cell(parameters={"rw": "read", "size": "1m"})

    def wait(*_: object) -> float:
        governor[0] = "powersave"
        return 0.0

    def run(*_: object, machine: dict[str, str], **__: object) -> TrialRecord:
        stored.append(machine)
        return made.trial(of=cell)

    monkeypatch.setattr(facts, "gather", lambda: {"governor": governor[0]})
    monkeypatch.setattr(machine_lock, "_wait", wait)
    monkeypatch.setattr(trial_dispatch, "run_trial", run)
    whatever: Any = Watcher(Clock())
    one: Any = SimpleNamespace(id="ours", seed=1)
    schedule: Any = SimpleNamespace(trials=[(0, cell)])
    _CampaignRun(
        campaign=one, store=whatever, observer=whatever, workspace=workspace, history=TrialHistory(),
        schedule=schedule, finished=set(), machines=TrialMachines(workspace=workspace), begun=0.0, budget_s=None,
    ).run_planned()  # fmt: skip
    assert stored == [{"governor": "powersave"}]


def test_lines_tell_at_once_and_then_each_half_minute_of_all_waits() -> None:
    out = io.StringIO()
    lines = Lines(Console(file=out, width=200))
    for waited_s in (0.0, 1.0, 29.0, 30.0, 31.0):
        lines.waits("campaign x", waited_s)
    lines.turn_begins(31.0)
    for _ in range(12):  # as two campaigns do that take turns at every trial
        for waited_s in (0.0, 2.5):
            lines.waits("campaign y", waited_s)
        lines.turn_begins(2.5)
    said = [line.split(":")[0] for line in out.getvalue().splitlines()]
    assert said == [
        "waiting for campaign x",
        "waiting 30 s for campaign x",
        "waiting 1 min 01 s in all for campaign y",
    ]


def test_the_live_view_shows_whom_it_waits_for_and_counts_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, width=200))
    begun = view.begun
    view.waits("campaign x of root (process 7)", 12.0)
    view.console.print(view._view())
    assert "waiting 12 s for campaign x of root (process 7)" in out.getvalue()
    view.turn_begins(12.0)
    out.truncate(0)
    view.console.print(view._view())
    assert "waiting" not in out.getvalue()
    assert view.begun == begun + 12.0
