"""How far each sequence was at a cut, from the marks in the log."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fslab.crash.operations import Sequence
from fslab.errors import ToolOutputError

if TYPE_CHECKING:
    import polars as pl

_MARK = re.compile(r"(\d{1,9}):(\d{1,9}):(\w+)", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Marks in the order of the log: ``rows``, and for each its sequence and how many steps had returned and begun."""

    rows: tuple[int, ...]
    places: tuple[tuple[int, int, int], ...]
    sequences: tuple[Sequence, ...]

    @classmethod
    def of(cls, log: pl.DataFrame, sequences: tuple[Sequence, ...]) -> Progress:
        marks = log.filter(log["mark"].is_not_null() & log["mark"].str.contains(":", literal=True))
        places = []
        for name in marks["mark"]:
            sequence, step, what = _place(name)
            if not (sequence < len(sequences) and step <= len(sequences[sequence])):
                raise ToolOutputError(f"the log has a mark of no sequence: {name[:40]!r}", where="fslab-disk")
            places.append((sequence, step - (what == "begins"), step))
        return cls(rows=tuple(marks["row"]), places=tuple(places), sequences=sequences)

    def current(self, cut: int) -> int:
        """The sequence at which a cut before this row finds us."""
        at = bisect_left(self.rows, cut)
        return self.places[at - 1][0] if at else 0

    def steps(self, sequence: int, cut: int) -> tuple[int, int]:
        """How many of a sequence's steps had returned, and how many had begun."""
        at = bisect_left(self.rows, cut)
        current, done, begun = self.places[at - 1] if at else (0, 0, 0)
        if sequence == current:
            return done, begun
        every = len(self.sequences[sequence])
        return (every, every) if sequence < current else (0, 0)


def _place(name: str) -> tuple[int, int, str]:
    """Of a mark ``SEQUENCE:STEP:WHAT``."""
    match = _MARK.fullmatch(name)
    if match is None:
        raise ToolOutputError(f"the log has a mark that is none of ours: {name[:40]!r}", where="fslab-disk")
    return int(match[1]), int(match[2]), match[3]
