"""Find how far each run was at a cut, from the marks in the log."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fslab.crash.recording import FLUSHED
from fslab.crash.sources import Progress
from fslab.errors import ToolOutputError

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


def _place(name: str) -> tuple[int, int, str]:
    """Parse a mark ``RUN:STEP:WHAT``."""
    match = _MARK.fullmatch(name)
    if match is None:
        raise ToolOutputError(f"the log has an unknown mark: {name[:40]!r}", where="fslab-disk")
    return int(match[1]), int(match[2]), match[3]
