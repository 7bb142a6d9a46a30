"""Runs one trial: build the stack, prepare, set the cache state, run the workload while probes watch, undo.

``run_trial`` takes a cell and returns a record. Failures of the tool or the file system become part of the record.
Only interruptions, dangers to data and missing privileges leave as exceptions.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from fslab.campaign import disks, guest_run, sliced_figures, tool_output
from fslab.campaign.prepared_states import Prepared
from fslab.campaign.probing import Watch
from fslab.campaign.run_samples import Ran, RunSamples
from fslab.campaign.running_trial import RunningTrial
from fslab.campaign.time_slices import Timeline
from fslab.campaign.trial_setup import Ready, set_up
from fslab.cell import Cache, Cell, TrialKey
from fslab.machine.planned_machine import limit_of
from fslab.probes import SnapshotMoment, Work
from fslab.storage import Workspace
from fslab.system import cgroup, freezer, proc
from fslab.trial_record import TrialRecord, Value
from fslab.validity.trial_warnings import trial_warnings
from fslab.workloads import Reading


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
    if cell.stack.machine.limits_tool:
        machine = {**machine, **limit_of(cell.stack.machine)}
    trial = RunningTrial(
        cell=cell, key=key, workspace=workspace, machine=machine, traced=traced, prepared=prepared
    )
    with trial.guarded(), trial.undo:
        ready = set_up(trial)
        watch = watched(trial, ready)
        done = _run_tool(trial, ready, watch)
        measure(trial, ready, watch, done)
    return trial.record()


def watched(trial: RunningTrial, ready: Ready) -> Watch:
    """Activate the medium and take the first snapshots: from now on the run is watched."""
    workspace = trial.workspace
    trial.undo.enter_context(disks.running(trial.cell, workspace))
    watch = Watch(
        ready.up, traced=trial.traced, alone=trial.turns == 1, scratch=ready.reports,
        log=ready.commands.operations,
    )  # fmt: skip
    trial.undo.callback(watch.close)
    trial.memory_held_bytes = workspace.warm_memory.release()
    watch.snapshot(SnapshotMoment.BEFORE)
    return watch


def _run_tool(trial: RunningTrial, ready: Ready, watch: Watch) -> proc.Completed:
    workspace, up = trial.workspace, ready.up
    check_room = up.room_check()

    def look(running: proc.Running) -> None:
        check_room()
        watch.look(running)

    with _limited(trial) as within:
        workspace.tell_host(guest_run.TOOL_BEGINS)
        done = workspace.run(
            "run",
            ready.command(ready.commands.run),
            cwd=up.work,
            timeout_s=trial.cell.time_limit_s,
            check=False,
            watch=look,
            accounted=True,
            within=within,
        )
        workspace.tell_host(guest_run.TOOL_ENDS)
        watch.snapshot(SnapshotMoment.END)
    return done


def _limited(trial: RunningTrial) -> AbstractContextManager[tuple[str, ...]]:
    spec = trial.cell.stack.machine
    if not spec.limits_tool:
        return nullcontext(())
    limit_bytes = limit_of(spec)["memory_bytes"]
    name = f"{freezer.PREFIX}{trial.workspace.campaign}-memory"
    return cgroup.memory_limited(name, limit_bytes, partial(trial.workspace.will_make, "group"))


def measure(
    trial: RunningTrial, ready: Ready, watch: Watch, done: proc.Completed, timeline: Timeline | None = None
) -> None:
    """Read the workload's figures, and judge them. ``timeline``: when the tool ran, if it took turns."""
    cell, workspace = trial.cell, trial.workspace
    workload, up, commands = ready.workload, ready.up, ready.commands
    output = tool_output.output(done, commands, ready.reports)
    if timeline is not None:
        output = replace(output, duration_s=timeline.ended_s - timeline.began_s)
    trial.raw = {"stdout": output.stdout, "stderr": output.stderr, **output.files}
    reading = tool_output.reading(workload, replace(done, argv=commands.run), output)
    if timeline is not None:
        log = commands.operations
        operations = None if log is None else tool_output.operations(log, ready.reports)
        reading = sliced_figures.thawed(reading, workload.metrics(), timeline, operations)
        trial.slices = sliced_figures.slices(timeline, reading)
    up.flush()
    watch.snapshot(SnapshotMoment.SYNCED)
    trial.check_ended()
    remount = up.unmount()  # so that the last snapshot has everything that the run caused
    watch.snapshot(SnapshotMoment.FLUSHED)
    # At once: what the page cache had is given to the host in seconds.
    ready.memory.hold(workspace.warm_memory)
    trial.device |= disks.facts(cell, workspace)
    requested, text = disks.requests(cell, workspace, up.bare_disk)
    trial.raw |= text
    threads = reading.threads or workload.traits().parallel
    ran = Ran(reading=reading, done=done, threads=threads, timeline=timeline)
    findings = watch.derive(_work(cell.cache, done, reading, watch.samples), ran)
    trial.metrics = {
        metric.name: Value(value=reading.metrics.get(metric.name), unit=metric.unit)
        for metric in workload.metrics()
    }
    trial.probes = {**findings.values, **requested}
    trial.observed = findings.texts
    trial.parts = findings.parts
    trial.warnings += trial_warnings(trial.facts(up, reading, findings), cell.known_limits)
    if cell.fresh.lasts or up.device is None:
        if remount:
            up.mount()
        for argv in commands.cleanup:
            workspace.run("cleanup", ready.command(argv), cwd=up.work, timeout_s=cell.time_limit_s)


def _work(wanted: Cache, done: proc.Completed, reading: Reading, samples: RunSamples) -> Work:
    return Work(
        read_bytes=reading.read_bytes,
        written_bytes=reading.written_bytes,
        duration_s=done.duration_s,
        measured_s=reading.measured_s,
        usage=samples.usage(done),
        direct=reading.direct,
        cold=wanted is Cache.COLD,
        transactions=samples.transactions(reading),
    )
