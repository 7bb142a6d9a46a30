"""A fixed amount of work in named steps: the keys that all such applications have, and what is known of a run."""

from __future__ import annotations

import math
import signal
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator

from fslab.applications._load import AnyLoad
from fslab.applications._servers import ending_with_parent
from fslab.errors import nearest
from fslab.system import proc
from fslab.system.tools import Tool, require


class StepLoad(AnyLoad):
    """The keys of an application of steps. ``known``: its steps in order; ``writing``, ``reading``: those that do so
    with contents or names of files. The class sets them.
    """

    known: ClassVar[tuple[str, ...]]
    writing: ClassVar[frozenset[str]]
    reading: ClassVar[frozenset[str]]

    steps: str | None = Field(
        None,
        description="the steps that are measured, such as `STEP,STEP`; default: all. Each includes a sync of the file "
        "system. Those before the first are done before, not measured: it begins with the study's `cache`",
    )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The steps that are measured."""
        return tuple(self.steps.split(",")) if self.steps else self.known

    @property
    def done_before(self) -> tuple[str, ...]:
        return self.known[: self.known.index(self.chosen[0])]

    @property
    def reads(self) -> bool:
        return bool(self.reading & set(self.chosen))

    @property
    def writes(self) -> bool:
        return bool(self.writing & set(self.chosen))

    @field_validator("steps")
    @classmethod
    def _in_order(cls, value: str | None) -> str | None:
        if value is None:
            return None
        steps = [step.strip() for step in value.split(",")]
        for step in steps:
            if step not in cls.known:
                raise ValueError(f"no step '{step}': {nearest(step, cls.known) or ', '.join(cls.known)}")
        if steps != [step for step in cls.known if step in steps]:
            raise ValueError(f"'steps' must be in this order, each once: {','.join(cls.known)}")
        return ",".join(steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """What a step has worked on. ``read_bytes``, ``written_bytes``: contents of files; None: unknown."""

    files: int
    read_bytes: int | None = None
    written_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DoneStep:
    """When a step began and ended (CLOCK_MONOTONIC), with the sync of what it has written."""

    name: str
    began_s: float
    ended_s: float
    amount: Amount


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """A measured run. ``problem``: what is wrong with the files afterwards."""

    steps: tuple[DoneStep, ...]
    problem: str | None = None

    def document(self) -> dict[str, Any]:
        return {"version": 1, "steps": [asdict(step) for step in self.steps], "problem": self.problem}


def run_program(tool: Tool, *words: str | Path, cwd: Path, check: bool = True) -> proc.Completed:
    """Run a program of a step. It ends with this process; how long it may take is the trial's to say."""
    argv = (require(tool), *map(str, words))
    ending = ending_with_parent(*argv, by=signal.SIGKILL)
    done = replace(proc.run(ending, cwd=cwd, timeout_s=math.inf, check=False), argv=argv)
    if check and done.returncode != 0:
        raise proc.failed(done)
    return done
