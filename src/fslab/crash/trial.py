"""One trial: make crash states of a recording, judge each, count, and report. Does not make the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fslab.crash import states
from fslab.crash.examine import Subject
from fslab.crash.judge import WHOLE, Judge, Outcome, judge_of
from fslab.crash.oracle import SYNC
from fslab.crash.recording import Recording
from fslab.crash.sources import Finding, Kind, Source
from fslab.crash.states import State
from fslab.crash.trial_request import CrashRequest, Cuts
from fslab.units import parse_size

OTHERS = 2  # earlier runs that each state is examined for, besides the current run and its neighbours
MINIMISED = 3
MOST_TRIES = 60  # states that a minimisation judges
CUTS_EACH = 3  # second cuts during one recovery
IMAGES = "1g"
VERSION = 1
SHOWN = 40


@dataclass(kw_only=True, slots=True)
class Tally:
    """Counts over all states. ``again``: states after a second cut, during the recovery from the first;
    ``again_broken``: those of them with a broken promise. ``repaired``, ``repaired_lost``: the same for cuts during a
    full repair, after which something promised was missing, or damage remained. ``promised``, ``broken``, ``lost``:
    steps that had returned, as (run, step). ``unrepeated``: states with a finding that did not occur again.
    ``loss_window_ns``: for each state after one cut, the age of the oldest lost operation. ``findings``: the first of
    each sort; ``counts``: how often it was found.
    """

    states: int = 0
    again: int = 0
    again_broken: int = 0
    repaired: int = 0
    repaired_lost: int = 0
    damaged: int = 0
    unrepeated: int = 0
    promised: set[tuple[int, int]] = field(default_factory=set)
    broken: set[tuple[int, int]] = field(default_factory=set)
    lost: set[tuple[int, int]] = field(default_factory=set)
    recovery_ns: list[int] = field(default_factory=list)
    loss_window_ns: list[int] = field(default_factory=list)
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a state after one cut or two."""
        self.damaged += bool(outcome.seen.findings)
        self.unrepeated += outcome.unrepeated
        self.promised |= outcome.promised
        self.broken |= outcome.broken_steps
        self.lost |= outcome.lost
        for finding in outcome.findings:
            self._count(finding)

    def add_refused(self, why: str) -> None:
        """Add that the file system could not be mounted again, although it was unmounted and no power was cut."""
        detail = f"after the test, without a power cut: {why}"
        self._count(Finding(kind=Kind.UNMOUNTABLE, broken=True, detail=detail, source=SYNC, step=0))
        self.broken.add((WHOLE, 0))

    def _count(self, finding: Finding) -> None:
        self.findings.setdefault(finding.sort, finding)
        self.counts[finding.sort] += 1


def judge_all(judge: Judge, chosen: list[State], random: Random, request: CrashRequest) -> Tally:
    """Judge all states. For ``recoveries`` of the states without a broken promise, also judge a second cut, during the
    mount; for ``repairs`` of them, during a full repair. Minimise the first broken promises."""
    tally, intact, unit = Tally(), list[State](), parse_size(request.sector)
    for state in chosen:
        outcome = judge.after_end(state) if request.cuts is Cuts.ENDS else _with_others(judge, state, random)
        tally.states += 1
        tally.recovery_ns += [] if outcome.seen.recovery_ns is None else [outcome.seen.recovery_ns]
        tally.loss_window_ns.append(outcome.oldest_ns)
        tally.add(outcome)
        if not outcome.broken:
            intact.append(state)
    sorts = [sort for sort, finding in tally.findings.items() if finding.broken][:MINIMISED]
    for sort in sorts:
        tally.findings[sort] = _minimised(judge, tally.findings[sort])
    # A file system that need not be consistent is repaired first; a repair promises nothing for a power cut.
    if judge.tested.promises.consistent.given:
        for state in random.sample(intact, min(request.recoveries, len(intact))):
            judge_recovery(judge, state, tally, random, unit=unit)
    if judge.tested.driver.full_repair_argv("") is not None:
        for state in random.sample(intact, min(request.repairs, len(intact))):
            judge_recovery(judge, state, tally, random, unit=unit, repair=True)
    return tally


def _with_others(judge: Judge, state: State, random: Random) -> Outcome:
    current = judge.positions.current(state.cut)
    return judge.after(state, random.sample(range(current + 1), min(OTHERS, current + 1)))


def judge_recovery(
    judge: Judge, first: State, tally: Tally, random: Random, *, unit: int, repair: bool = False
) -> None:
    """Judge some states of the mount of ``first``, or of its ``repair``; none if it fails or writes nothing."""
    with judge.recovery(first, repair=repair) as recording:
        log = None if recording is None else recording.table()
        if recording is None or log is None or log.filter(log["op"] == "write").is_empty():
            return
        with states.builder(recording.log, recording.base) as builder:
            for second in states.chosen(log, CUTS_EACH, random, unit=unit):
                if repair:
                    outcome = judge.after_cut_repair(first, second, builder)
                    tally.repaired += 1
                    tally.repaired_lost += bool(outcome.findings)
                else:
                    outcome = judge.after_both(first, second, builder)
                    tally.again += 1
                    tally.again_broken += outcome.broken
                tally.add(outcome)


def _minimised(judge: Judge, finding: Finding) -> Finding:
    """Return the same finding in a state with as few lost writes as possible."""
    latest, wanted = finding, (finding.kind, finding.sequence, finding.name)

    def breaks(state: State) -> bool:
        nonlocal latest
        for found in judge.after(state, [finding.sequence or 0]).findings:
            if found.broken and (found.kind, found.sequence, found.name) == wanted:
                latest = found
                return True
        return False

    state = State.parse(finding.state)
    smallest = fewest_lost(state, finding.lost_rows, breaks)
    return latest if latest.state == str(smallest) else finding


def tally_of(
    recording: Recording,
    tested: Subject,
    source: Source[Any],
    request: CrashRequest,
    images: Path,
) -> Tally:
    """Return the tally of the states that are asked for, and of states during the recovery from some of them and during
    the full repair of some. Images are made in ``images``."""
    log, random = recording.table(), Random(request.seed)  # noqa: S311 - to be repeated
    with states.builder(recording.log, recording.base) as builder:
        judge = judge_of(tested, recording, source, builder, images)
        wanted = (
            states.at_ends(judge.positions.ends, request.states, random)
            if request.cuts is Cuts.ENDS
            else states.chosen(log, request.states, random, unit=parse_size(request.sector))
        )
        return judge_all(judge, wanted, random, request)


def fewest_lost(state: State, lost: Sequence[int], breaks: Callable[[State], bool]) -> State:
    """Return the state with the fewest lost writes that still breaks its promise, of about ``MOST_TRIES`` states.

    Delta debugging, in the greedy form (Zeller, Hildebrandt, IEEE TSE 2002). Return ``state`` itself if losing its
    writes as a whole does not break the promise, as with torn writes.
    """
    rows, tries = list(lost), 0
    if not rows or not breaks(_losing(state, rows)):
        return state
    size = max(1, len(rows) // 2)
    while tries < MOST_TRIES:
        for start in range(0, len(rows), size):
            fewer = rows[:start] + rows[start + size :]
            tries += 1
            if fewer != rows and breaks(_losing(state, fewer)):
                rows = fewer
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return _losing(state, rows)


def _losing(state: State, rows: Sequence[int]) -> State:
    return State(cut=state.cut, fate="without", without=tuple(rows))


def document(tally: Tally, source: Source[Any], *, kept: str | None, filesystem: str) -> dict[str, Any]:
    """``findings``: the first of each sort, broken promises first. ``id``: the argument of ``fslab crash replay``."""
    sorts = sorted(
        tally.findings, key=lambda sort: (not tally.findings[sort].broken, list(tally.findings).index(sort))
    )
    return {
        "version": VERSION,
        "filesystem": filesystem,
        "sequences": len(source.steps),
        **source.extent(),
        "states": tally.states,
        "states_in_recovery": tally.again,
        "states_in_recovery_broken": tally.again_broken,
        "states_in_repair": tally.repaired,
        "states_in_repair_lost": tally.repaired_lost,
        "states_damaged": tally.damaged,
        "states_unrepeated": tally.unrepeated,
        "promises_kept": len(tally.promised - tally.broken),
        "promises_broken": len(tally.broken),
        "lost_operations": len(tally.lost),
        "findings_broken": sum(finding.broken for finding in tally.findings.values()),
        "recovery_ns": tally.recovery_ns,
        "loss_window_ns": tally.loss_window_ns,
        "findings": [
            {**finding_document(tally.findings[sort], source, kept), "count": tally.counts[sort]}
            for sort in sorts[:SHOWN]
        ],
    }


def finding_document(finding: Finding, source: Source[Any], kept: str | None) -> dict[str, Any]:
    """Return the part of the document about one finding."""
    number = finding.sequence
    return {
        "id": f"{kept}.{finding.state}" if kept and finding.state else None,
        "kind": str(finding.kind),
        "broken": finding.broken,
        "detail": finding.detail,
        "source": finding.source,
        "state": finding.state,
        "sequence": None if number is None else source.words(number),
        "step": finding.step,
        "steps_broken": sorted(finding.broken_steps),
        "lost_rows": list(finding.lost_rows),
    }
