"""The parameters of the workload ``command``: command lines, the metrics that are read from their output, the user and
the resource limits that they run with. Command lines are split by a shell's rules, but not run by a shell. Pure."""

import re
import shlex
from functools import lru_cache
from math import inf
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from fslab.cell import Scalar, as_written
from fslab.errors import nearest
from fslab.trial_record import Metric
from fslab.units import Direction, Size, SomeTime, Unit
from fslab.workloads import Parameters

# Up to the end of a line that is not quoted. Possessive: what was read is not read again in another way.
_COMMAND = re.compile(r"""(?:[^\\'"\n]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++""", re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
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
    %, count (default), ratio). `better` is `higher` (default), `lower` or `neither`. The stacks are ranked by these
    metrics; by the command's time with `rank_time`, or without metrics and `{runtime}`.
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
            Metric(
                name=name,
                unit=Unit(str(self._of(name, "unit") or "count")),
                better=Direction(str(self._of(name, "better") or "higher")),
            )
            for name in self._names()
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


@lru_cache(maxsize=4096)  # re keeps 512, and every combination of the values is checked
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def _check_limit(parts: list[str], value: object) -> None:
    name = ".".join(parts)
    if name not in _LIMITS:
        raise ValueError(f"unknown limit '{name}': {nearest(name, _LIMITS)}")
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
