"""One trial: record the runs of a source, make crash states of the recording, judge each, and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from fslab.crash import states
from fslab.crash.examine import Examined, Examiner, Subject
from fslab.crash.findings import Finding
from fslab.crash.minimise import fewest_lost
from fslab.crash.positions import Positions
from fslab.crash.recording import Recording
from fslab.crash.sources import Source
from fslab.crash.states import Builder, Made, State

OTHERS = 2  # earlier sequences, looked at in each state beside the current one and its neighbours
MINIMISED = 3
IMAGES = "1g"


@dataclass(kw_only=True, slots=True)
class Tally:
    """Of all states. A promise is a sync that returned, by run and step. ``loss_window_ns``: how old the oldest
    lost operation of each state is. ``findings``: the first of each sort, with how often it was found."""

    states: int = 0
    damaged: int = 0
    promised: set[tuple[int, int]] = field(default_factory=set)
    broken: set[tuple[int, int]] = field(default_factory=set)
    lost: set[tuple[int, int]] = field(default_factory=set)
    recovery_ns: list[int] = field(default_factory=list)
    loss_window_ns: list[int] = field(default_factory=list)
    findings: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        sort = (finding.kind, finding.broken, finding.sequence, finding.step, finding.name)
        self.findings.setdefault(sort, finding)
        self.counts[sort] += 1
        if finding.broken and finding.sequence is not None and finding.step:
            self.broken.add((finding.sequence, finding.step))


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Makes, examines and judges states of one recording. ``images`` is private memory."""

    tested: Subject
    source: Source[Any]
    positions: Positions
    builder: Builder
    examiner: Examiner
    images: Path

    def judge(self, state: State, tally: Tally, others: Iterable[int] = ()) -> tuple[Made, list[Finding]]:
        """Everything about one state; counted in ``tally``."""
        current = self.positions.current(state.cut)
        near = {current - 1, current, current + 1, *others}
        wanted = sorted(near & set(range(len(self.source.steps))))
        made, seen = self._examined(state, wanted)
        if seen.findings:  # only what comes again: a busy machine may refuse a mount once
            made, seen = self._examined(state, wanted)
        found, oldest_ns = list(seen.findings), 0
        for number, contents in seen.contents.items():
            progress = self.positions.at(number, state.cut)
            verdict = self.source.judge(progress, contents, self.tested.promises)
            found += verdict.findings
            tally.promised |= {(number, at) for at in verdict.promised}
            tally.lost |= {(number, at) for at in verdict.lost}
            ages = (self.positions.age_ns(number, at, state.cut) for at in verdict.lost)
            oldest_ns = max(oldest_ns, *ages, 0)
        found = [replace(finding, state=str(state), lost_rows=made.lost) for finding in found]
        tally.states += 1
        tally.loss_window_ns.append(oldest_ns)
        tally.damaged += bool(seen.findings)
        tally.recovery_ns += [seen.recovery_ns] if seen.recovery_ns is not None else []
        for finding in found:
            tally.add(finding)
        return made, found

    def _examined(self, state: State, sequences: Iterable[int]) -> tuple[Made, Examined]:
        image = self.images / "state.img"
        made = self.builder.make(state, image)
        try:
            return made, self.examiner.examine(image, sequences)
        finally:
            image.unlink()


def judge_all(judge: Judge, chosen: Iterable[State], random: Random) -> Tally:
    """All states; the first broken promises are minimised."""
    tally = Tally()
    for state in chosen:
        current = judge.positions.current(state.cut)
        others = random.sample(range(current + 1), min(OTHERS, current + 1))
        judge.judge(state, tally, others)
    sorts = [sort for sort, finding in tally.findings.items() if finding.broken][:MINIMISED]
    for sort in sorts:
        tally.findings[sort] = _minimised(judge, tally.findings[sort])
    return tally


def _minimised(judge: Judge, finding: Finding) -> Finding:
    """The same finding in a state with as few lost writes as possible."""
    latest = finding

    def breaks(state: State) -> bool:
        nonlocal latest
        for found in judge.judge(state, Tally(), [finding.sequence or 0])[1]:
            if (found.kind, found.sequence, found.name, found.broken) == (
                finding.kind, finding.sequence, finding.name, True,
            ):  # fmt: skip
                latest = found
                return True
        return False

    state = State.parse(finding.state)
    smallest = fewest_lost(state, finding.lost_rows, breaks)
    return latest if latest.state == str(smallest) else finding


def judge_of(
    tested: Subject, recording: Recording, source: Source[Any], builder: Builder, images: Path
) -> Judge:
    """A judge with a mount point of its own in ``images``, which is private memory."""
    target = images / "mounted"
    target.mkdir()
    return Judge(
        tested=tested, source=source, positions=Positions.of(recording.table(), source.steps), builder=builder,
        examiner=Examiner(tested, source, target), images=images,
    )  # fmt: skip


def judged(
    recording: Recording,
    tested: Subject,
    source: Source[Any],
    *,
    count: int,
    unit: int,
    seed: int,
    images: Path,
) -> Tally:
    """The tally of ``count`` states."""
    log, random = recording.table(), Random(seed)  # noqa: S311 - to be repeated
    wanted = states.chosen(log, count, random, unit=unit)
    with states.builder(recording.log, recording.base) as builder:
        return judge_all(judge_of(tested, recording, source, builder, images), wanted, random)
