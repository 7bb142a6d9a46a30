"""Sets up one trial: builds its stack, prepares its files, brings the page cache to its declared state, and holds
memory for its run."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab import feasibility, workloads
from fslab.campaign import disks
from fslab.campaign.running_trial import RunningTrial
from fslab.cell import Cache, Cell
from fslab.errors import MountError, ToolFailedError, UnsafeError
from fslab.machine import tuning
from fslab.storage import stack, tool_scratch
from fslab.storage.mounted_stack import Stack
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import files, page_cache, process_marks, tools, trees, untrusted_files, users, warm_memory
from fslab.workloads import Commands, Job, RunsAs

MOST_HELD_BYTES = 4 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMemory:
    """How much memory to hold for a run: for the page cache, and for disks in memory."""

    cached_bytes: int = 0
    disk_bytes: int = 0

    def hold(self, held: warm_memory.WarmMemory) -> None:
        """Hold this much. What is held already stays."""
        held.hold(self.cached_bytes)
        held.hold(self.disk_bytes, huge=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """What a run needs. ``reports``: a descriptor of the directory where the tool writes its report files. ``command``:
    turns a command line of the workload into the one that is run."""

    workload: workloads.ParsedWorkload[Any]
    up: Stack
    commands: Commands
    command: Callable[[tuple[str, ...]], list[str]]
    reports: int
    memory: RunMemory


def set_up(trial: RunningTrial) -> Ready:
    """Build the stack, prepare the files and set the state of the cache."""
    cell, workspace, undo = trial.cell, trial.workspace, trial.undo
    feasibility.check_plugins(cell)  # those of a guest may differ from the host's
    workload = workloads.parsed(cell.workload)
    feasibility.check_cell(cell)
    memory = memory_needed(cell)
    memory.hold(workspace.warm_memory)
    if trial.turns == 1:  # those whose tools take turns share the settings of the machine
        undo.enter_context(tuning.tuned(cell.tuned, workspace.journal))
    up = _build(trial)
    trial.work = up.work
    undo.callback(workspace.end_left)
    if up.raw is None:
        feasibility.check_mounted(up.target or up.work, workload.needs(), up.filesystem)
    undo.enter_context(tuning.tuned_devices(cell.tuned, up.devices, workspace.journal))
    trial.device = {**up.facts, "filesystem": up.filesystem, **tuning.device_facts(cell.tuned)}
    trial.device |= disks.facts(cell, workspace)
    scratch = _emptied(tool_scratch(workspace.runtime, workspace.turn))
    reports = files.held(scratch, undo, os.O_DIRECTORY | os.O_NOFOLLOW)
    undo.callback(setattr, workspace, "temporary", None)  # the next trial empties it before it has its own
    workspace.temporary = scratch if any(tool.own_temporary for tool in workload.tools()) else None
    cold = cell.cache is Cache.COLD
    job = Job(
        directory=up.work, scratch=scratch, seed=trial.key.seed, cold=cold, each_operation=trial.traced,
        turns=trial.turns, longer=trial.longer, device=up.raw,
    )  # fmt: skip
    commands = workload.commands(job)
    command = _owned(up.work, workload.runs_as())
    _prepare_files(trial, up, commands, scratch, command)
    trial.versions()  # runs every tool once, so that no measured run starts by reading one from the disk
    keep = trial.keeper(files=True)
    try:
        trial.caches_dropped = prepare_cache(cell.cache, up, workload, keep)
    except MountError as error:
        if not (left := workspace.left("prepare")):
            raise
        raise ToolFailedError(
            f"the file system cannot be unmounted for a cold cache: 'prepare' has started {process_marks.named(left)}",
            hint="let it end them, or choose cache: warm",
        ) from error
    if up.raw is None:
        undo.enter_context(
            tuning.tuned_mount(cell.tuned, up.filesystem, up.devices, up.work, workspace.journal)
        )
    up.before_run(undo)
    return Ready(workload=workload, up=up, commands=commands, command=command, reports=reports, memory=memory)


def _build(trial: RunningTrial) -> Stack:
    cell, workspace = trial.cell, trial.workspace
    slot, keep = cell.slot, cell.fresh.lasts
    if workspace.attached is None:
        disks.note_lost(cell, workspace)
    copied = trial.prepared is not None and trial.prepared.copied
    make = not copied and (not keep or slot not in workspace.made)
    if make and workspace.attached is None:
        disks.renew(cell, workspace, in_guest=False)
    made = trial.keeper(files=False)
    up = stack.build(cell.stack, workspace, trial.undo, slot=slot, make=make, keep=keep, made=made)
    workspace.made.add(slot)
    if keep:
        if not make and any(up.work.iterdir()):
            _emptied(up.work)  # the last trial failed while the file system was unmounted
        trial.undo.callback(trees.remove, up.work)  # the next trial starts without files, but on a used disk
        trial.remade = make and slot in workspace.lost
    return up


def _owned(directory: Path, runs_as: RunsAs) -> Callable[[tuple[str, ...]], list[str]]:
    """Give the workload's directory to the user that its commands run as. Return what makes them run so."""
    limits = [tools.require(users.PRLIMIT), *runs_as.limits] if runs_as.limits else []
    if runs_as.user is None:
        return lambda argv: [*limits, *argv]
    user = users.account(runs_as.user)
    os.chown(directory, user.pw_uid, user.pw_gid)
    return lambda argv: [*limits, *users.as_account(user, argv)]


def _prepare_files(
    trial: RunningTrial, up: Stack, commands: Commands, scratch: Path,
    command: Callable[[tuple[str, ...]], list[str]],
) -> None:  # fmt: skip
    _write_inputs(commands.inputs, scratch)
    if trial.prepared is not None and trial.prepared.has_files:
        _write_inputs(trial.prepared.reports, scratch)
        return
    check_room = up.room_check()
    for argv in commands.prepare:
        trial.workspace.run(
            "prepare",
            command(argv),
            cwd=up.work,
            timeout_s=trial.cell.time_limit_s,
            watch=lambda _: check_room(),
        )


def _write_inputs(texts: Mapping[str, str], scratch: Path) -> None:
    """Write the workload's input files. UnsafeError for a name that leaves the directory: names come from the store."""
    for name, text in texts.items():
        if {"", ".", ".."} & set(name.split("/")):
            raise UnsafeError(f"the workload's file '{name}' is outside its directory")
        (scratch / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        untrusted_files.write_new(scratch / name, text.encode())


def _emptied(directory: Path) -> Path:
    trees.remove(directory)
    directory.mkdir(mode=0o700)
    return directory


def prepare_cache(
    wanted: Cache, up: Stack, workload: workloads.ParsedWorkload[Any], keep: Callable[[], None] | None
) -> bool:
    """Flush what preparing left, and bring the page cache to the declared state. Returns whether that succeeded.

    A file system of ours is unmounted, so nothing of it stays cached. Other caches do not matter. ``keep`` is called
    while it is unmounted.
    """
    up.flush()
    if wanted is Cache.WARM:
        up.fill_cache(workload.space_bytes())
        up.flush()  # the access times
        return True
    if up.unmount():
        up.drop_caches()
        if keep is not None:
            keep()
        up.mount()
        return True
    try:
        page_cache.drop_all()
    except OSError:  # not root, or in a container, where the file is read-only or missing
        page_cache.drop_tree(up.work)
        return False
    for tool in workload.tools():
        tools.page_in(tool)  # dropping all caches dropped the tool as well
    return True


def memory_needed(cell: Cell, *, in_guest: bool = False) -> RunMemory:
    """Return how much memory to hold for a run. None is needed where free memory stays in use.

    ``in_guest``: for a run in a guest, whose page cache is not memory of this machine. A quarter more than the files,
    because other allocations take from what is released, too.
    """
    if not warm_memory.is_reported():
        return RunMemory()
    workload, parsed = workloads.parsed(cell.workload), parsed_stack(cell.stack)
    cached = not in_guest and not workload.traits().direct
    takes = parsed.medium.takes_memory(parsed.medium_options, in_guest=in_guest)
    return RunMemory(
        cached_bytes=min(cached * workload.space_bytes() * 5 // 4, MOST_HELD_BYTES),
        disk_bytes=min(takes * workload.written_bytes() * 5 // 4, MOST_HELD_BYTES),
    )
