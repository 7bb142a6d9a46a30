"""Tests of tools that take turns, with real processes, and a disk whose counter the test sets."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from fslab.campaign import slices
from fslab.campaign.guests import leaves_work
from fslab.campaign.slices import SlicedRun, take_turns
from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.errors import NoSpaceError, ToolTimeoutError
from fslab.record import Provenance, Status, TrialRecord
from fslab.system import proc

WORK = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
FOREVER = "while True: pass"
_numbers = itertools.count()


@pytest.fixture
def turn() -> Iterator[Callable[..., SlicedRun]]:
    """Yield a function that makes a turn of a Python program."""
    with ExitStack() as undo:

        def make(
            program: str,
            look: Callable[[], None] = lambda: None,
            drain: Callable[[], None] | None = None,
            limit_s: float = 60.0,
        ) -> SlicedRun:
            return undo.enter_context(
                SlicedRun(
                    name=f"fslab-test-{os.getpid()}-{next(_numbers)}",
                    start=lambda: undo.enter_context(proc.running((sys.executable, "-c", program))),
                    devices=("nodisk",),
                    look=look,
                    drain=drain,
                    limit_s=limit_s,
                )
            )

        yield make


def test_all_run_to_their_ends_and_never_two_at_once(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "START_S", 0.0)
    turns = [turn(WORK), turn(WORK)]
    take_turns(turns, slice_s=0.01, seed=1)
    assert [each.running.completed().returncode for each in turns if each.running] == [0, 0]
    after_the_start = sorted(interval for each in turns for interval in each.ran[1:])
    assert len(after_the_start) > 4
    for (_, ended), (began, _) in itertools.pairwise(after_the_start):
        assert ended <= began


def test_no_other_tool_works_while_one_starts(turn: Callable[..., SlicedRun]) -> None:
    """What a tool does before it is seen to work is in no slice, but in its figures."""
    turns = [turn(WORK), turn(WORK), turn(WORK)]
    take_turns(turns, slice_s=0.05, seed=1)
    starts = sorted(each.ran[0] for each in turns)
    for (_, ended), (began, _) in itertools.pairwise(starts):
        assert ended <= began


@pytest.mark.parametrize(("requests", "works"), [(8, False), (40, True)])
def test_a_tool_that_only_opens_files_does_not_work_yet(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch, requests: int, works: bool
) -> None:
    """Its time begins with its work: a start in it would take the place of an end of the same length."""
    monkeypatch.setattr(slices, "START_S", 0.2)
    counted = itertools.chain([0], itertools.repeat(requests))
    monkeypatch.setattr(SlicedRun, "_requests", lambda _: next(counted))
    one = turn(WORK)
    take_turns([one], slice_s=0.05, seed=1)
    assert (one.worked_s is not None) is works


def test_one_that_fails_ends_and_the_other_goes_on(turn: Callable[..., SlicedRun]) -> None:
    def full() -> None:
        raise NoSpaceError("full")

    endless, finite, late = turn(FOREVER, look=full), turn(WORK), turn(FOREVER, limit_s=0.05)
    take_turns([endless, finite, late], slice_s=0.01, seed=1)
    assert isinstance(endless.error, NoSpaceError)
    assert isinstance(late.error, ToolTimeoutError)
    assert finite.error is None
    assert finite.running is not None
    assert finite.running.completed().returncode == 0


def test_what_reaches_the_disk_while_a_tool_is_frozen_is_left_work(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk's counter grows by 1 MiB between any two looks at it: as much in the slices as between them."""
    monkeypatch.setattr(slices, "START_S", 0.0)
    looks = itertools.count(step=1 << 20)
    monkeypatch.setattr(slices, "written_bytes", lambda _: next(looks))
    leaving = turn(WORK)
    take_turns([leaving], slice_s=0.01, seed=1)
    share = leaving.timeline().left_share
    assert share == pytest.approx(0.5, abs=0.1)
    assert leaves_work(record(share))
    assert not leaves_work(record(0.01))
    assert not leaves_work(record(None))


def test_every_slice_is_drained(turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "START_S", 0.0)
    drains: list[int] = []
    one = turn(WORK, drain=lambda: drains.append(1))
    take_turns([one], slice_s=0.01, seed=1)
    assert len(drains) == len(one.ran) > 2


def record(left_share: float | None) -> TrialRecord:
    cell = Cell(
        stack=StackSpec(name="s", medium=MediumSpec(name="m", type="ram")),
        workload=WorkloadSpec(name="w", tool="fio"),
    )
    return TrialRecord(
        key=TrialKey(campaign="c", block=0, seed=1),
        cell=cell,
        status=Status.OK,
        started=datetime.now(UTC),
        duration_s=1.0,
        provenance=Provenance(device={"slices": {"left_share": left_share}}),
    )
