"""The values of the contract of a workload: its parameters and traits, what one run of it gets and yields. Pure.

Also what the files of several tools share: checks of parameters, the spelling of options, the error for other output.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from fslab.cell import EntryOptions, Scalar
from fslab.errors import PluginError, ToolOutputError
from fslab.system.tool_messages import one_line
from fslab.validity.facts import WorkFacts

# A text that YAML reads as a number if it is one.
Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in {int, float} else value)]


def flags(*known: str) -> AfterValidator:
    """Return the check of a text with some of these words, separated by commas."""

    def checked(value: str) -> str:
        if unknown := set(value.split(",")) - {"", *known}:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
        return value

    return AfterValidator(checked)


def text_key(key: str) -> str:
    """Return the name of the parameter that holds the text of the file that parameter ``key`` names."""
    return f"{key}_text"


# Maximum number of processes, threads or requests in flight of a workload: fio's own limit. Without a limit, a
# mistyped number uses up all process ids of the machine.
MOST_AT_ONCE = 4096


class Parameters(EntryOptions):
    """Base class of every workload's parameters. The field descriptions become the documentation of the study file.

    ``file_keys``: keys that name a file of the user. The file's text is a separate parameter (``text_key``), set when
    the study is loaded, so that it is part of the cell. The workload has it written to a file with ``Commands.inputs``.
    ``command_keys``: keys that hold command lines; a list there is a list of words, not a matrix axis. ``nested_keys``:
    keys whose mapping becomes keys with dots: ``metrics.rate.unit``.
    """

    file_keys: ClassVar[frozenset[str]] = frozenset()
    command_keys: ClassVar[frozenset[str]] = frozenset()
    nested_keys: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _with_texts(self) -> Self:
        """Require each file's text. Else a stored workload would read any file of that name on this machine."""
        for key in self.file_keys:
            named = getattr(self, key, None)
            if named is not None and getattr(self, text_key(key), None) is None:
                raise ValueError(f"the text of '{key}: {named}' is missing")
        return self


SECTOR_BYTES = 512
BLOCK_BYTES = 4096  # of any file system, for estimates
_INODE_BYTES = 1024  # ext4: 256; btrfs: about 700 with its back references and directory items
_MOST_LEFT = 0.1  # of the writes


def check_sectors(key: str, size_bytes: int) -> None:
    """Raise ValueError for a size of direct requests that no device accepts: open(2), O_DIRECT."""
    if size_bytes % SECTOR_BYTES:
        raise ValueError(f"'{key}' must be a multiple of {SECTOR_BYTES} bytes with direct I/O")


MANY_FILES = 1000


class Switchable(StrEnum):
    """A property that other parameters of the same tool can give the workload."""

    DIRECT = "direct"
    SERIAL = "serial"
    IN_PLACE = "in place"


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What a workload does. None or empty: the parameters do not determine it.

    ``reads`` and ``writes``: contents or names of files. ``direct``: bypasses the page cache. ``request_bytes``: the
    sizes of requests. ``reads_back``: reads files that the same run has written. ``parallel``: number of processes or
    threads that work at once. ``syncs_per_write``: calls of fsync and fdatasync per write request; ``syncs``: their
    total number, where it is fixed. ``held_back``: it pauses by the clock, and its rate is what it asks for, also on a
    slower disk. ``set_time``: it runs for a set time, in which a faster stack does more. ``switches``: for each
    property, the parameters that switch it on.
    """

    reads: bool | None = None
    writes: bool | None = None
    direct: bool | None = None
    reads_back: bool = False
    request_bytes: tuple[int, ...] = ()
    parallel: int | None = None
    working_set_bytes: int | None = None
    files: int | None = None
    directories: int | None = None
    syncs_per_write: float | None = None
    syncs: float | None = None
    held_back: bool = False
    set_time: bool = False
    switches: Mapping[Switchable, Mapping[str, Scalar]] = field(default_factory=dict)

    @property
    def many_files(self) -> bool:
        """Whether it works on many files rather than in a few."""
        return self.files is not None and self.files >= MANY_FILES

    @property
    def few_files(self) -> bool:
        """Whether it transfers contents within a few files."""
        return self.files is not None and self.files < MANY_FILES


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Directories, seed and page cache state of one run of a workload.

    ``directory``: the workload's own empty directory on the file system under test. ``scratch``: a directory elsewhere,
    for the tool's report files. ``seed`` differs from block to block: every trial draws new offsets, and all cells of a
    block draw the same ones. ``cold``: the page cache was just dropped; otherwise the files were just read into it, and
    the tool must not drop them. ``each_operation``: speed is not measured, and the tool logs every operation if it can.
    ``turns``: how many tools take turns (``Workload.why_whole``). ``longer``: how many times as long as the study says
    a run with a set time is to be. ``device``: the block device to work on instead of files (``Workload.why_files``).
    """

    directory: Path
    scratch: Path
    seed: int
    cold: bool = True
    each_operation: bool = False
    turns: int = 1
    longer: int = 1
    device: Path | None = None

    def clock_s(self, run_s: float) -> float:
        """Return the run time for a tool that is to run for ``run_s``. Its clock goes on while others have their
        turns."""
        return run_s * self.longer * self.turns


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsAs:
    """The user that all commands of a workload run as (None: fslab's own), who owns ``Job.directory`` then, and options
    of prlimit(1) for resource limits."""

    user: str | None = None
    limits: tuple[str, ...] = ()

    def shown(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command that has the same effect in a shell of root's."""
        user = ("runuser", "-u", self.user, "--") if self.user else ()
        return (*(("prlimit", *self.limits, "--") if self.limits else ()), *user, *argv)


@dataclass(frozen=True, kw_only=True, slots=True)
class Commands:
    """The commands to run: ``prepare`` outside the measured time, ``run`` measured, ``cleanup`` afterwards.

    Every command runs with ``Job.directory`` as its working directory. ``outputs``: names of the report files in
    ``Job.scratch`` that ``run`` writes; ``read`` gets their text, and the store keeps it. ``operations``: name of the
    file that holds every operation, in a format that ``fslab.tracing.figures`` reads; it is not stored.
    ``inputs``: file name → text; these files are written to ``Job.scratch`` before ``prepare``. ``prepared``: those of
    ``outputs`` that ``prepare`` writes, if it does nothing but write files into the job's two directories: its result
    can be copied then. None: it may do more.
    """

    prepare: tuple[tuple[str, ...], ...] = ()
    run: tuple[str, ...]
    cleanup: tuple[tuple[str, ...], ...] = ()
    outputs: tuple[str, ...] = ()
    operations: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    prepared: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a text in the place of words, whose letters would be the words. A plug-in is not type-checked."""
        commands: tuple[Any, ...] = (*self.prepare, self.run, *self.cleanup)
        for each in commands:
            if isinstance(each, str):
                raise PluginError(f"command {each!r} is a text: write its words, such as ('sh', '-c', …)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A command by which a tool checks its input itself, with the name and the text of its input file. It makes and
    changes nothing. If the tool refuses the input, it says why, and the exit status is not 0. ``own``: the words after
    ``argv``, if those of several checks can follow each other in one command."""

    argv: tuple[str, ...]
    own: tuple[str, ...] = ()
    file: str | None = None
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutput:
    """Output of ``run``: its streams, its report files (name → text), and its wall time in seconds. ``figures``: the
    workload's metrics, if it was read before: what a study says how to find is not searched for again."""

    stdout: str
    stderr: str
    files: Mapping[str, str] = field(default_factory=dict)
    duration_s: float
    figures: Mapping[str, float | None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading(WorkFacts):
    """What a tool's output contains: a value (None: unknown) for each declared metric, and facts about the run.

    ``fslab.validity`` decides which of these facts lead to a warning; this module must not. ``latencies``: operation →
    the percentiles that the tool reports: percent (50.0 … 99.99) → ns. ``windows``: when each metric was measured,
    ``part_windows``: when each of ``parts_s``: begin and end in seconds of CLOCK_MONOTONIC, where the tool reports it.
    ``part_rounds``: the same for a tool that takes its parts in rounds, one after the other. ``part_cpu_s``: the tool's
    CPU time in each of them, where it reports that.
    ``marks``: of each of ``parts_s``, the offsets in standard error before which the tool has written, at once, that
    the part begins and that it has ended; the part's metrics begin with its name and ``_``. ``whole_run``: the figures
    are of the whole run, with its start. ``threads``: how many worked at once, where the tool reports it. ``counts``:
    of how many calls a mean latency is that no rate is about, by the first word of its name. ``percentiles``: the
    metrics that are percentiles of the operations in ``Commands.operations``, with the percent. ``transactions``: how
    many an application committed or read.
    """

    metrics: Mapping[str, float | None]
    latencies: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    part_windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    part_rounds: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    part_cpu_s: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    whole_run: bool = False
    threads: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    percentiles: Mapping[str, float] = field(default_factory=dict)
    transactions: int | None = None


def stored_bytes(files: int, each_bytes: int) -> int:
    """Return the space of files of this size: whole blocks, and inodes."""
    return files * (-(-each_bytes // BLOCK_BYTES) * BLOCK_BYTES + _INODE_BYTES)


def is_known(percent: float, count: int) -> bool:
    """Return whether a percentile of so many operations is below one of them. Otherwise it is the longest one, and
    longer for a stack that did more of them."""
    return ceil(round(count * percent / 100, 6)) < count


def nearly_all_flushed(left: float, writes: float) -> bool:
    """Return whether so few of the writes can have no flush after them that their rate is one of the device: at the end
    of a run, threads are between a write and its fsync."""
    return left <= _MOST_LEFT * writes


def total(amounts: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of them is unknown."""
    known = list(amounts)
    return None if None in known else sum(each or 0 for each in known)


def mistake(place: tuple[str, ...], value: object, why: str) -> InitErrorDetails:
    """Return a mistake in the parameters, for ``ValidationError.from_exception_data``."""
    return {"type": PydanticCustomError("value_error", "{why}", {"why": why}), "loc": place, "input": value}


def why_of(found: ErrorDetails) -> str:
    """Return what pydantic says of a mistake, in our own words where it has them from us."""
    return found["msg"].removeprefix("Value error, ")


def long_options(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return ``--name=value`` of each; of True only the name, of None and False nothing."""
    given = {name: value for name, value in values.items() if value is not None and value is not False}
    return tuple(f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items())


def other_output(what: str, *outputs: str) -> ToolOutputError:
    """Return the error for a tool whose output is not as documented, with what it printed instead."""
    return ToolOutputError(f"{what}; it printed: {one_line(*outputs) or 'nothing'}")
