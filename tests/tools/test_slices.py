"""Tests of tools that take turns, with real processes, and a disk whose counter the test sets."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.limits import LIMIT_S

from fslab.campaign import sliced_rounds, time_slices
from fslab.campaign.prepared_states import PreparedStates
from fslab.campaign.sliced_rounds import longer_runs, longest_round_s, took_few_slices
from fslab.campaign.time_slices import SlicedRun, WorkLeftError, take_turns
from fslab.cell import Cell, TrialKey
from fslab.errors import NoSpaceError, ToolTimeoutError
from fslab.feasibility._campaign import RefusingJournal
from fslab.plan.expand import LEAST_SLICES
from fslab.stopping_settings import StoppingRule
from fslab.storage import Workspace
from fslab.system import priority, proc
from fslab.trial_record import Provenance, Slices, TrialRecord
from fslab.workloads import Job

WORK = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
FOREVER = "while True: pass"
AUTOGROUP = Path("/proc/self/autogroup")
READS = (
    "import time; file = open('/dev/zero', 'rb'); end = time.process_time() + 0.3\n"
    "while time.process_time() < end: file.read(1 << 20)"
)
_numbers = itertools.count()


@pytest.fixture
def turn(tmp_path: Path) -> Iterator[Callable[..., SlicedRun]]:
    """Yield a function that makes a turn of a Python program."""
    with ExitStack() as undo:

        def make(
            program: str,
            look: Callable[[], None] = lambda: None,
            drain: Callable[[], None] | None = None,
            limit_s: float = 60.0,
            stack: str = "s",
        ) -> SlicedRun:
            return undo.enter_context(
                SlicedRun(
                    stack=stack,
                    name=f"fslab-test-{os.getpid()}-{next(_numbers)}",
                    start=lambda: undo.enter_context(proc.running((sys.executable, "-c", program))),
                    devices=("nodisk",),
                    directory=tmp_path,
                    look=look,
                    drain=drain,
                    limit_s=limit_s,
                )
            )

        yield make


def test_all_run_to_their_ends_and_never_two_at_once(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "START_S", 0.0)
    turns = [turn(WORK), turn(WORK)]
    take_turns(turns, slice_s=0.01, seed=1)
    assert [each.running.completed().returncode for each in turns] == [0, 0]
    after_the_start = sorted(interval for each in turns for interval in each.ran[1:])
    assert len(after_the_start) > 4
    for (_, ended), (began, _) in itertools.pairwise(after_the_start):
        assert ended <= began


def test_who_keeps_the_turns_runs_before_other_programs_and_its_tools_do_not(
    turn: Callable[..., SlicedRun], tmp_path: Path
) -> None:
    """At a load of 14 on two CPUs, slices of 20 ms took 24 to 27 ms without this, and 21 to 25 ms with it at 18."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    before, seen, said = os.sched_getscheduler(0), set(), tmp_path / "policy"
    program = f"import os; open({str(said)!r}, 'w').write(str(os.sched_getscheduler(0)))"
    one = turn(WORK, look=lambda: seen.add(os.sched_getscheduler(0)))
    take_turns([one, turn(program)], slice_s=0.05, seed=1)
    assert seen == {os.SCHED_RR | os.SCHED_RESET_ON_FORK}
    assert said.read_text() == str(os.SCHED_OTHER)
    assert os.sched_getscheduler(0) == before


@pytest.mark.skipif(os.geteuid() != 0 or not AUTOGROUP.exists(), reason="needs root, and autogroups")
def test_a_tool_starts_before_other_programs_and_works_beside_them(
    turn: Callable[..., SlicedRun], tmp_path: Path
) -> None:
    said = tmp_path / "said"
    wait = f"share = lambda: open({str(AUTOGROUP)!r}).read().split()[-1]\nwhile share() != '-20': pass\n"
    tell = f"\nopen({str(said)!r}, 'w').write(share())"
    one = turn(wait + READS + tell, limit_s=LIMIT_S)
    take_turns([one], slice_s=0.05, seed=1)
    assert one.error is None
    assert len(one.ran) > 1
    assert said.read_text() == "0"


@pytest.mark.parametrize(
    ("turn", "stage", "first"), [("-a", "mkfs", True), ("-a", "run", False), ("", "mkfs", False)]
)
def test_only_set_up_of_tools_that_take_turns_runs_before_other_programs(
    turn: str, stage: str, *, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[int] = []
    monkeypatch.setattr(priority, "put_first", put.append)
    workspace = Workspace(
        campaign="c", runtime=Path("/"), images=Path("/"), journal=RefusingJournal(), turn=turn
    )
    workspace.run(stage, ["true"])
    assert bool(put) == first


def test_a_tool_that_works_is_frozen_at_once_while_others_start(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it does before it is frozen is in no slice, but in its figures. Nothing waits, and nothing is flushed."""
    monkeypatch.setattr(time_slices, "START_S", 60.0)
    frozen, note = tmp_path / "frozen", SlicedRun._note

    def noted(run: SlicedRun, began_s: float) -> None:
        note(run, began_s)
        frozen.touch()

    monkeypatch.setattr(SlicedRun, "_note", noted)
    seen: list[float] = []
    quick = turn(READS, drain=lambda: seen.append(time.monotonic()))
    waits = f"import os, time\nwhile not os.path.exists({str(frozen)!r}): time.sleep(0.01)\n"
    slow = turn(waits + READS)
    take_turns([quick, slow], slice_s=0.05, seed=1)
    assert all(each.worked_s is not None for each in (quick, slow))
    assert quick.ran[0][1] < slow.ran[0][1], "frozen while the other still waits"
    assert not any(drained < slow.ran[0][1] for drained in seen)
    assert quick.ran[1][0] >= slow.ran[0][1], "no slice begins before all have started"


@pytest.mark.parametrize(("requests", "works"), [(8, False), (40, True)])
def test_a_tool_that_only_opens_files_does_not_work_yet(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch, requests: int, works: bool
) -> None:
    """Its time begins with its work: a start in it would take the place of an end of the same length."""
    monkeypatch.setattr(time_slices, "START_S", 0.2)
    counted = itertools.chain([0], itertools.repeat(requests))
    monkeypatch.setattr(SlicedRun, "_requests", lambda _: next(counted))
    one = turn(WORK)
    take_turns([one], slice_s=0.05, seed=1)
    assert (one.worked_s is not None) is works


def test_a_tool_that_only_makes_entries_works(turn: Callable[..., SlicedRun], tmp_path: Path) -> None:
    """Empty files are no I/O: without this, all of its work was part of its start."""
    program = f"import os; os.mkdir({str(tmp_path / 'd')!r})\nwhile True: pass"
    one = turn(program, limit_s=0.05)
    take_turns([one], slice_s=0.05, seed=1)
    assert one.worked_s is not None


def test_a_disk_with_its_own_time_stands_still_while_its_tool_does(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on before the tool does, stands still after the tool, and goes on at the end: the trial unmounts it."""
    monkeypatch.setattr(time_slices, "START_S", 0.0)
    told: list[tuple[SlicedRun, bool, float]] = []
    turns = [turn(WORK), turn(FOREVER, limit_s=0.05)]

    def telling(run: SlicedRun) -> Callable[[bool], None]:
        return lambda halted: told.append((run, halted, time.monotonic()))

    for each in turns:
        each.halt = telling(each)
    take_turns(turns, slice_s=0.02, seed=1)
    for each in turns:
        own = [(halted, at_s) for who, halted, at_s in told if who is each]
        stood, *slices_told, last = own
        assert (stood[0], last[0]) == (True, False)
        assert [halted for halted, _ in slices_told] == [False, True] * (len(each.ran) - 1)
        times_s = [at_s for _, at_s in slices_told]
        for (began_s, ended_s), on_s, off_s in zip(each.ran[1:], times_s[::2], times_s[1::2], strict=True):
            assert on_s <= began_s <= ended_s <= off_s


def test_one_that_fails_ends_and_the_other_goes_on(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "START_S", 0.0)

    def full() -> None:
        raise NoSpaceError("full")

    endless, finite, late = turn(FOREVER, look=full), turn(WORK), turn(FOREVER, limit_s=0.05)
    take_turns([endless, finite, late], slice_s=0.01, seed=1)
    assert isinstance(endless.error, NoSpaceError)
    assert isinstance(late.error, ToolTimeoutError)
    assert finite.error is None
    assert finite.running.completed().returncode == 0


def test_tools_are_given_up_as_soon_as_one_leaves_work_to_the_slices_of_others(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One disk's counter grows by 1 MiB between any two looks at it: as much in the slices as between them."""
    monkeypatch.setattr(time_slices, "START_S", 0.0)
    looks = itertools.count(step=1 << 20)
    monkeypatch.setattr(time_slices, "written_bytes", lambda names: next(looks) if names == ("busy",) else 0)
    leaving, other = turn(FOREVER, stack="leaving"), turn(FOREVER, stack="other")
    leaving.devices = ("busy",)
    with pytest.raises(WorkLeftError, match=r"^leaving$"):
        take_turns([leaving, other], slice_s=0.01, seed=1, left_most=0.05)
    assert leaving.left_share == pytest.approx(0.5, abs=0.1)
    assert other.left_share is None, "it wrote too little"
    assert LEAST_SLICES < len(other.ran) <= LEAST_SLICES + 3
    assert not any(each.is_over for each in (leaving, other)), "who made the runs ends them"
    takes_it = turn(WORK)
    takes_it.devices = ("busy",)
    take_turns([takes_it], slice_s=0.01, seed=1)
    assert takes_it.is_over
    assert takes_it.timeline().left_share == pytest.approx(0.5, abs=0.1)


def test_a_slice_ends_when_the_disk_has_answered_what_it_had_got(
    turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk with a deep queue: eight requests are in flight at each freeze, one is answered at each look. It
    never gets idle, because a writeback goes on."""
    monkeypatch.setattr(time_slices, "START_S", 0.0)
    looks = itertools.count()
    monkeypatch.setattr(time_slices, "_stat", lambda _: [next(looks), 0, 0, 0, 0, 0, 0, 0, 8])
    waits: list[int] = []
    freeze = time_slices.SlicedRun._await_answers

    def counted(one: SlicedRun) -> None:
        before = next(looks)
        freeze(one)
        waits.append(next(looks) - before)

    monkeypatch.setattr(time_slices.SlicedRun, "_await_answers", counted)
    take_turns([turn(WORK)], slice_s=0.05, seed=1)
    assert waits
    assert all(8 <= each < 30 for each in waits), waits


SPENT_S = 0.02
BUFFERED = {"rw": "write", "size": "64m"}
DIRECT = {"rw": "randwrite", "size": "64m", "direct": True}


@pytest.mark.parametrize(
    ("parameters", "medium", "left", "flushes"),
    [
        # The slow stack leaves work: seen in the first round, which begins again with a flush.
        (BUFFERED, "ram", 0.3, [False, True, True]),
        (BUFFERED, "ram", 0.01, [False, False]),
        # Images on one disk: what one stack has left delays the requests of the other.
        (BUFFERED, "loop", 0.01, [True, True]),
        (DIRECT, "loop", 0.01, [False, False]),
    ],
)
def test_no_stack_pays_for_what_another_has_put_off(
    parameters: dict[str, Any], medium: str, left: float, flushes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds of a stack with a slow device and one with a fast device behind a large cache."""
    slow, fast = (stack_of(name, medium, parameters) for name in ("slow", "fast"))
    asked: list[bool] = []

    def run(
        cells: Sequence[Cell], *_: object, drain: bool, left_most: float, **__: object
    ) -> list[TrialRecord]:
        asked.append(drain)
        if not drain and left > left_most:
            time.sleep(SPENT_S)
            raise WorkLeftError(["slow"])
        assert drain == (left_most > 1.0)
        return [record(cell) for cell in cells]

    monkeypatch.setattr(sliced_rounds, "run_in_slices", run)
    monkeypatch.setattr("fslab.system.memory.holds", lambda _: False)
    told: list[str] = []
    rounds = rounds_in_slices(told=told.append)
    found = [rounds.run([slow, fast], TrialKey(campaign="c", block=block, seed=1)) for block in (0, 1)]
    assert asked == flushes
    began_again = len(flushes) == 3
    assert ["on slow: it begins again, and each slice ends with a flush" in text for text in told] == (
        [True] * began_again
    )
    assert [each.duration_s >= 1.0 + SPENT_S / 2 for each in found[0]] == [began_again] * 2
    assert [each.duration_s for each in found[1]] == [1.0] * 2


def test_what_a_stack_does_within_a_few_slices_is_measured_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = (stack_of(name, "ram", DIRECT) for name in ("slow", "fast"))
    done: list[str] = []

    def together(cells: Sequence[Cell], *_: object, **__: object) -> list[TrialRecord]:
        done.append("together")
        return [record(cell, count=7 if cell is fast else 20) for cell in cells]

    def alone(cell: Cell, _: TrialKey) -> TrialRecord:
        done.append(cell.stack.name)
        return record(cell)

    monkeypatch.setattr(sliced_rounds, "run_in_slices", together)
    told: list[str] = []
    rounds = rounds_in_slices(alone, told.append)
    found = [rounds.run([slow, fast], TrialKey(campaign="c", block=block, seed=1)) for block in (0, 1)]
    assert done == ["together", "slow", "fast", "slow", "fast"]
    (text,) = told
    assert text.startswith("w takes less than 8 slices on fast: from this round on, it is measured whole")
    assert not took_few_slices(record(fast, count=7, asked_s=0.5)), "a set time in long slices"
    assert [[each.duration_s for each in block] for block in found] == [[2.0, 2.0], [1.0, 1.0]]


def test_runs_are_as_long_as_the_rest_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those with a set time, within files of a set size, where fslab chooses the number of rounds. A round takes
    8 s, with 2 s of slices; then 12 s, with 6 s."""
    timed = {"rw": "randread", "size": "8m", "runtime": "1s", "direct": True}
    stacks = [stack_of(name, "ram", timed) for name in ("one", "other")]
    asked: list[int] = []

    def run(cells: Sequence[Cell], *_: object, longer: int, **__: object) -> list[TrialRecord]:
        asked.append(longer)
        found = [record(cell, asked_s=1.0, ran_s=longer + 0.5, started_s=0.5) for cell in cells]
        return [each.model_copy(update={"duration_s": 3.0 + longer}) for each in found]

    monkeypatch.setattr(sliced_rounds, "run_in_slices", run)
    told: list[str] = []
    rounds = rounds_in_slices(told=told.append)
    for rounds.round_s in (0.0, 60.0):
        for block in (0, 1, 2):
            rounds.run(stacks, TrialKey(campaign="c", block=block, seed=1))
    assert asked == [1, 1, 1, 1, 3, 3]
    assert ["up to 4 times as long" in text for text in told] == [True]
    short = [each.model_copy(update={"time_limit_s": 4.0}) for each in stacks]
    assert longer_runs(run(short, longer=1), 1, 60.0) == 2, "within the time limit"
    assert longer_runs(run(stacks, longer=1), 1, 10.0) == 2, "within the time for a round"
    assert longer_runs([record(each) for each in stacks], 1, 60.0) == 1, "no set time"
    assert longest_round_s(StoppingRule(trials=3), 60.0, 1) == 0.0
    assert longest_round_s(StoppingRule(trials=3, precision=0.1), 80.0, 2) == 5.0
    assert Job(directory=Path(), scratch=Path(), seed=1, turns=2, longer=3).clock_s(1.0) == 6.0


def refused(cell: Cell, _: TrialKey) -> TrialRecord:
    raise AssertionError(f"{cell.stack.name} was measured whole")


def rounds_in_slices(
    whole: Callable[[Cell, TrialKey], TrialRecord] = refused, told: Callable[[str], object] = lambda _: None
) -> sliced_rounds.SlicedRounds:
    images = Path("/")
    workspace = Workspace(campaign="c", runtime=images, images=images, journal=RefusingJournal())
    states = PreparedStates(workspace=workspace)
    return sliced_rounds.SlicedRounds(
        workspace=workspace, machine=dict, states=states, whole=whole, told=told
    )


def test_every_slice_is_drained(turn: Callable[..., SlicedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "START_S", 0.0)
    drains: list[int] = []
    one = turn(WORK, drain=lambda: drains.append(1))
    take_turns([one], slice_s=0.01, seed=1)
    assert len(drains) == len(one.ran) - 1 > 2, "not the start"


def stack_of(name: str, medium: str, parameters: dict[str, Any]) -> Cell:
    return made.cell(made.spec(medium=medium, name=name), parameters=parameters, slice_s=0.2)


def record(cell: Cell, count: int = 20, **times: float) -> TrialRecord:
    slices = Slices(count=count, **{"started_s": 0.0, "ran_s": 1.0, **times})
    return made.trial(of=cell, provenance=Provenance(slices=slices))
