"""Judge one crash state: make its image, examine it, and compare what is left of the runs with what was promised.

This module does not combine the outcomes of many states; ``trial`` does.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fslab.crash.examine import Examined, Examiner, Subject
from fslab.crash.recording import FLUSHED, Recording, recovery_of
from fslab.crash.sources import Finding, Kind, Progress, Source
from fslab.crash.states import AGAIN, REPAIR, Builder, State
from fslab.crash.trial_request import IMAGES_FULL, LESS
from fslab.errors import NoSpaceError, ToolOutputError
from fslab.storage.images import tell_when_full
from fslab.system import disk_server
from fslab.system.signals import Teardown

WHOLE = -1

REPAIRING = "e2fsck(8), xfs_repair(8): nothing is promised for a power cut during a repair"


if TYPE_CHECKING:
    import polars as pl


_MARK = re.compile(r"(\d{1,9}):(\d{1,9}):(\w+)", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Positions:
    """The marks in the order of the log. ``rows``: their rows in the log; ``places``: how far the run was at each.
    ``steps``: the number of steps of each run. ``times_ns``: when each row of the log was done. ``returned_ns``: when
    each (run, step) returned. Runs may overlap. ``flushed``: rows after which all runs until then are on the disk."""

    rows: tuple[int, ...]
    places: tuple[Progress, ...]
    steps: tuple[int, ...]
    times_ns: tuple[int, ...]
    returned_ns: Mapping[tuple[int, int], int]
    by_run: Mapping[int, tuple[list[int], list[Progress]]] = field(default_factory=dict)
    flushed: tuple[int, ...] = ()

    @property
    def ends(self) -> list[int]:
        """The row of each run's last mark: its last step has returned."""
        places = zip(self.rows, self.places, strict=True)
        return [row for row, place in places if place.done == self.steps[place.number]]

    @classmethod
    def of(cls, log: pl.DataFrame, steps: tuple[int, ...]) -> Positions:
        marks = log.filter(log["mark"].is_not_null() & log["mark"].str.contains(":", literal=True))
        places, returned, by_run = (
            [],
            {},
            defaultdict[int, tuple[list[int], list[Progress]]](lambda: ([], [])),
        )
        for name, time_ns, row in zip(marks["mark"], marks["done_ns"], marks["row"], strict=True):
            number, step, what = _place(name)
            if not (number < len(steps) and step <= steps[number]):
                raise ToolOutputError(
                    f"the log has a mark of an unknown run: {name[:40]!r}", where="fslab-disk"
                )
            places.append(Progress(number=number, done=step - (what == "begins"), begun=step))
            by_run[number][0].append(row)
            by_run[number][1].append(places[-1])
            if what != "begins":
                returned[number, step] = time_ns
        return cls(
            rows=tuple(marks["row"]), places=tuple(places), steps=steps, times_ns=tuple(log["done_ns"]),
            returned_ns=returned, by_run=dict(by_run),
            flushed=tuple(log.filter(log["mark"] == FLUSHED)["row"]),
        )  # fmt: skip

    def current(self, cut: int) -> int:
        """Return the run that made the last mark before row ``cut``."""
        at = bisect_left(self.rows, cut)
        return self.places[at - 1].number if at else 0

    def at_stake(self, cut: int) -> set[int]:
        """Return the runs of which a cut before row ``cut`` may lose data: they began after the last flush of all."""
        before = bisect_left(self.flushed, cut)
        last = self.flushed[before - 1] if before else -1
        return {number for number, (rows, _) in self.by_run.items() if last < rows[0] < cut}

    def at(self, number: int, cut: int) -> Progress:
        """Return how far a run was at a cut before row ``cut``."""
        rows, places = self.by_run.get(number, ((), ()))
        at = bisect_left(rows, cut)
        return places[at - 1] if at else Progress(number=number, done=0, begun=0)

    def age_ns(self, number: int, step: int, cut: int) -> int:
        """Return how long before the cut a step had returned; 0 if it had not returned."""
        at = self.times_ns[min(cut, len(self.times_ns)) - 1] if cut else 0
        return max(0, at - self.returned_ns.get((number, step), at))


@dataclass(kw_only=True, slots=True)
class Outcome:
    """The outcome of one state. ``promised`` and ``lost``: steps as (run, step). ``oldest_ns``: the age of the oldest
    lost step. ``unrepeated``: a finding did not occur again when the state was made and examined a second time; such a
    finding is left out."""

    seen: Examined
    findings: list[Finding]
    promised: set[tuple[int, int]] = field(default_factory=set)
    lost: set[tuple[int, int]] = field(default_factory=set)
    oldest_ns: int = 0
    unrepeated: bool = False

    @property
    def broken(self) -> bool:
        """Whether a promise is broken."""
        return any(finding.broken for finding in self.findings)

    @property
    def broken_steps(self) -> set[tuple[int, int]]:
        """The steps whose promise is broken, as (run, step): all, if the file system cannot be read at all. (run, 0):
        what was durable before the run; (WHOLE, 0): that the file system is consistent."""
        if any(finding.broken and finding.kind is Kind.UNMOUNTABLE for finding in self.findings):
            unread = {step for step in self.promised if step[0] not in self.seen.contents}
        else:
            unread = set()
        each = (
            (WHOLE if finding.sequence is None else finding.sequence, at)
            for finding in self.findings
            for at in finding.broken_steps
        )
        return unread | set(each)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Judges the states of one recording. ``images`` is a private tmpfs. ``volatile``: whether the recorded disk has a
    volatile cache."""

    tested: Subject
    source: Source[Any]
    positions: Positions
    builder: Builder
    examiner: Examiner
    images: Path
    volatile: bool = True

    def after(self, state: State, others: Iterable[int] = ()) -> Outcome:
        """Judge a state after one cut. Examines the runs that were cut, their neighbours, and ``others``."""
        return self._repeated(self.builder, state, str(state), state.cut, self._near(state.cut, others))

    def after_end(self, state: State) -> Outcome:
        """Judge a state after a cut at the end of a run. Examines only the runs that were cut."""
        runs = self.positions.at_stake(state.cut) | {self.positions.current(state.cut)}
        return self._repeated(self.builder, state, str(state), state.cut, sorted(runs))

    def after_both(
        self, first: State, second: State, builder: Builder, others: Iterable[int] = ()
    ) -> Outcome:
        """Judge a state after a second cut, during the recovery from the first. ``builder`` makes the states of that
        recovery. What was promised before the first cut is still promised."""
        name = f"{first}{AGAIN}{second}"
        return self._repeated(builder, second, name, first.cut, self._near(first.cut, others))

    def after_cut_repair(self, first: State, second: State, builder: Builder) -> Outcome:
        """Judge a state after a second cut, during the repair of the first, and another repair.

        No documentation promises anything for this case, so no finding is a broken promise.
        """
        name, near = f"{first}{REPAIR}{second}", self._near(first.cut, ())
        outcome = self._repeated(builder, second, name, first.cut, near, cut_repair=True)
        found = [replace(each, broken=False, source=REPAIRING) for each in outcome.findings if each.broken]
        return replace(outcome, findings=found)

    def _near(self, cut: int, others: Iterable[int]) -> list[int]:
        current = self.positions.current(cut)
        near = {current - 1, current, current + 1, *self.positions.at_stake(cut)}
        return sorted({*near, *others} & set(range(len(self.source.steps))))

    @contextmanager
    def recovery(self, state: State, *, repair: bool = False) -> Iterator[Recording | None]:
        """Record what the mount of this state writes, or its full repair (:func:`recording.recovery_of`)."""
        with self._image("first") as image:
            self.builder.make(state, image)
            with recovery_of(
                image, self.tested, self.examiner.target, volatile=self.volatile, repair=repair
            ) as recording:
                yield recording

    @contextmanager
    def _image(self, name: str) -> Iterator[Path]:
        """Return where to make the image of a state, which is removed afterwards. NoSpaceError if its memory was full:
        that a file system then fails is no finding."""
        with Teardown() as undo:
            image = self.images / f"{name}.img"
            undo.callback(image.unlink, missing_ok=True)
            tell_when_full(undo, self._check_left)
            yield image

    def _check_left(self) -> None:
        if not os.statvfs(self.images).f_bavail:
            raise NoSpaceError(IMAGES_FULL, where=str(self.images), hint=LESS)

    def _repeated(
        self,
        builder: Builder,
        state: State,
        name: str,
        cut: int,
        runs: list[int],
        *,
        cut_repair: bool = False,
    ) -> Outcome:
        """Examine a state with findings twice and keep those that recur: a busy machine may refuse a mount once. Data
        that a program refuses counts only if it takes intact data meanwhile."""
        once = self._once(builder, state, name, cut, runs, cut_repair=cut_repair)
        if any(finding.kind is Kind.DAMAGED and finding.sequence is not None for finding in once.findings):
            self._check_able()
        if not once.seen.findings and not once.broken:
            return once
        twice = self._once(builder, state, name, cut, runs, cut_repair=cut_repair)
        known = {finding.sort for finding in once.findings}
        found = [finding for finding in twice.findings if finding.sort in known]
        damage = [finding for finding in twice.seen.findings if finding.sort in known]
        seen = replace(twice.seen, findings=damage)
        return replace(twice, seen=seen, findings=found, unrepeated=len(found) < len(once.findings))

    def _check_able(self) -> None:
        directory = self.images / "intact"
        # It stays: PostgreSQL needs ten times as long to make a cluster as to start.
        directory.mkdir(exist_ok=True)
        self.source.check_able(directory)

    def _once(
        self, builder: Builder, state: State, name: str, cut: int, runs: list[int], *, cut_repair: bool
    ) -> Outcome:
        with self._image("state") as image:
            lost_rows = builder.make(state, image)
            seen = self.examiner.examine(image, runs, cut_repair=cut_repair)
        outcome = Outcome(seen=seen, findings=list(seen.findings))
        for number in runs:
            promised = self.source.promised(self.positions.at(number, cut), self.tested.promises)
            outcome.promised |= {(number, at) for at in promised}
        for number, contents in seen.contents.items():
            verdict = self.source.judge(self.positions.at(number, cut), contents, self.tested.promises)
            outcome.findings += verdict.findings
            outcome.lost |= {(number, at) for at in verdict.lost}
            ages = (self.positions.age_ns(number, at, cut) for at in verdict.lost)
            outcome.oldest_ns = max(outcome.oldest_ns, *ages, 0)
        outcome.findings = [replace(finding, state=name, lost_rows=lost_rows) for finding in outcome.findings]
        return outcome


def judge_of(
    tested: Subject, recording: Recording, source: Source[Any], builder: Builder, images: Path
) -> Judge:
    """Return a judge with its own mount point beside ``images``, which is a private tmpfs."""
    target = images.with_name("mounted")
    target.mkdir()
    return Judge(
        tested=tested, source=source, positions=Positions.of(recording.table(), source.steps), builder=builder,
        examiner=Examiner(tested, source, target), images=images,
        volatile=disk_server.has_volatile_cache(recording.log),
    )  # fmt: skip


def _place(name: str) -> tuple[int, int, str]:
    """Parse a mark ``RUN:STEP:WHAT``."""
    match = _MARK.fullmatch(name)
    if match is None:
        raise ToolOutputError(f"the log has an unknown mark: {name[:40]!r}", where="fslab-disk")
    return int(match[1]), int(match[2]), match[3]
