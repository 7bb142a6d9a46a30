"""The user's own command: prepared, timed and cleaned up like any tool, with metrics read from its output.

Builds the commands; starts no process. The commands run as the user who runs fslab, which is root for most stacks, and
without confinement. Such a study therefore runs only with consent (``Workload.own_commands``).
"""

import re
from math import isfinite
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from fslab.cell import Scalar, as_written
from fslab.errors import NoSpaceError, ToolOutputError, nearest
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Direction, Size, Unit, parse_duration, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload
from fslab.workloads._command_lines import filled, split

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_METRIC_KEYS = frozenset({"pattern", "unit", "better", "factor"})
_FULL = "No space left on device"
_FLUSHED = '"$@" && sync -f .'


class CommandParameters(Parameters):
    """A command is a list of words, or a text that is split into words as a shell would. No shell runs it; to use one,
    write `sh -c '…'`. `prepare` and `cleanup` may hold several commands, one on each line or as a list of lists. Each
    command runs in an empty directory on the file system under test. Every process that a command starts must end
    before the command ends. In each word, `{directory}` stands for that directory, `{file}` for the copy of `file`,
    and `{seed}` for a number that differs from block to block.

    The commands run with the rights of the user who runs fslab, usually root, and without any restriction.
    `fslab plan` shows them. `fslab run` asks for confirmation on a terminal; without a terminal it requires
    `--allow-commands`.

    `metrics` says how figures are read from the output:
    `metrics: {rate: {pattern: "rate: ([0-9.]+)", unit: ops/s, better: higher, factor: 1000}}`. `pattern` is a regular
    expression with one group, the number. Its last match in stdout is used; if stdout has none, its last match in
    stderr. The number times `factor` (default: 1) is the figure in `unit` (B/s, IOPS, files/s, ops/s, ns, s, B, %,
    count (default), ratio). `better` is `higher` (default), `lower` or `neither`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    command_keys: ClassVar[frozenset[str]] = frozenset({"prepare", "run", "cleanup"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"metrics"})

    run: str = Field(description="the command that is timed")
    prepare: str = Field("", description="commands that run before it, not timed")
    cleanup: str = Field(
        "", description="commands that run after it, not timed, if the file system is used for another trial"
    )
    file: str | None = Field(
        None,
        description="a text file, relative to the study, such as a script; its text is stored with the results",
    )
    file_text: str | None = None
    sync: bool = Field(False, description="run `sync -f` after it, in the measured time")
    space: Size = Field("1g", description="space that it needs on the file system")
    takes: str = Field("10s", description="estimated duration of prepare and run, for the plan")

    @property
    def declared(self) -> tuple[Metric, ...]:
        return tuple(
            Metric(
                name=name,
                unit=Unit(str(self._of(name, "unit") or "count")),
                better=Direction(str(self._of(name, "better") or "higher")),
            )
            for name in self._names()
        )

    def pattern(self, name: str) -> re.Pattern[str]:
        return re.compile(str(self._of(name, "pattern")), re.MULTILINE)

    def factor(self, name: str) -> float:
        factor = self._of(name, "factor")
        return float(1 if factor is None else factor)

    def _of(self, name: str, key: str) -> Scalar | None:
        return (self.model_extra or {}).get(f"metrics.{name}.{key}")

    def _mistake(self, name: str) -> str | None:
        for key, known in (("unit", Unit), ("better", Direction)):
            value = self._of(name, key)
            if value and value not in list(known):
                return f"unknown {key} '{value}': {nearest(str(value), known)}"
        if not self._is_number(name):
            return f"'factor' is '{as_written(self._of(name, 'factor'))}', not a number"
        try:
            self.pattern(name)
        except re.error as error:
            return f"'pattern' is not a regular expression: {error}"
        return None

    def _is_number(self, name: str) -> bool:
        """Return whether the factor is a finite number."""
        try:
            return isfinite(self.factor(name)) and not isinstance(self._of(name, "factor"), bool)
        except (ValueError, OverflowError):
            return False

    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.split(".")[1] for key in self.model_extra or {}))

    @field_validator("run", "prepare", "cleanup")
    @classmethod
    def _splits(cls, value: str) -> str:
        split(value)
        return value

    @field_validator("takes")
    @classmethod
    def _some_time(cls, value: str) -> str:
        parse_duration(value)
        return value

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        for key in data:
            parts = str(key).split(".")
            if key in cls.model_fields:
                continue
            if parts[0] != "metrics":
                raise ValueError(f"unknown key '{key}'; known: {', '.join(cls.model_fields)}, metrics")
            if len(parts) != 3 or parts[2] not in _METRIC_KEYS or not _NAME.fullmatch(parts[1]):
                raise ValueError(
                    f"'{key}' is not metrics.NAME.KEY; NAME: small letters, digits and _; "
                    f"KEY: {', '.join(sorted(_METRIC_KEYS))}"
                )
        return data

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if len(split(self.run)) != 1:
            raise ValueError("'run' must be one command; for several, write sh -c '…'")
        if ("{file}" in self.run + self.prepare + self.cleanup) != (self.file is not None):
            raise ValueError("'file' needs {file} in a command, and {file} needs 'file'")
        for name in self._names():
            if name == "time":
                raise ValueError(
                    "the metric 'time' exists already, as the time of the command: choose another name"
                )
            if mistake := self._mistake(name):
                raise ValueError(f"metric '{name}': {mistake}")
            groups = self.pattern(name).groups if self._of(name, "pattern") is not None else None
            if groups != 1:
                raise ValueError(f"metric '{name}' needs a 'pattern' with one group for the number")
        return self


class OwnCommand(Workload[CommandParameters]):
    """Always has the metric ``time``, besides the metrics that the study declares."""

    summary = "your own command, timed, with metrics read from its output"
    tools: ClassVar[tuple[Tool, ...]] = ()
    Parameters = CommandParameters

    def metrics(self, parameters: CommandParameters) -> tuple[Metric, ...]:
        """Return the time of the command, and the declared metrics."""
        return (Metric(name="time", unit=Unit.SECONDS, better=Direction.LOWER), *parameters.declared)

    def headline(self, parameters: CommandParameters) -> tuple[str, ...]:
        """Return the time, and the first two declared metrics."""
        return ("time", *(metric.name for metric in parameters.declared[:2]))

    def commands(self, parameters: CommandParameters, job: Job) -> Commands:
        """Return the commands with the placeholders filled in."""
        name = f"files/{parameters.file}"
        values = {
            "{directory}": str(job.directory),
            "{file}": str(job.scratch / name),
            "{seed}": str(job.seed),
        }

        def several(text: str) -> tuple[tuple[str, ...], ...]:
            return tuple(filled(words, values) for words in split(text))

        (run,) = several(parameters.run)
        return Commands(
            prepare=several(parameters.prepare),
            run=("sh", "-c", _FLUSHED, "fslab", *run) if parameters.sync else run,
            cleanup=several(parameters.cleanup),
            inputs={} if parameters.file_text is None else {name: parameters.file_text},
        )

    def own_commands(self, parameters: CommandParameters, job: Job) -> tuple[tuple[str, ...], ...]:
        commands = self.commands(parameters, job)
        return (*commands.prepare, commands.run, *commands.cleanup)

    def read(self, parameters: CommandParameters, output: ToolOutput) -> Reading:
        """Return the time, and each metric's last match. ToolOutputError if a metric has no match."""
        if _FULL in output.stderr or _FULL in output.stdout:
            raise NoSpaceError("the command: no space left on device", hint="give the medium a larger size")
        return Reading(
            metrics={
                "time": output.duration_s,
                **{metric.name: _figure(parameters, metric.name, output) for metric in parameters.declared},
            },
            measured_s=output.duration_s,
            flushed=True if parameters.sync else None,
        )

    def space_bytes(self, parameters: CommandParameters) -> int:
        return parse_size(parameters.space)

    def expected_s(self, parameters: CommandParameters) -> float:
        return parse_duration(parameters.takes)


def _figure(parameters: CommandParameters, name: str, output: ToolOutput) -> float:
    pattern = parameters.pattern(name)
    found = pattern.findall(output.stdout) or pattern.findall(output.stderr)
    if not found:
        said = (output.stdout.strip() or output.stderr.strip())[-200:] or "nothing"
        raise ToolOutputError(f"metric '{name}': no match of '{pattern.pattern}' in the output: {said}")
    try:
        return float(found[-1].replace(",", "")) * parameters.factor(name)
    except ValueError as error:
        raise ToolOutputError(f"metric '{name}': '{found[-1]}' is not a number") from error
