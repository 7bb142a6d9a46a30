"""Crash states: choose and name them, and make their images with ``fslab-disk states``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from fslab import untrusted_text
from fslab.crash.trial_request import IMAGES_FULL, LESS
from fslab.errors import NoSpaceError, ToolFailedError, UsageError
from fslab.system import disk_server, proc
from fslab.system.signals import Teardown, shielded
from fslab.system.tool_messages import reports_full_disk

if TYPE_CHECKING:
    import polars as pl

ANSWER_BYTES = 1 << 22
AGAIN = "+"  # between the names of two states; the second is of the recovery from the first
REPAIR = "+repair+"  # the same; the second is of the repair of the first
_N = r"\d{1,18}"
_ID = re.compile(
    rf"({_N})-(kept|lost|random-({_N})|torn({_N})-({_N})|without-((?:{_N}(?:\.{_N})*)?))", re.ASCII
)


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A cut before row ``cut`` of the log, and the ``fate`` of writes that no flush covers.

    See engine/disk/PROTOCOL.md, "Crash states".
    """

    cut: int
    fate: str
    seed: int = 0
    unit: int = 512
    without: tuple[int, ...] = ()

    def __str__(self) -> str:
        details = {
            "random": f"random-{self.seed}",
            "torn": f"torn{self.unit}-{self.seed}",
            "without": f"without-{'.'.join(map(str, self.without))}",
        }
        return f"{self.cut}-{details.get(self.fate, self.fate)}"

    @classmethod
    def parse(cls, text: str) -> State:
        """Return the state with this name. UsageError for an invalid name."""
        match = _ID.fullmatch(text)
        if match is None:
            raise UsageError(
                f"'{text[:100]}' is not the name of a crash state", hint="write a name such as 412-random-7"
            )
        cut, fate, seed, unit, torn_seed, rows = match.groups()
        return cls(
            cut=int(cut),
            fate=fate.partition("-")[0].rstrip("0123456789"),
            seed=int(seed or torn_seed or 0),
            unit=int(unit or 512),
            without=tuple(int(row) for row in (rows or "").split(".") if row),
        )


def chosen(log: pl.DataFrame, count: int, random: Random, *, unit: int) -> list[State]:
    """Choose ``count`` states, and return them in the order of their cuts.

    A third are at barriers, with all unflushed writes kept or all lost. The others are at any row, with some of the
    open epoch's writes, or with parts of these writes.
    """
    rows = range(1, log.height + 1)
    barriers = [row + 1 for row in log.filter(log["op"] == "flush")["row"]]
    barriers = random.sample(barriers, min(len(barriers), count // 3))
    found = {State(cut=cut, fate=random.choice(("kept", "lost"))) for cut in barriers}
    writes = [row + 1 for row in log.filter(log["op"] == "write")["row"]] or list(rows)
    while rows and len(found) < count:
        # Most rows are marks, so half of these cuts are placed directly after a write.
        cut, seed = random.choice(random.choice((rows, writes))), random.randrange(1 << 31)
        fate = random.choice(("random", "random", "torn"))
        found.add(State(cut=cut, fate=fate, seed=seed, unit=unit if fate == "torn" else 512))
    return sorted(found, key=lambda state: (state.cut, str(state)))


def at_ends(ends: Sequence[int], count: int, random: Random) -> list[State]:
    """Choose ``count`` of the rows at which a run ended: a cut directly after each, with all unflushed writes lost."""
    rows = ends if len(ends) <= count else random.sample(ends, count)
    return [State(cut=row + 1, fate="lost") for row in sorted(rows)]


class Builder:
    """A running process ``fslab-disk states``."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers, self._rest = requests, answers, b""
        self._answer()  # the first one is about the log

    def make(self, state: State, image: Path) -> tuple[int, ...]:
        """Create the file ``image`` with the state. Returns the rows of the log that are missing at least in part."""
        request = {
            "cut": state.cut, "fate": state.fate, "seed": state.seed, "unit": state.unit,
            "without": state.without, "output": str(image),
        }  # fmt: skip
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        return tuple(self._answer()["lost"])

    def _answer(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            part = os.read(self._answers, 1 << 16)
            if not part or len(self._rest) > ANSWER_BYTES:
                raise ToolFailedError("fslab-disk states has ended", where=disk_server.TOOL.program)
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = untrusted_text.json_of(line)
        if not answer["ok"] and reports_full_disk(str(answer["error"])):
            raise NoSpaceError(f"{IMAGES_FULL}: {answer['error']}", hint=LESS)
        if not answer["ok"]:
            raise ToolFailedError(
                f"cannot create the crash state: {answer['error']}", where=disk_server.TOOL.program
            )
        return answer


@contextmanager
def builder(log: Path, base: Path) -> Iterator[Builder]:
    """Start ``fslab-disk states`` for this log; ``base`` is the image of the disk when the log began."""
    with Teardown() as undo:
        with shielded():
            ask, requests = os.pipe2(os.O_CLOEXEC)
            answers, tell = os.pipe2(os.O_CLOEXEC)
            argv: Sequence[str] = [disk_server.TOOL.program, "states", str(log), "--base", str(base)]
            try:
                child = proc.start(argv, output=tell, errors=2, stdin=ask)
                undo.callback(child.end)
                undo.callback(child.wait, 10)
            finally:
                os.close(ask)
                os.close(tell)
                undo.callback(os.close, answers)
                undo.callback(os.close, requests)
        yield Builder(requests, answers)
