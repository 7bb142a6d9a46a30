"""Runs one trial: build the stack, prepare, set the cache state, run the workload while probes watch, undo.

``run_trial`` takes a cell and returns a record. Failures of the tool or the file system become part of the record.
Only interruptions, dangers to data and missing privileges leave as exceptions.
"""

import errno
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from fslab import feasibility, workloads
from fslab.campaign import disks, page_cache, run_speed, sliced_figures, slices, tool_output
from fslab.campaign.prepared_states import Prepared
from fslab.campaign.run_samples import Ran
from fslab.campaign.trial_state import TrialState
from fslab.campaign.watch import Watch
from fslab.cell import Cache, Cell, TrialKey
from fslab.errors import (
    BusyError,
    FailureClass,
    FslabError,
    NeedsRootError,
    NoSpaceError,
    UnsafeError,
)
from fslab.feasibility import plugins_of, programs_of
from fslab.machine import tuning
from fslab.probes import SnapshotMoment, Work
from fslab.record import Provenance, Severity, Status, TrialRecord, Value
from fslab.storage import Workspace, stack, tool_scratch
from fslab.system import freezer, proc, tools, trees, untrusted_files, users
from fslab.system.signals import Teardown
from fslab.validity.trial import trial_warnings
from fslab.workloads import Commands, Job, Reading, RunsAs

ABORT = (UnsafeError, BusyError, NeedsRootError)
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
BROKEN = frozenset({errno.EIO, errno.EROFS, errno.EUCLEAN})


def run_trial(
    cell: Cell,
    key: TrialKey,
    workspace: Workspace,
    *,
    machine: Mapping[str, Any],
    traced: bool = False,
    prepared: Prepared | None = None,
) -> TrialRecord:
    """Run one trial of ``cell`` and return its record; ``machine``: the facts stored with it.

    ``traced``: trace the kernel during the trial. Tracing costs speed, so such a trial has the status ``traced`` and
    is never compared. ``prepared``: how it shares its files with other trials; None: it does not. Raises only what
    must end the campaign: an interruption, a danger to data, missing privileges.
    """
    attempt = _Attempt(cell=cell, key=key, workspace=workspace, machine=machine, traced=traced)
    with attempt.guarded(), Teardown() as undo:
        trial = attempt.trial(undo, prepared)
        ready = _set_up(trial)
        watch = _watched(trial, ready)
        done = _run_tool(trial, ready, watch)
        _measure(trial, ready, watch, done)
    return attempt.record()


def run_in_slices(
    cells: Sequence[Cell],
    key: TrialKey,
    workspace: Workspace,
    *,
    machine: Mapping[str, Any],
    drain: bool,
    prepared: Sequence[Prepared | None],
) -> list[TrialRecord]:
    """Run one trial of each cell at the same time, their tools in turns of the cells' ``slice_s``; return the records.

    All stacks are built first. A trial that fails ends; the others go on. ``drain``: after each slice, what it has left
    in the page cache is written back, in its own time. ``prepared``: for each cell, as for ``run_trial``.
    Each record has its share of the time that all took. Raises like
    ``run_trial``.
    """
    attempts = [
        _Attempt(
            cell=cell, key=key, workspace=replace(workspace, turn=cell.turn, commands=[]), machine=machine
        )
        for cell in cells
    ]
    # Drawn, because those that are started later run, at the end, without the others.
    order = random.Random(f"{key.seed}:starts").sample(range(len(cells)), len(cells))  # noqa: S311 - no secret
    with Teardown() as everything:
        takers = []
        for index in order:
            attempt = attempts[index]
            undo = everything.enter_context(_guarded_teardown(attempt))
            with attempt.guarded():
                trial = attempt.trial(undo, prepared[index], turns=len(cells))
                ready = _set_up(trial)
                takers.append((attempt, trial, ready, _watched(trial, ready)))
        turns = [
            everything.enter_context(_turn(trial, ready, watch, drain)) for _, trial, ready, watch in takers
        ]
        slices.take_turns(turns, slice_s=min(cell.slice_s or inf for cell in cells), seed=key.seed)
        for turn, (attempt, trial, ready, watch) in zip(turns, takers, strict=True):
            with attempt.guarded():
                _measure(trial, ready, watch, _completed(trial, turn), turn.timeline())
    return [attempt.record(at_once=len(attempts)) for attempt in attempts]


@dataclass(kw_only=True, slots=True)
class _Attempt:
    """One attempt at a trial, which ends with a record."""

    cell: Cell
    key: TrialKey
    workspace: Workspace
    machine: Mapping[str, Any]
    traced: bool = False
    state: TrialState = field(init=False)
    failure: FslabError | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.workspace.commands.clear()
        self.state = TrialState(traced=self.traced)

    def trial(self, undo: ExitStack, prepared: Prepared | None, turns: int = 1) -> "_Trial":
        """Return what its parts get. ``undo``: undoes, when it ends, what it has made."""
        return _Trial(
            cell=self.cell, key=self.key, workspace=self.workspace, machine=self.machine, prepared=prepared,
            undo=undo, state=self.state, turns=turns,
        )  # fmt: skip

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Make an error of the block this trial's failure, except what must end the campaign."""
        try:
            with self.state.kernel_log_kept(self.workspace):
                yield
        except ABORT:
            raise
        except FslabError as error:
            self.failure = self.failure or error
        except OSError as error:
            self.failure = self.failure or _from_os_error(error)

    def record(self, at_once: int = 1) -> TrialRecord:
        """Return the record of what came of it. ``at_once``: of how many trials the time was."""
        state, failure = self.state, self.failure
        return TrialRecord(
            key=self.key,
            cell=self.cell,
            status=_status(state, failure),
            failure=failure.failure.value if failure else None,
            error=str(failure) if failure else None,
            started=self.started,
            duration_s=(time.monotonic() - self.clock_s) / at_once,
            metrics=state.metrics,
            probes=state.probes,
            validity=tuple(state.warnings),
            provenance=Provenance(
                commands=tuple(self.workspace.commands),
                tools=_versions(self.cell),
                machine=dict(self.machine),
                device=state.device,
                observed=state.observed,
                parts=state.parts,
                plugins=plugins_of(self.cell),
            ),
            raw=state.raw,
        )


@contextmanager
def _guarded_teardown(attempt: _Attempt) -> Iterator[Teardown]:
    """Yield what undoes a trial. An error of undoing is the trial's, as in ``run_trial``."""
    with attempt.guarded(), Teardown() as undo:
        yield undo


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trial:
    """What a trial gets. ``undo``: undoes, when it ends, what it has made. ``turns``: as of a ``Job``."""

    cell: Cell
    key: TrialKey
    workspace: Workspace
    machine: Mapping[str, Any]
    prepared: Prepared | None
    undo: ExitStack
    state: TrialState
    turns: int = 1

    @property
    def copied(self) -> bool:
        """Whether its file system is already on its device."""
        return self.prepared is not None and self.prepared.copied

    def keeper(self, *, files: bool) -> Callable[[], None] | None:
        """Return what to call when the file system is made, or has its files: None if nothing of it is kept then."""
        if self.prepared is None or self.prepared.copied or self.prepared.files != files:
            return None
        return self.prepared.keep


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ready:
    """What a run needs. ``reports``: a descriptor of the directory where the tool writes its report files. ``command``:
    turns a command line of the workload into the one that is run."""

    workload: workloads.ParsedWorkload[Any]
    up: stack.Stack
    commands: Commands
    command: Callable[[tuple[str, ...]], list[str]]
    reports: int
    memory: page_cache.RunMemory


def _set_up(trial: _Trial) -> _Ready:
    """Build the stack, prepare the files and set the state of the cache."""
    cell, workspace, undo, state = trial.cell, trial.workspace, trial.undo, trial.state
    feasibility.check_plugins(cell)  # those of a guest may differ from the host's
    workload = workloads.parsed(cell.workload)
    feasibility.check_cell(cell)
    memory = page_cache.needed(cell)
    memory.hold(workspace.warm_memory)
    undo.enter_context(tuning.tuned(cell.tuned, workspace.journal))
    up = _build(trial)
    if up.raw is None:
        feasibility.check_mounted(up.target or up.work, workload.needs(), up.filesystem)
    undo.enter_context(tuning.tuned_devices(cell.tuned, up.devices, workspace.journal))
    state.device = {**up.facts, "filesystem": up.filesystem, **tuning.device_facts(cell.tuned)}
    state.device |= disks.facts(cell, workspace)
    scratch = _emptied(tool_scratch(workspace.runtime, workspace.turn))
    reports = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    undo.callback(os.close, reports)
    cold = cell.cache is Cache.COLD
    job = Job(
        directory=up.work, scratch=scratch, seed=trial.key.seed, cold=cold, each_operation=state.traced,
        turns=trial.turns, device=up.raw,
    )  # fmt: skip
    commands = workload.commands(job)
    command = _owned(up.work, workload.runs_as())
    _prepare_files(trial, up, commands, scratch, command)
    _versions(cell)  # runs every tool once, so that no measured run starts by reading one from the disk
    keep = trial.keeper(files=True)
    state.caches_dropped = page_cache.prepare(cell.cache, up, workload, keep)
    up.before_run(undo)
    return _Ready(
        workload=workload, up=up, commands=commands, command=command, reports=reports, memory=memory
    )


def _owned(directory: Path, runs_as: RunsAs) -> Callable[[tuple[str, ...]], list[str]]:
    """Give the workload's directory to the user that its commands run as. Return what makes them run so."""
    limits = [tools.require(users.PRLIMIT), *runs_as.limits] if runs_as.limits else []
    if runs_as.user is None:
        return lambda argv: [*limits, *argv]
    user = users.account(runs_as.user)
    os.chown(directory, user.pw_uid, user.pw_gid)
    return lambda argv: [*limits, *users.as_account(user, argv)]


def _prepare_files(
    trial: _Trial, up: stack.Stack, commands: Commands, scratch: Path,
    command: Callable[[tuple[str, ...]], list[str]],
) -> None:  # fmt: skip
    _write_inputs(commands.inputs, scratch)
    if trial.prepared is not None and trial.prepared.has_files:
        _write_inputs(trial.prepared.reports, scratch)
        return
    for argv in commands.prepare:
        trial.workspace.run(
            "prepare", command(argv), cwd=up.work, timeout_s=trial.cell.time_limit_s, watch=_looking(up)
        )


def _looking(up: stack.Stack, watch: Watch | None = None) -> Callable[[proc.Running], None]:
    """Return what to call while a command runs: the check of the stack, and the samples of ``watch``."""
    look = up.look

    def both(running: proc.Running) -> None:
        look()
        if watch is not None:
            watch.look(running)

    return both


def _watched(trial: _Trial, ready: _Ready) -> Watch:
    """Activate the medium and take the first snapshots: from now on the run is watched."""
    cell, workspace, undo, state = trial.cell, trial.workspace, trial.undo, trial.state
    state.device |= undo.enter_context(disks.running(cell, workspace))
    watch = Watch(
        ready.up, traced=state.traced, alone=trial.turns == 1, scratch=ready.reports,
        log=ready.commands.operations,
    )  # fmt: skip
    undo.callback(watch.close)
    state.device |= page_cache.released(workspace.warm_memory)
    watch.snapshot(SnapshotMoment.BEFORE)
    return watch


def _run_tool(trial: _Trial, ready: _Ready, watch: Watch) -> proc.Completed:
    workspace, up = trial.workspace, ready.up
    workspace.tell_host(run_speed.TOOL_BEGINS)
    done = workspace.run(
        "run",
        ready.command(ready.commands.run),
        cwd=up.work,
        timeout_s=trial.cell.time_limit_s,
        check=False,
        watch=_looking(up, watch),
        accounted=True,
    )
    workspace.tell_host(run_speed.TOOL_ENDS)
    watch.snapshot(SnapshotMoment.END)
    return done


def _turn(trial: _Trial, ready: _Ready, watch: Watch, drain: bool) -> slices.SlicedRun:
    """Return the run of the tool as one of several that take turns."""
    workspace, up = trial.workspace, ready.up
    return slices.SlicedRun(
        name=f"{freezer.PREFIX}{workspace.campaign}{workspace.turn}",
        start=lambda: trial.undo.enter_context(
            proc.running(ready.command(ready.commands.run), cwd=up.work, env=workspace.marked, accounted=True)
        ),
        devices=up.watched,
        directory=up.work,
        look=up.look,
        drain=up.flush if drain else None,
        limit_s=trial.cell.time_limit_s,
        ended=lambda: watch.snapshot(SnapshotMoment.END),
    )


def _completed(trial: _Trial, turn: slices.SlicedRun) -> proc.Completed:
    """Return the tool's end, with the time that it ran as its duration. Raises why it was given up, if it was."""
    if turn.error is not None:
        raise turn.error
    if turn.running is None:
        raise RuntimeError("the tool was never started")
    done = turn.running.completed()
    trial.workspace.record("run", done)
    return replace(done, duration_s=sum(end - begin for begin, end in turn.ran))


def _measure(
    trial: _Trial, ready: _Ready, watch: Watch, done: proc.Completed, timeline: slices.Timeline | None = None
) -> None:
    """Read the workload's figures, and judge them. ``timeline``: when the tool ran, if it took turns."""
    cell, workspace, state = trial.cell, trial.workspace, trial.state
    workload, up, commands = ready.workload, ready.up, ready.commands
    output = tool_output.output(done, commands, ready.reports)
    if timeline is not None:
        output = replace(output, duration_s=timeline.ended_s - timeline.began_s)
    state.raw = {"stdout": output.stdout, "stderr": output.stderr, **output.files}
    reading = tool_output.reading(workload, done, output)
    if timeline is not None:
        reading = sliced_figures.thawed(reading, workload.metrics(), timeline)
        state.device["slices"] = sliced_figures.facts(timeline)
    up.flush()
    watch.snapshot(SnapshotMoment.SYNCED)
    remount = up.unmount()  # so that the last snapshot has everything that the run caused
    watch.snapshot(SnapshotMoment.FLUSHED)
    # At once: what the page cache had is given to the host in seconds.
    ready.memory.hold(workspace.warm_memory)
    state.device |= disks.facts(cell, workspace)
    requested, text = disks.requests(cell, workspace, up.bare_disk)
    state.raw |= text
    threads = reading.threads or workload.traits().parallel
    ran = Ran(reading=reading, done=done, threads=threads, timeline=timeline)
    findings = watch.derive(_work(cell.cache, done, reading), ran)
    state.metrics = {
        metric.name: Value(value=reading.metrics.get(metric.name), unit=metric.unit)
        for metric in workload.metrics()
    }
    state.probes = {**findings.values, **requested}
    state.observed = findings.texts
    state.parts = findings.parts
    state.warnings += trial_warnings(
        state.facts(cell, trial.machine, up, reading, findings), cell.known_limits
    )
    if cell.fresh.lasts or up.device is None:
        if remount:
            up.mount()
        for argv in commands.cleanup:
            workspace.run("cleanup", ready.command(argv), cwd=up.work, timeout_s=cell.time_limit_s)


def _write_inputs(texts: Mapping[str, str], scratch: Path) -> None:
    """Write the workload's input files. UnsafeError for a name that leaves the directory: names come from the store."""
    for name, text in texts.items():
        if {"", ".", ".."} & set(name.split("/")):
            raise UnsafeError(f"the workload's file '{name}' is outside its directory")
        (scratch / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        untrusted_files.write_new(scratch / name, text.encode())


def _build(trial: _Trial) -> stack.Stack:
    cell, workspace = trial.cell, trial.workspace
    slot, keep = cell.slot, cell.fresh.lasts
    if workspace.attached is None:
        disks.note_lost(cell, workspace)
    make = not trial.copied and (not keep or slot not in workspace.made)
    if make and workspace.attached is None:
        disks.renew(cell, workspace, in_guest=False)
    made = trial.keeper(files=False)
    up = stack.build(cell.stack, workspace, trial.undo, slot=slot, make=make, keep=keep, made=made)
    workspace.made.add(slot)
    if keep:
        if not make and any(up.work.iterdir()):
            _emptied(up.work)  # the last trial failed while the file system was unmounted
        trial.undo.callback(_forget_files, up)
        trial.state.remade = make and slot in workspace.lost
    return up


def _forget_files(up: stack.Stack) -> None:
    """Empty the directory of a kept file system: the next trial starts without files, but on a used disk."""
    trees.remove(up.work)


def _work(wanted: Cache, done: proc.Completed, reading: Reading) -> Work:
    return Work(
        read_bytes=reading.read_bytes,
        written_bytes=reading.written_bytes,
        duration_s=done.duration_s,
        measured_s=reading.measured_s,
        usage=done.usage,
        direct=reading.direct,
        cold=wanted is Cache.COLD,
    )


def _status(state: TrialState, failure: FslabError | None) -> Status:
    if failure is not None:
        return Status.UNSUPPORTED if failure.failure is FailureClass.UNSUPPORTED else Status.FAILED
    invalid = any(warning.severity is Severity.INVALID for warning in state.warnings)
    if state.traced:
        return Status.TRACED
    return Status.INVALID if invalid else Status.OK


def _from_os_error(error: OSError) -> FslabError:
    """Return the error for an OSError of a broken or full file system under test. Re-raise others: they are bugs."""
    if error.errno in NO_SPACE:
        return NoSpaceError(f"no space left: {error}", hint="give the medium a larger size")
    if error.errno in BROKEN:
        return FslabError(f"the file system failed: {error}", hint="look at the kernel log (dmesg)")
    raise error


def _versions(cell: Cell) -> dict[str, str | None]:
    return {tool.program: tools.version(tool) for tool in programs_of(cell)}


def _emptied(directory: Path) -> Path:
    trees.remove(directory)
    directory.mkdir(mode=0o700)
    return directory
