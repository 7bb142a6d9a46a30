"""The contract of a workload: one tool, its parameters, its commands, its metrics. One file per tool.

A workload never starts a process and never touches a disk: it says which commands to run (so that
``fslab plan`` can print them) and reads what they printed. Contract: prepare → run → cleanup.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import ValidationError, model_validator
from pydantic_core import PydanticCustomError

from fslab.abilities import Needs
from fslab.cell import Frozen, WorkloadSpec
from fslab.errors import FslabError
from fslab.record import Metric
from fslab.registry import Registry
from fslab.scaling import Changes
from fslab.system.tools import Tool
from fslab.validity.facts import WorkFacts
from fslab.workloads._traits import Switchable as Switchable
from fslab.workloads._traits import Traits as Traits


def text_key(key: str) -> str:
    """The parameter that holds the text of the file that ``key`` names."""
    return f"{key}_text"


# Processes, threads or requests in flight that a workload can have: fio's own limit. Without one, a mistyped number
# takes every process id of the machine.
MOST_AT_ONCE = 4096


class Parameters(Frozen):
    """Base of every workload's parameters; field descriptions become the documentation of the study file.

    ``file_keys`` name a file of the user's. Its text is a parameter of its own (``text_key``), set when the
    study is loaded, so that it belongs to the cell; the workload has it written out by ``Commands.inputs``.
    ``command_keys`` hold command lines: a list there is words, no matrix axis. Of ``nested_keys`` the mapping becomes
    keys with dots: ``metrics.rate.unit``.
    """

    file_keys: ClassVar[frozenset[str]] = frozenset()
    command_keys: ClassVar[frozenset[str]] = frozenset()
    nested_keys: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _with_texts(self) -> Self:
        """A stored workload whose text is not stored would have the file read that its name leads to here."""
        for key in self.file_keys:
            named = getattr(self, key, None)
            if named is not None and getattr(self, text_key(key), None) is None:
                raise ValueError(f"the text of '{key}: {named}' is missing")
        return self


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Where and with what seed a workload runs.

    ``directory`` is its own empty directory on the file system under test, ``scratch`` a directory
    elsewhere for the tool's report files; ``seed`` differs from block to block, so that every trial draws
    new offsets and all cells of a block draw the same ones. ``cold``: the page cache was just dropped; else
    the files were just read into it, and a tool must not drop them on its own.
    ``each_operation``: speed is not measured, and the tool logs every operation if it can.
    """

    directory: Path
    scratch: Path
    seed: int
    cold: bool = True
    each_operation: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Commands:
    """What to run: ``prepare`` outside the measured time, ``run`` measured, ``cleanup`` afterwards.

    Every command runs with ``Job.directory`` as its working directory. ``outputs`` names the report files
    in ``Job.scratch`` that ``run`` writes (their text reaches ``read`` and the store). ``operations`` names the
    one that holds every operation, as ``fslab.tracing.slow_operations`` reads it; it is not stored. ``inputs`` are
    texts by the name of the file in ``Job.scratch`` that they are written to before ``prepare``.
    """

    prepare: tuple[tuple[str, ...], ...] = ()
    run: tuple[str, ...]
    cleanup: tuple[tuple[str, ...], ...] = ()
    outputs: tuple[str, ...] = ()
    operations: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutput:
    """What ``run`` left: its streams, its report files by name, and its wall time in seconds."""

    stdout: str
    stderr: str
    files: Mapping[str, str] = field(default_factory=dict)
    duration_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading(WorkFacts):
    """What a tool's output says: a value (or None for unknown) for each declared metric, and the facts of how it
    worked. ``fslab.validity`` decides which of these facts lead to a warning, never this module. ``latencies``: by
    operation, the percentiles that the tool reports: percent (50.0 … 99.99) → ns.
    """

    metrics: Mapping[str, float | None]
    latencies: Mapping[str, Mapping[float, float]] = field(default_factory=dict)


class Workload(ABC, Generic[P]):
    """One tool. ``name`` is set by the registry from the file's name."""

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]]
    Parameters: type[P]

    @abstractmethod
    def metrics(self, parameters: P) -> tuple[Metric, ...]:
        """Every metric that a run with these parameters yields; the first ones are the headline."""

    @abstractmethod
    def headline(self, parameters: P) -> tuple[str, ...]:
        """Names of the one to three metrics that a table shows, the most important first."""

    @abstractmethod
    def commands(self, parameters: P, job: Job) -> Commands:
        """The exact command lines. Pure."""

    @abstractmethod
    def read(self, parameters: P, output: ToolOutput) -> Reading:
        """Parse the tool's output; ToolOutputError when it is not in the expected format. Pure.

        Also called when the exit status was not 0: NoSpaceError if the output shows that space ran out.
        """

    @abstractmethod
    def space_bytes(self, parameters: P) -> int:
        """How much room the workload needs on the file system under test."""

    def memory_bytes(self, parameters: P) -> int:
        """What the tool allocates for its requests: a buffer for each that is in flight."""
        found = self.traits(parameters)
        return max(found.request_bytes, default=0) * (found.parallel or 1)

    @abstractmethod
    def expected_s(self, parameters: P) -> float:
        """A rough duration of prepare and run, for the plan's estimate."""

    def files_of(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Those that name a file whose text belongs to the workload."""
        return tuple(key for key in keys if key.rpartition(".")[2] in self.Parameters.file_keys)

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """The parameters with this run time where the tool has one and they do not say it."""
        return {"runtime": runtime, **raw} if "runtime" in self.Parameters.model_fields else dict(raw)

    def tools_of(self, parameters: P) -> tuple[Tool, ...]:  # noqa: ARG002
        """The programs that a run with these parameters needs."""
        return self.tools

    def own_commands(self, parameters: P, job: Job) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        """The command lines that the study itself brings, which can do whatever the user who runs it can."""
        return ()

    def traits(self, parameters: P) -> Traits:  # noqa: ARG002
        """What it does, as far as the parameters tell. Pure."""
        return Traits()

    def needs(self, parameters: P) -> Needs:  # noqa: ARG002
        """What it cannot do without on the file system under test; by default nothing special. Pure."""
        return Needs()

    def scaled(self, parameters: P, factor: float) -> Changes:  # noqa: ARG002
        """The keys that change when there is to be ``factor`` times as much work: sizes of files, counts and run
        times. The sizes of requests and the number of threads do not change.

        No value goes below what the tool needs to run and to report a figure. Pure.
        """
        return {}

    def parse_parameters(self, raw: Mapping[str, Any]) -> P:
        """Validated parameters; pydantic's ValidationError lists all mistakes.

        What a plan asks of them is asked here: an answer that cannot be given is a mistake of the study.
        """
        found = self.Parameters.model_validate(dict(raw))
        try:
            for question in (self.metrics, self.headline, self.traits, self.needs, self.tools_of):
                question(found)
            for amount in (self.space_bytes, self.memory_bytes, self.expected_s):
                amount(found)
        except (ValueError, ArithmeticError) as error:
            told = PydanticCustomError("value_error", "{error}", {"error": str(error)})
            raise ValidationError.from_exception_data(
                self.name, [{"type": told, "input": dict(raw)}]
            ) from error
        return found


@dataclass(frozen=True, kw_only=True)
class ParsedWorkload(Generic[P]):
    """The workload of a cell with its parameters parsed: whoever asks what it does asks this."""

    tool: Workload[P]
    parameters: P

    def metrics(self) -> tuple[Metric, ...]:
        return self._metrics

    @cached_property
    def _metrics(self) -> tuple[Metric, ...]:
        # Claims ask thousands of times.
        return self.tool.metrics(self.parameters)

    def headline(self) -> tuple[str, ...]:
        return self.tool.headline(self.parameters)

    def commands(self, job: Job) -> Commands:
        return self.tool.commands(self.parameters, job)

    def own_commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        return self.tool.own_commands(self.parameters, job)

    def read(self, output: ToolOutput) -> Reading:
        return self.tool.read(self.parameters, output)

    def tools(self) -> tuple[Tool, ...]:
        return self.tool.tools_of(self.parameters)

    def traits(self) -> Traits:
        return self.tool.traits(self.parameters)

    def needs(self) -> Needs:
        return self.tool.needs(self.parameters)

    def space_bytes(self) -> int:
        return self.tool.space_bytes(self.parameters)

    def memory_bytes(self) -> int:
        return self.tool.memory_bytes(self.parameters)

    def expected_s(self) -> float:
        return self.tool.expected_s(self.parameters)


REGISTRY: Registry[Workload[Any]] = Registry("workload", __name__, Workload, group="fslab.workloads")


def parsed(spec: WorkloadSpec) -> ParsedWorkload[Any]:
    """The workload of a cell. The one place where parameters of a cell are parsed, each once."""
    return _parsed(REGISTRY.get(spec.tool), json.dumps(spec.parameters))


def parsed_if_known(spec: WorkloadSpec) -> ParsedWorkload[Any] | None:
    """None for a workload that this program does not know, or whose parameters it no longer takes."""
    try:
        return parsed(spec)
    except (FslabError, ValidationError):
        return None


def traits_of(spec: WorkloadSpec) -> Traits:
    """What a cell's workload does; nothing is known of one that this program does not know, or no longer takes."""
    known = parsed_if_known(spec)
    return known.traits() if known else Traits()


@lru_cache(maxsize=4096)
def _parsed(tool: Workload[Any], parameters: str) -> ParsedWorkload[Any]:
    return ParsedWorkload(tool=tool, parameters=tool.parse_parameters(json.loads(parameters)))
