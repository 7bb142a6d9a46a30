"""Several workloads on one file system, started at the same moment, with the figures of each.

Builds the commands; starts no process. Each part has its own directory. The kernel's counters are those of all parts.
"""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from fslab import scaling
from fslab.cell import Scalar, WorkloadSpec
from fslab.errors import nearest
from fslab.filesystem_abilities import Needs
from fslab.system.parallel import RESULT
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, SomeTime, Unit, format_duration
from fslab.workloads import (
    REGISTRY,
    Check,
    Commands,
    Job,
    Parameters,
    ParsedWorkload,
    Reading,
    RunsAs,
    ToolOutput,
    Traits,
    Workload,
    mistake,
    parsed,
    total,
    why_of,
)

_EXAMPLE = "{reader: {tool: fio, rw: read, size: 1g}, mail: {tool: filebench, personality: varmail}}"
_NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
_OF_EACH = ("metrics", "latencies", "errors", "wrong")
_OF_ANY = ("zeros", "repeats", "queue_in_tool", "mounts_damaged", "disk_fails")
_SUMS = ("read_bytes", "written_bytes", "drops")
_STREAMS = ("stdout", "stderr")
_Figure = TypeVar("_Figure")
_ALONE = 0.9  # a part that ran for a smaller share of the time left the others without its load for too long


class MixedParameters(Parameters):
    """`parts` maps a name to a workload, written as any other workload: `parts: {reader: {tool: fio, rw: randread,
    size: 1g}, mail: {tool: filebench, personality: varmail}}`. A list in a part is a matrix axis (`parts.reader.bs`).
    All start together, and the run ends with the last part: give all one `runtime`, or work of the same duration.
    Metrics have the part's name as a prefix: `reader_read_iops`. `overlap` is the duration of the shortest part in
    percent of the longest. There are two parts or more; a name has at most 20 lower-case letters and digits, and begins
    with a letter.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    command_keys: ClassVar[frozenset[str]] = frozenset({"prepare", "run", "cleanup"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"parts"})

    runtime: SomeTime | None = Field(
        None, description="run time of the parts that take one and do not set their own"
    )

    @cached_property
    def parts(self) -> dict[str, ParsedWorkload[Any]]:
        """Part name → its workload with parsed parameters."""
        found = {}
        for name, raw in _parts(self.model_extra or {}, self.runtime).items():
            tool = str(raw.pop("tool"))
            found[name] = parsed(WorkloadSpec(name=name, tool=tool, parameters=raw))
        return found

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report the mistakes in a part at their keys."""
        checked = handler(data)
        mistakes = list(_mistakes(checked.model_extra or {}, checked.runtime))
        if mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return checked


class Mixed(Workload[MixedParameters]):
    """Runs the parts' own commands, each in its part's directory."""

    summary = "several workloads at once, started together, with the figures of each"
    tools: ClassVar[tuple[Tool, ...]] = ()
    Parameters = MixedParameters

    def metrics(self, parameters: MixedParameters) -> tuple[Metric, ...]:
        """Return the parts' metrics, with the part's name as a prefix, and ``overlap``."""
        found = [
            metric.model_copy(update={"name": f"{name}_{metric.name}"})
            for name, part in parameters.parts.items()
            for metric in part.metrics()
        ]
        found.append(Metric(name="overlap", unit=Unit.PERCENT, better=Direction.NEITHER))
        return self.headline_first(parameters, found)

    def headline(self, parameters: MixedParameters) -> tuple[str, ...]:
        return tuple(f"{name}_{part.headline()[0]}" for name, part in parameters.parts.items())

    def reader_of(self, key: str, keys: Mapping[str, Any]) -> Workload[Any]:
        """Return the workload of the part."""
        tool = keys.get(f"{key.rpartition('.')[0]}.tool")
        return REGISTRY.get(tool) if tool in REGISTRY.names() else self

    def notices(self, parameters: MixedParameters) -> tuple[str, ...]:
        return tuple(f"{name}: {each}" for name, part in parameters.parts.items() for each in part.notices())

    def commands(self, parameters: MixedParameters, job: Job) -> Commands:
        """Return each part's commands in its directory. The measured commands run together."""
        made = {name: part.commands(_job(job, name)) for name, part in parameters.parts.items()}
        directories = [str(place / name) for name in made for place in (job.directory, job.scratch)]
        lines = [
            word
            for name, commands in made.items()
            for word in (name, str(job.directory / name), shlex.join(commands.run))
        ]
        outputs = [
            f"{name}/{file}" for name, commands in made.items() for file in (*_STREAMS, *commands.outputs)
        ]
        return Commands(
            prepare=(("mkdir", "-p", *directories), *_within(job, ((n, c.prepare) for n, c in made.items()))),
            run=(sys.executable, "-P", "-B", "-m", "fslab.system.parallel", str(job.scratch), *lines),
            cleanup=tuple(_within(job, ((n, c.cleanup) for n, c in made.items()))),
            outputs=(RESULT, *outputs),
            inputs={f"{n}/{file}": text for n, c in made.items() for file, text in c.inputs.items()},
        )

    def checks(self, parameters: MixedParameters, job: Job) -> tuple[Check, ...]:
        return tuple(check for part in parameters.parts.values() for check in part.checks(job))

    def place_of(self, parameters: MixedParameters, told: str) -> str | None:
        return next(filter(None, (part.place_of(told) for part in parameters.parts.values())), None)

    def own_commands(self, parameters: MixedParameters, job: Job) -> tuple[tuple[str, ...], ...]:
        return tuple(
            argv for name, part in parameters.parts.items() for argv in part.own_commands(_job(job, name))
        )

    def read(self, parameters: MixedParameters, output: ToolOutput) -> Reading:
        """Return the parts' figures, and the bytes that all parts together transferred."""
        seconds: Mapping[str, float] = json.loads(output.files.get(RESULT, "{}"))
        read = {name: part.read(_output_of(name, output, seconds)) for name, part in parameters.parts.items()}
        return combined(read, seconds)

    def tools_of(self, parameters: MixedParameters) -> tuple[Tool, ...]:
        return tuple(dict.fromkeys(t for part in parameters.parts.values() for t in part.tools()))

    def needs(self, parameters: MixedParameters) -> Needs:
        needs = [part.needs() for part in parameters.parts.values()]
        return Needs(
            abilities=frozenset().union(*(each.abilities for each in needs)),
            largest_file_bytes=max(each.largest_file_bytes for each in needs),
        )

    def scaled(self, parameters: MixedParameters, factor: float) -> scaling.Changes:
        return {
            f"parts.{name}.{key}": change
            for name, part in parameters.parts.items()
            for key, change in part.tool.scaled(part.parameters, factor).items()
        }

    def unscaled(self, parameters: MixedParameters) -> tuple[str, ...]:
        """Return the parts in which nothing is scaled, and what the others leave as it is."""
        found = []
        for name, part in parameters.parts.items():
            some = part.tool.scaled(part.parameters, 0.5)
            found += [f"{name} {what}" for what in part.unscaled()] if some else [name]
        return tuple(found)

    def traits(self, parameters: MixedParameters) -> Traits:
        """Return the traits of all parts, which work at once. None if the traits of the parts do not determine it."""
        every = [part.traits() for part in parameters.parts.values()]
        return Traits(
            reads=_any(each.reads for each in every),
            writes=_any(each.writes for each in every),
            direct=None if any(each.direct is None for each in every) else all(each.direct for each in every),
            request_bytes=tuple(sorted({size for each in every for size in each.request_bytes})),
            parallel=total(each.parallel for each in every),
            held_back=any(each.held_back for each in every),
        )

    def space_bytes(self, parameters: MixedParameters) -> int:
        return sum(part.space_bytes() for part in parameters.parts.values())

    def memory_bytes(self, parameters: MixedParameters) -> int:
        return sum(part.memory_bytes() for part in parameters.parts.values())

    def expected_s(self, parameters: MixedParameters) -> float:
        """Return the sum over all parts: they are prepared one by one, and the sum is an upper bound of the run."""
        return sum(part.expected_s() for part in parameters.parts.values())


def _any(values: Iterable[bool | None]) -> bool | None:
    known = list(values)
    return True if True in known else None if None in known else False


def _parts(keys: Mapping[str, Scalar], runtime: str | None) -> dict[str, dict[str, Scalar]]:
    """Group ``parts.a.bs`` by part and key. Parts that take a run time and set none get the common one."""
    found: dict[str, dict[str, Scalar]] = {}
    for key, value in keys.items():
        word, _, rest = key.partition(".")
        name, _, inner = rest.partition(".")
        if word != "parts":
            raise ValueError(f"unknown key '{key}'; known: runtime, parts")
        if not inner:
            wanted = "must be a workload" if rest else "must map names to workloads"
            raise ValueError(f"'{key}' {wanted}, as in parts: {_EXAMPLE}")
        found.setdefault(name, {})[inner] = value
    if runtime is None:
        return found
    return {
        name: REGISTRY.get(str(raw["tool"])).of(raw).with_runtime(raw, runtime)
        if raw.get("tool") in REGISTRY.names()
        else raw
        for name, raw in found.items()
    }


def _mistakes(keys: Mapping[str, Scalar], runtime: str | None) -> Iterator[InitErrorDetails]:
    parts = _parts(keys, runtime)
    if len(parts) < 2:
        yield mistake((), None, "give at least two 'parts', each a workload")
    known = [name for name in REGISTRY.names() if name != "mixed"]
    for name, raw in parts.items():
        tool = str(raw.pop("tool", ""))
        place = (f"parts.{name}.tool",)
        if not _NAME.fullmatch(name):
            what = f"'{name}' is not a valid name of a part"
            yield mistake(place, None, f"{what}: use 1 to 20 of a-z and 0-9, and begin with a letter")
        if tool not in known:
            yield mistake(place, None, f"unknown tool '{tool}': {nearest(tool, known)}")
            continue
        try:
            part = parsed(WorkloadSpec(name="part", tool=tool, parameters=raw))
            if part.runs_as() != RunsAs():
                why = f"part '{name}': 'user' and 'limits' are not supported in a part"
                yield mistake(place, None, why)
        except ValidationError as error:
            for found in error.errors():
                key = ".".join(str(step) for step in found["loc"])
                why = f"part '{name}': {why_of(found)}"
                yield mistake((f"parts.{name}.{key}",) if key else (), None, why)


def _job(job: Job, name: str) -> Job:
    return replace(job, directory=job.directory / name, scratch=job.scratch / name, each_operation=False)


def _within(job: Job, commands: Iterable[tuple[str, tuple[tuple[str, ...], ...]]]) -> list[tuple[str, ...]]:
    return [("env", "-C", str(job.directory / name), *argv) for name, argvs in commands for argv in argvs]


def _output_of(name: str, output: ToolOutput, seconds: Mapping[str, float]) -> ToolOutput:
    """Return the output of one part, from the output of all parts."""
    own = {key.partition("/")[2]: text for key, text in output.files.items() if key.startswith(f"{name}/")}
    stdout, stderr = (own.pop(stream, "") for stream in _STREAMS)
    figures = output.figures and {
        key.removeprefix(f"{name}_"): value
        for key, value in output.figures.items()
        if key.startswith(f"{name}_")
    }
    return ToolOutput(
        stdout=stdout, stderr=stderr, files=own, duration_s=seconds.get(name, output.duration_s), figures=figures,
    )  # fmt: skip


def combined(parts: Mapping[str, Reading], seconds: Mapping[str, float]) -> Reading:
    """Return one reading: the facts of all parts together, and the figures of each under its name."""
    readings = list(parts.values())
    longest = max(seconds.values(), default=0.0)
    overlap = 100 * min(seconds.values()) / longest if longest else None
    wrote = [each.flushed or each.direct for each in readings if each.flushed is not None]
    asked = [each.asked_s for each in readings]
    depths = [each.depth for each in readings if each.depth is not None and each.depth.asked > 1]
    rates = ((name, rate) for name, each in parts.items() for rate in each.rates)
    together: dict[str, Any] = {
        **{fact: _named(parts, attrgetter(fact)) for fact in _OF_EACH},
        **{fact: any(map(attrgetter(fact), readings)) for fact in _OF_ANY},
        **{fact: total(map(attrgetter(fact), readings)) for fact in _SUMS},
    }
    together["metrics"]["overlap"] = overlap
    return Reading(
        **together,
        measured_s=longest or None,
        # With a set amount of work in one of them, the time is a result.
        asked_s=None if None in asked else max(filter(None, asked), default=None),
        parts_s=_named(parts, _times, " "),
        direct=all(each.direct for each in readings),
        working_set_bytes=total(map(_working_set, readings)),
        flushed=all(wrote) if wrote else None,
        # The part that is furthest from what was asked decides.
        passes=max((each.passes for each in readings if each.passes is not None), default=None),
        depth=min(depths, key=lambda depth: depth.at_most / depth.asked, default=None),
        rates=tuple(replace(rate, what=f"{name} {rate.what}") for name, rate in rates),
        messages=(*_lines(parts, "messages"), *_ended_early(seconds, longest)),
        promises_broken=_lines(parts, "promises_broken"),
    )


def _named(
    parts: Mapping[str, Reading], of: Callable[[Reading], Mapping[str, _Figure]], between: str = "_"
) -> dict[str, _Figure]:
    """Return the figures of all parts; the name of its part precedes that of each figure."""
    return {
        f"{name}{between}{key}".rstrip(): value
        for name, each in parts.items()
        for key, value in of(each).items()
    }


def _lines(parts: Mapping[str, Reading], fact: str) -> tuple[str, ...]:
    return tuple(f"{name}: {line}" for name, each in parts.items() for line in getattr(each, fact))


def _ended_early(seconds: Mapping[str, float], longest: float) -> Iterator[str]:
    """Yield a message for each part that left the others without its load for too long."""
    for name, each in seconds.items():
        if each < _ALONE * longest:
            yield (
                f"part '{name}' ended after {format_duration(each)}, but the longest part ran for "
                f"{format_duration(longest)}"
            )


def _working_set(part: Reading) -> int | None:
    """Return the bytes of all rounds: parts have different numbers of rounds, and use the files of each once."""
    return None if part.working_set_bytes is None else part.working_set_bytes * part.rounds


def _times(part: Reading) -> Mapping[str, float]:
    """Return the time of each operation of a part, or its only one under an empty name."""
    return part.parts_s or ({} if part.measured_s is None else {"": part.measured_s})
