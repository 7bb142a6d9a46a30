"""Tests of freezers with real processes: a frozen program does nothing, with all its processes, and continues."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fslab.campaign import cleanup
from fslab.campaign.undo_journal import CampaignJournal
from fslab.errors import ToolTimeoutError
from fslab.system import cgroup, freezer, proc, process_marks, processes

# Two processes that each count in a file of their own.
COUNT = """
import os, sys
name = sys.argv[1] + ("-child" if os.fork() == 0 else "")
file = os.open(name, os.O_CREAT | os.O_RDWR)
for number in range(10**9):
    os.pwrite(file, str(number).encode(), 0)
"""
LIMIT_S = 60.0
GROUPS: dict[str, Callable[[str, cgroup.Told], freezer.Freezer | None]] = {
    "group": freezer.create,
    "version 1": freezer.version_1,
}
KINDS: dict[str, Callable[[str, cgroup.Told], freezer.Freezer | None]] = {
    **GROUPS,
    "signals": lambda *_: freezer.SignalFreezer(),
}
_numbers = itertools.count()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def counts(path: Path) -> list[int]:
    files = [path, path.with_name(path.name + "-child")]
    return [int(file.read_text() or 0) if file.exists() else 0 for file in files]


def have_grown(path: Path, before: list[int]) -> bool:
    return all(now > then for now, then in zip(counts(path), before, strict=True))


@pytest.fixture(params=KINDS)
def frozen(request: pytest.FixtureRequest) -> Iterator[freezer.Freezer]:
    made = KINDS[request.param](f"fslab-test-{os.getpid()}-{next(_numbers)}", lambda _: None)
    if made is None or (request.param == "group" and isinstance(made, freezer.SignalFreezer)):
        pytest.skip("no control group may be made here")
    yield made
    made.end()


def test_a_frozen_program_does_nothing_and_continues(frozen: freezer.Freezer, tmp_path: Path) -> None:
    path = tmp_path / "count"
    with proc.running((sys.executable, "-c", COUNT, str(path))) as started:
        frozen.adopt(started.pid)
        until(lambda: min(counts(path)) > 0)
        for _ in range(3):
            frozen.freeze()
            before = counts(path)
            assert not started.has_ended(0.05)
            assert counts(path) == before
            frozen.thaw()
            until(partial(have_grown, path, before))
        frozen.freeze()
    frozen.end()
    until(lambda: not processes.session(started.pid))  # ended although it was frozen


def test_a_frozen_program_of_a_campaign_that_was_killed_ends(frozen: freezer.Freezer) -> None:
    mark = f"frozen-{os.getpid()}-{next(_numbers)}"
    with proc.running(("sleep", "600"), env={process_marks.MARK: mark}) as started:
        frozen.adopt(started.pid)
        frozen.freeze()
        assert process_marks.kill_marked(mark)
        until(lambda: started.has_ended(0.01))


@pytest.mark.parametrize("kind", GROUPS)
def test_clean_ends_what_a_killed_campaign_left_in_a_frozen_group_also_without_its_mark(
    kind: str, tmp_path: Path
) -> None:
    campaign = f"test-{os.getpid()}-{next(_numbers)}"
    with CampaignJournal(campaign, tmp_path) as journal:
        made = GROUPS[kind](f"fslab-{campaign}-s", lambda group: journal.will_create("group", str(group)))
        if not isinstance(made, freezer.GroupFreezer):
            pytest.skip("no control group may be made here")
        with proc.running(("sleep", "600")) as started:
            made.adopt(started.pid)
            made.freeze()
            assert [entry.kind for entry in cleanup.undo_pending(journal)] == ["group"]
            until(lambda: started.has_ended(0.01))
    assert not made.group.path.exists()


def test_a_program_that_ends_while_it_runs_is_not_waited_for(frozen: freezer.Freezer) -> None:
    with proc.running(("true",)) as started:
        frozen.adopt(started.pid)
        until(lambda: started.has_ended(0.01))
        frozen.freeze()
        frozen.thaw()
        assert started.completed().returncode == 0


def test_a_program_whose_processes_are_always_new_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fslab waits with the priority of real time there: it must not wait without end."""
    frozen = freezer.GroupFreezer(
        group=cgroup.ControlGroup(path=tmp_path), switch="s", words=("1", "0"), state="s", frozen=b"1"
    )
    numbers = itertools.count(1 << 30)
    monkeypatch.setattr(processes, "session", lambda _: [next(numbers)])
    monkeypatch.setattr(freezer.Freezer, "limit_s", 0.1)
    with pytest.raises(ToolTimeoutError, match="escaped"):
        frozen.adopt(1)


@pytest.mark.parametrize("kind", [cgroup.ControlGroup, freezer.SignalFreezer])
def test_no_process_that_got_a_number_of_another_meanwhile_gets_a_signal(
    kind: type[cgroup.ControlGroup | freezer.SignalFreezer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proc.running(("sleep", "600")) as foreign:
        listed = iter([[foreign.pid]])
        if kind is cgroup.ControlGroup:
            monkeypatch.setattr(kind, "processes", lambda _: next(listed, []))
            (tmp_path / "group").mkdir()
            cgroup.ControlGroup(path=tmp_path / "group").end()
        else:
            monkeypatch.setattr(kind, "_members", lambda _: next(listed, []))
            freezer.SignalFreezer().freeze()
        assert not foreign.has_ended(0.2)
        assert not freezer._is_stopped(foreign.pid)
