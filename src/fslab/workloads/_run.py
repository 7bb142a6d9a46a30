"""What one run of a workload gets and yields: directories, commands, output, figures. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fslab.validity.facts import WorkFacts


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
    file that holds every operation, in a format that ``fslab.tracing.slow_operations`` reads; it is not stored.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A command by which a tool checks its input itself, with the name and the text of its input file. It makes and
    changes nothing. If the tool refuses the input, it says why, and the exit status is not 0."""

    argv: tuple[str, ...]
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
