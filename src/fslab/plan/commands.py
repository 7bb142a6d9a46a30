"""The exact command lines of one cell, by stage. Pure: registered entries say what they would run.

What only exists at run time has a stand-in in capitals (/dev/loopN, CAMPAIGN); nothing is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fslab.cell import Cache, Cell, Fresh
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.plan.model import PlannedCommand, Stage
from fslab.storage import commands
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import MediumPlan
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import Job

SLOT = "SLOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """Where a campaign works: ``images`` for loop media, ``runtime`` for mount points and report files."""

    images: Path
    runtime: Path

    @property
    def target(self) -> Path:
        """The mount point of the file system under test."""
        return self.runtime / "mnt"

    @property
    def scratch(self) -> Path:
        """Where tools write their report files."""
        return self.runtime / "scratch" / "tool"


def slot_of(cell: Cell) -> str:
    """Which image a cell's trials use: one for all of a medium, one per cell, or one per stack."""
    match cell.fresh:
        case Fresh.TRIAL:
            return cell.stack.medium.name
        case Fresh.CELL:
            return f"{cell.stack.medium.name}-{cell.id}"
        case Fresh.CAMPAIGN:
            return f"{cell.stack.medium.name}-{cell.stack_id}"


def slots_of(slot: str, disks: int) -> list[str]:
    """The slots of a stack's devices: one for each."""
    return [slot] if disks == 1 else [f"{slot}-{index}" for index in range(disks)]


def medium_plan(cell: Cell, paths: Paths) -> MediumPlan:
    """What one device of the cell's medium would mean."""
    medium = MEDIA.get(cell.stack.medium.type)
    planned = medium.plan(medium.parse_options(cell.stack.medium.options), paths.images)
    machine = MACHINES.get(cell.stack.machine.type)
    return replace(planned, device=machine.device, commands=()) if machine.guest else planned


def disks_of(cell: Cell) -> int:
    """How many devices of its medium a cell needs."""
    layout = LAYOUTS.get(cell.stack.layout)
    return layout.disks(layout.parse_options(cell.stack.layout_options))


def commands_of(cell: Cell, paths: Paths, *, seed: int) -> tuple[PlannedCommand, ...]:
    """All commands of one trial, in the order of running; ``seed`` is the one the tool gets."""
    planned = medium_plan(cell, paths)
    if not MEDIA.get(cell.stack.medium.type).formatted:
        return _workload(cell, paths, Path(planned.device) / f"fslab-CAMPAIGN-{slot_of(cell)}", seed)
    boot = MACHINES.get(cell.stack.machine.type).plan(cell.stack.machine)
    return (
        *((PlannedCommand(stage=Stage.BOOT, argv=boot),) if boot else ()),
        *_stack(cell, paths, planned),
        *_workload(cell, paths, paths.target / "work", seed),
        *_detach(cell, planned, paths),
    )


def _stack(cell: Cell, paths: Paths, planned: MediumPlan) -> tuple[PlannedCommand, ...]:
    spec, disks = cell.stack, disks_of(cell)
    slots = slots_of(slot_of(cell), disks)
    attach = [
        (stage, tuple(word.replace(SLOT, slot) for word in argv))
        for slot in slots
        for stage, argv in planned.commands
    ]
    devices = _devices(cell, planned, paths)
    plan = commands.layout_plan(spec, devices, "CAMPAIGN")
    discard = not MEDIA.get(spec.medium.type).image
    mkfs = commands.mkfs_argv(spec, plan, plan.device, discard=discard)
    mount = commands.mount_argv(spec, plan, plan.device, str(paths.target))
    return (
        *(PlannedCommand(stage=Stage(stage), argv=argv) for stage, argv in attach),
        *(PlannedCommand(stage=Stage.ATTACH, argv=argv) for argv in plan.create),
        PlannedCommand(stage=Stage.MKFS, argv=tuple(mkfs)),
        PlannedCommand(stage=Stage.MOUNT, argv=tuple(mount)),
    )


def _detach(cell: Cell, planned: MediumPlan, paths: Paths) -> tuple[PlannedCommand, ...]:
    """How the layout is taken apart when the trial ends; kept, where later trials use it again."""
    plan = commands.layout_plan(cell.stack, _devices(cell, planned, paths), "CAMPAIGN")
    argvs = plan.remove if cell.fresh is Fresh.TRIAL else plan.deactivate
    return tuple(PlannedCommand(stage=Stage.DETACH, argv=argv) for argv in argvs)


def _devices(cell: Cell, planned: MediumPlan, paths: Paths) -> list[str]:
    """The devices of the medium, by name where they have one already."""
    medium, disks = MEDIA.get(cell.stack.medium.type), disks_of(cell)
    options = medium.parse_options(cell.stack.medium.options)
    if planned.wipes:
        return [medium.plan(each, paths.images).device for each in medium.each(options, disks)]
    return [planned.device] if disks == 1 else [f"{planned.device}{index}" for index in range(disks)]


def _workload(cell: Cell, paths: Paths, directory: Path, seed: int) -> tuple[PlannedCommand, ...]:
    workload = WORKLOADS.get(cell.workload.tool)
    parameters = workload.parse_parameters(cell.workload.parameters)
    job = Job(directory=directory, scratch=paths.scratch, seed=seed, cold=cell.cache is Cache.COLD)
    commands = workload.commands(parameters, job)
    return (
        *(PlannedCommand(stage=Stage.PREPARE, argv=argv) for argv in commands.prepare),
        PlannedCommand(stage=Stage.RUN, argv=commands.run),
        *(PlannedCommand(stage=Stage.CLEANUP, argv=argv) for argv in commands.cleanup),
    )
