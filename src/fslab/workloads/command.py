"""The user's own command: prepared, timed and cleaned up like any tool, with metrics read from its output.

Command lines are split by a shell's rules, but not run by a shell. They run as the user who runs fslab, which is root
for most stacks, and without confinement, or as a user that the study names. Such a study therefore runs only with
consent (``Workload.own_commands``).
"""

import re
import shlex
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from math import ceil, inf
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from fslab.cell import Scalar, as_written
from fslab.errors import SIZES_HINT, NoSpaceError, ToolOutputError, nearest
from fslab.system.tool_messages import one_line, reports_full_disk
from fslab.system.tools import Tool
from fslab.system.users import PRLIMIT, SETPRIV
from fslab.trial_record import Metric
from fslab.units import Direction, Size, SomeTime, Unit, parse_duration, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, RunsAs, ToolOutput, Workload

_FLUSHED = '"$@" && sync -f .'
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?![\d,])")
# Up to the end of a line that is not quoted. Possessive: what was read is not read again in another way.
_COMMAND = re.compile(r"""(?:[^\\'"\n]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++""", re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_USUALLY = {unit: "lower" if unit in {Unit.NANOSECONDS, Unit.SECONDS} else "higher" for unit in Unit}
_METRIC_KEYS = frozenset({"pattern", "unit", "better", "factor"})
_LONGEST_PATTERN = 1000  # one of 65,536 characters can take minutes to compile
_LIMITS = frozenset(
    {"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "rtprio", "stack"}
)  # prlimit(1)
_LIMIT = re.compile(r"(unlimited|\d+)(:(unlimited|\d+))?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


class CommandParameters(Parameters):
    """A command is a list of words, or a text, split as by a shell (a shell: `sh -c '…'`). `prepare` and
    `cleanup` may hold several, one on each line or as a list of lists. They run in an empty directory on the file
    system under test. What `run` starts must end before it; what `prepare` starts may stay with `cache: warm`, and is
    ended afterwards. In each word, `{directory}` is that directory, `{file}` the copy of `file`, and `{seed}` a number
    that differs between blocks.

    They run with all rights of fslab's user, usually root; with `user` as that user: the directory belongs to
    it, `HOME`, `USER` and `LOGNAME` are set, and it can read all files. `limits` sets resource limits by their names in
    prlimit(1): `limits: {nofile: 65536, memlock: unlimited}`. `fslab plan` shows the commands and the text of `file`;
    `fslab run` asks first, or requires `--allow-commands`.

    `metrics` reads figures from the output: `metrics: {rate: {pattern: "rate: ([0-9.]+)", unit: ops/s, better: higher,
    factor: 1000}}`. `pattern` is a regular expression with one group, the number; its last match in stdout is used,
    else in stderr. The number times `factor` (default: 1) is the figure in `unit` (B/s, IOPS, files/s, ops/s, ns, s, B,
    %, count (default), ratio). `better` is `higher`, `lower` (the default of ns and s) or `neither`. The stacks are
    ranked by these metrics; by the command's time with `rank_time`, or without metrics and `{runtime}`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Scalar]
    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})
    command_keys: ClassVar[frozenset[str]] = frozenset({"prepare", "run", "cleanup"})
    nested_keys: ClassVar[frozenset[str]] = frozenset({"metrics", "limits"})

    run: str = Field(description="the command that is timed")
    prepare: str = Field("", description="commands that run before it, not timed")
    cleanup: str = Field(
        "", description="commands that run after it, not timed, if the file system is used for another trial"
    )
    file: str | None = Field(
        None,
        description="a text file, relative to the study, such as a script",
    )
    file_text: str | None = None
    user: str | None = Field(
        None, description="the user of this machine that all commands run as; only root can do this"
    )
    rank_time: bool = Field(
        False, description="rank the stacks by the time of the command too, although there are metrics"
    )
    sync: bool = Field(False, description="run `sync -f` after it, in the measured time")
    runtime: SomeTime | None = Field(
        None,
        description="how long the command measures: `{runtime}` stands for it, in whole seconds, rounded up",
    )
    interruptible: bool = Field(
        False,
        description="the command can be measured in slices (study key `slices`): nothing in it waits or ends by the "
        "clock, except after `{runtime}`; it does not call sync(2); and the rates and times that it prints are of the "
        "whole run",
    )
    space: Size = Field("1g", description="space that it needs on the file system")
    takes: SomeTime = Field("10s", description="estimated duration of prepare and run, for the plan")

    @property
    def limits(self) -> tuple[str, ...]:
        """The resource limits as options of prlimit(1)."""
        found = {key.removeprefix("limits."): value for key, value in (self.model_extra or {}).items()}
        return tuple(f"--{name}={value}" for name, value in found.items() if "." not in name)

    @property
    def declared(self) -> tuple[Metric, ...]:
        return tuple(
            Metric(name=name, unit=unit, better=Direction(str(self._of(name, "better") or _USUALLY[unit])))
            for name in self._names()
            for unit in [Unit(str(self._of(name, "unit") or "count"))]
        )

    def pattern(self, name: str) -> re.Pattern[str]:
        return _compiled(str(self._of(name, "pattern")))

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
        if not self._is_factor(name):
            return f"'factor' is '{as_written(self._of(name, 'factor'))}', not a number > 0"
        if len(str(self._of(name, "pattern"))) > _LONGEST_PATTERN:
            return f"'pattern' has more than {_LONGEST_PATTERN:,} characters: shorten it"
        try:
            self.pattern(name)
        except (re.error, OverflowError, RecursionError) as error:
            return f"'pattern' is not a regular expression: {error}"
        return None

    def _is_factor(self, name: str) -> bool:
        """Return whether the factor is a finite number > 0: another would make all figures 0 or change their sign."""
        try:
            return 0 < self.factor(name) < inf and not isinstance(self._of(name, "factor"), bool)
        except (ValueError, OverflowError):
            return False

    def _names(self) -> tuple[str, ...]:
        keys = (key.split(".") for key in self.model_extra or {})
        return tuple(dict.fromkeys(parts[1] for parts in keys if parts[0] == "metrics"))

    @field_validator("run", "prepare", "cleanup")
    @classmethod
    def _splits(cls, value: str) -> str:
        split(value)
        return value

    @field_validator("user")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not _USER.fullmatch(value):
            raise ValueError(
                "'user' is the name of a user of this machine, such as postgres: 1 to 32 of A-Z, a-z, 0-9, '_', '.' "
                "and '-', first a letter or '_'"
            )
        return value

    @model_validator(mode="after")
    def _has_its_runtime(self) -> Self:
        used = any("{runtime}" in text for text in (self.run, self.prepare, self.cleanup))
        if used != (self.runtime is not None):
            raise ValueError("'runtime' and '{runtime}' in a command need each other")
        return self

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        for key in data:
            parts = str(key).split(".")
            if key in cls.model_fields:
                continue
            if parts[0] == "limits":
                _check_limit(parts[1:], data[key])
                continue
            if parts[0] != "metrics":
                raise ValueError(
                    f"unknown key '{key}'; known: {', '.join(cls.model_fields)}, limits, metrics"
                )
            if len(parts) != 3 or parts[2] not in _METRIC_KEYS or not _NAME.fullmatch(parts[1]):
                raise ValueError(
                    f"'{key}' is not metrics.NAME.KEY; NAME: 1 to 40 of a-z, 0-9 and _, first a letter; "
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
    """Always has the metric ``time``, besides the metrics that the study declares. A time says nothing of the stack if
    the command ends after a fixed time, as it may with metrics: it has no direction, unless the study asks for it."""

    summary = "your own command, timed, with metrics read from its output"
    tools: ClassVar[tuple[Tool, ...]] = ()
    Parameters = CommandParameters

    def metrics(self, parameters: CommandParameters) -> tuple[Metric, ...]:
        """Return the declared metrics, and the time of the command."""
        better = Direction.LOWER if _ranks_time(parameters) else Direction.NEITHER
        return (*parameters.declared, Metric(name="time", unit=Unit.SECONDS, better=better))

    def headline(self, parameters: CommandParameters) -> tuple[str, ...]:
        """Return the first three declared metrics, and the time if it ranks the stacks."""
        named = tuple(metric.name for metric in parameters.declared[:3])
        return named if named and not _ranks_time(parameters) else (*named, "time")

    def tools_of(self, parameters: CommandParameters) -> tuple[Tool, ...]:
        return (*((SETPRIV,) if parameters.user else ()), *((PRLIMIT,) if parameters.limits else ()))

    def runs_as(self, parameters: CommandParameters) -> RunsAs:
        return RunsAs(user=parameters.user, limits=parameters.limits)

    def commands(self, parameters: CommandParameters, job: Job) -> Commands:
        name = f"files/{parameters.file}"
        values = {
            "{directory}": str(job.directory),
            "{file}": str(job.scratch / name),
            "{seed}": str(job.seed),
        }
        if parameters.runtime is not None:
            values["{runtime}"] = str(ceil(job.clock_s(parse_duration(parameters.runtime))))

        def several(text: str) -> tuple[tuple[str, ...], ...]:
            return tuple(filled(words, values) for words in split(text))

        (run,) = several(parameters.run)
        return Commands(
            prepare=several(parameters.prepare),
            run=("sh", "-c", _FLUSHED, "fslab", *run) if parameters.sync else run,
            cleanup=several(parameters.cleanup),
            inputs={} if parameters.file_text is None else {name: parameters.file_text},
        )

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with this run time if the command has a place for it."""
        return {"runtime": runtime, **raw} if "{runtime}" in str(raw.get("run")) else dict(raw)

    def why_whole(self, parameters: CommandParameters) -> str | None:
        why = "a command is measured in slices only with 'interruptible: true'"
        return None if parameters.interruptible else why

    def own_commands(self, parameters: CommandParameters, job: Job) -> tuple[tuple[str, ...], ...]:
        commands = self.commands(parameters, job)
        return (*commands.prepare, commands.run, *commands.cleanup)

    def read(self, parameters: CommandParameters, output: ToolOutput) -> Reading:
        """Return the time, and each metric's last match. ToolOutputError if a metric has no match. To find one may take
        as long as the study's pattern likes."""
        if reports_full_disk(output.stderr, output.stdout):
            raise NoSpaceError("the command: no space left on device", hint=SIZES_HINT)
        return Reading(
            metrics={
                "time": output.duration_s,
                **{metric.name: _figure(parameters, metric.name, output) for metric in parameters.declared},
            },
            measured_s=output.duration_s,
            flushed=True if parameters.sync else None,
            drops=None,
        )

    def space_bytes(self, parameters: CommandParameters) -> int:
        return parse_size(parameters.space)

    def guesses_space(self, parameters: CommandParameters) -> bool:
        """Return whether the study says nothing of it."""
        return "space" not in parameters.model_fields_set

    def expected_s(self, parameters: CommandParameters) -> float:
        return parse_duration(parameters.takes)


def _ranks_time(parameters: CommandParameters) -> bool:
    return parameters.rank_time or not (parameters.declared or "{runtime}" in parameters.run)


def _figure(parameters: CommandParameters, name: str, output: ToolOutput) -> float | None:
    if output.figures is not None:
        return output.figures.get(name)
    pattern = parameters.pattern(name)
    # Only the last one is kept: of a long output, all of them would take gigabytes.
    found = deque(pattern.finditer(output.stdout), 1) or deque(pattern.finditer(output.stderr), 1)
    if not found:
        told = one_line(output.stdout, output.stderr) or "nothing"
        raise ToolOutputError(f"metric '{name}': no match of '{pattern.pattern}' in the output: {told}")
    written = found[0][1] or ""
    number = written.rstrip(",")
    try:
        return float(number.replace(",", "") if _THOUSANDS.match(number) else number) * parameters.factor(
            name
        )
    except ValueError as error:
        hint = "a comma may only separate thousands: run the command with LC_ALL=C" if "," in number else None
        raise ToolOutputError(f"metric '{name}': '{written}' is not a number", hint=hint) from error


@lru_cache(maxsize=4096)  # re keeps 512, and every combination of the values is checked
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def _check_limit(parts: list[str], value: object) -> None:
    name = ".".join(parts)
    if name not in _LIMITS:
        unknown = f"unknown limit '{name}'" if name else "'limits' maps the name of a limit to its value"
        raise ValueError(f"{unknown}: {nearest(name, _LIMITS)}")
    if not _LIMIT.fullmatch(str(value)):
        raise ValueError(f"limits.{name} is '{as_written(value)}', not a number, 'unlimited' or SOFT:HARD")


def split(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a text, one per line. A quoted string may span lines.

    ValueError: a quote is not closed, or the name of the program is empty.
    """
    if _COMMAND.sub("", text).strip("\n"):
        raise ValueError("a quote is not closed")
    found = [words for each in _COMMAND.findall(text) if (words := tuple(shlex.split(each)))]
    for command in found:
        if not command[0]:
            raise ValueError("a command needs the name of a program")
    return tuple(found)


def filled(words: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    """Return the words with each placeholder replaced, also inside a word. Other braces are not changed."""
    for name, value in values.items():
        words = tuple(word.replace(name, value) for word in words)
    return words
