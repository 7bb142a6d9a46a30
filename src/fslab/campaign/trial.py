"""Runs one trial: build the stack, prepare, set the cache state, run the workload while probes watch, undo.

``run_trial`` takes a cell and returns a record. Failures of the tool or the file system become part of the record.
Only interruptions, dangers to data and missing privileges leave as exceptions.
"""

import errno
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fslab import feasibility, workloads
from fslab.campaign import disks, page_cache, run_speed, tool_output
from fslab.campaign.prepared_states import Prepared
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
from fslab.system import proc, tools, trees, untrusted_files, users
from fslab.system.signals import Teardown
from fslab.validity.trial import judge
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
    started, clock = datetime.now(UTC), time.monotonic()
    workspace.commands.clear()
    state, failure = TrialState(traced=traced), None
    try:
        with Teardown() as undo, state.kernel_log_kept(workspace):
            trial = _Trial(
                cell=cell, key=key, workspace=workspace, machine=machine, prepared=prepared, undo=undo,
                state=state,
            )  # fmt: skip
            _measure(trial, _set_up(trial))
    except ABORT:
        raise
    except FslabError as error:
        failure = error
    except OSError as error:
        failure = _from_os_error(error)
    return TrialRecord(
        key=key,
        cell=cell,
        status=_status(state, failure),
        failure=failure.failure.value if failure else None,
        error=str(failure) if failure else None,
        started=started,
        duration_s=time.monotonic() - clock,
        metrics=state.metrics,
        probes=state.probes,
        validity=tuple(state.warnings),
        provenance=Provenance(
            commands=tuple(workspace.commands),
            tools=_versions(cell),
            machine=dict(machine),
            device=state.device,
            observed=state.observed,
            plugins=plugins_of(cell),
        ),
        raw=state.raw,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trial:
    """What a trial gets. ``undo``: undoes, when it ends, what it has made."""

    cell: Cell
    key: TrialKey
    workspace: Workspace
    machine: Mapping[str, Any]
    prepared: Prepared | None
    undo: ExitStack
    state: TrialState

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
    feasibility.check_mounted(up.target or up.work, workload.needs(), up.filesystem)
    undo.enter_context(tuning.tuned_devices(cell.tuned, up.devices, workspace.journal))
    state.device = {**up.facts, "filesystem": up.filesystem, **tuning.device_facts(cell.tuned)}
    state.device |= disks.facts(cell, workspace)
    scratch = _emptied(tool_scratch(workspace.runtime))
    reports = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    undo.callback(os.close, reports)
    cold = cell.cache is Cache.COLD
    job = Job(directory=up.work, scratch=scratch, seed=trial.key.seed, cold=cold, each_operation=state.traced)
    commands = workload.commands(job)
    command = _owned(up.work, workload.runs_as())
    _prepare_files(trial, up, commands, scratch, command)
    _versions(cell)  # runs every tool once, so that no measured run starts by reading one from the disk
    keep = trial.keeper(files=True)
    state.caches_dropped = page_cache.prepare(cell.cache, up, workload.tools(), keep)
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
            "prepare", command(argv), cwd=up.work, timeout_s=trial.cell.time_limit_s, watch=up.look
        )


def _measure(trial: _Trial, ready: _Ready) -> None:
    """Run the workload, read its figures and judge them."""
    cell, workspace, undo, state = trial.cell, trial.workspace, trial.undo, trial.state
    workload, up, commands = ready.workload, ready.up, ready.commands
    state.device |= undo.enter_context(disks.running(cell, workspace))
    watch = Watch(up, traced=state.traced, scratch=ready.reports, log=commands.operations)
    undo.callback(watch.close)
    state.device |= page_cache.released(workspace.warm_memory)
    watch.snapshot(SnapshotMoment.BEFORE)
    limit_s, look = cell.time_limit_s, up.look
    workspace.tell_host(run_speed.TOOL_BEGINS)
    done = workspace.run(
        "run",
        ready.command(commands.run),
        cwd=up.work,
        timeout_s=limit_s,
        check=False,
        watch=look,
        accounted=True,
    )
    workspace.tell_host(run_speed.TOOL_ENDS)
    watch.snapshot(SnapshotMoment.END)
    output = tool_output.output(done, commands, ready.reports)
    state.raw = {"stdout": output.stdout, "stderr": output.stderr, **output.files}
    reading = tool_output.reading(workload, done, output)
    up.flush()
    watch.snapshot(SnapshotMoment.SYNCED)
    remount = up.unmount()  # so that the last snapshot has everything that the run caused
    watch.snapshot(SnapshotMoment.FLUSHED)
    # At once: what the page cache had is given to the host in seconds.
    ready.memory.hold(workspace.warm_memory)
    state.device |= disks.facts(cell, workspace)
    requested, text = disks.requests(cell, workspace, up.bare_disk)
    state.raw |= text
    findings = watch.derive(_work(cell.cache, done, reading))
    state.metrics = {
        metric.name: Value(value=reading.metrics.get(metric.name), unit=metric.unit)
        for metric in workload.metrics()
    }
    state.probes = {**findings.values, **requested}
    state.observed = findings.texts
    state.warnings += judge(state.facts(cell, trial.machine, up, reading, findings), cell.known_limits)
    if cell.fresh.lasts or up.target is None:
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
