"""The exact command lines of one cell, by stage. Pure: registered entries return what they would run.

Names that exist only at run time are placeholders in capitals (/dev/loopN, CAMPAIGN); nothing is looked up.
"""

from dataclasses import dataclass
from pathlib import Path

from fslab.cell import Cache, Cell
from fslab.feasibility import medium_plan
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.plan.model import PlannedCommand, Stage
from fslab.storage import WORK, initial_content, mount_point, tool_scratch, zpool
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import LayoutPlan
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.workloads import Job, parsed

SLOT = "SLOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """The directories of a campaign: ``images`` for loop media, ``runtime`` for mount points and report files."""

    images: Path
    runtime: Path


def commands_of(cell: Cell, paths: Paths, *, seed: int, turns: int = 1) -> tuple[PlannedCommand, ...]:
    """Return all commands of one trial, in the order of running; ``seed``: the tool's seed. ``turns``: of a ``Job``."""
    planned = medium_plan(cell, paths.images)
    if not MEDIA.get(cell.stack.medium.type).formatted:
        return _workload(cell, paths, Path(planned.device) / f"fslab-CAMPAIGN-{cell.slot}", seed, turns)
    boot = MACHINES.get(cell.stack.machine.type).plan(cell.stack.machine)
    layout = parsed_stack(cell.stack).layout_plan(_devices(cell, planned, paths), "CAMPAIGN")
    return (
        *((PlannedCommand(stage=Stage.BOOT, argv=boot),) if boot else ()),
        *_stack(cell, paths, planned, layout),
        *_workload(cell, paths, mount_point(paths.runtime, cell.turn) / WORK, seed, turns, layout),
        *_detach(cell, layout),
    )


def _stack(cell: Cell, paths: Paths, planned: MediumPlan, plan: LayoutPlan) -> tuple[PlannedCommand, ...]:
    parsed = parsed_stack(cell.stack)
    attach = [
        (stage, tuple(word.replace(SLOT, slot) for word in argv))
        for slot in parsed.slots(cell.slot)
        for stage, argv in planned.commands
    ]
    discard = parsed.medium.discards(parsed.medium_options)
    journal, driver = parsed.journal(plan), FILESYSTEMS.get(cell.stack.filesystem or "")
    devices, plan = (plan.device, *plan.members), zpool.with_nodes(driver, plan, "CAMPAIGN", cell.turn)
    nodes, imports = zpool.commands(driver, devices, plan)
    mkfs = parsed.mkfs_argv(plan, plan.device, discard=discard)
    target = mount_point(paths.runtime, cell.turn)
    mount = parsed.mount_argv(plan, plan.device, str(target), settled=True)
    return (
        *(PlannedCommand(stage=Stage(stage), argv=argv) for stage, argv in attach),
        *(PlannedCommand(stage=Stage.ATTACH, argv=argv) for argv in (*plan.create, *nodes)),
        *(
            PlannedCommand(stage=Stage.MKFS, argv=argv)
            for argv in (journal.make if journal else (), tuple(mkfs))
            if argv
        ),
        *(PlannedCommand(stage=Stage.MOUNT, argv=argv) for argv in imports),
        *((PlannedCommand(stage=Stage.MOUNT, argv=tuple(mount)),) if mount else ()),
        *(
            PlannedCommand(stage=Stage.MOUNT, argv=argv)
            for argv in initial_content.commands(cell.stack, target / WORK)
        ),
    )


def _detach(cell: Cell, plan: LayoutPlan) -> tuple[PlannedCommand, ...]:
    """Return the commands that take the layout apart after a trial, or only deactivate it if later trials use it."""
    argvs = plan.deactivate if cell.fresh.lasts else plan.remove
    return tuple(PlannedCommand(stage=Stage.DETACH, argv=argv) for argv in (*plan.after_run, *argvs))


def _devices(cell: Cell, planned: MediumPlan, paths: Paths) -> list[str]:
    """Return the devices of the medium: their names if they exist already, else placeholders."""
    parsed = parsed_stack(cell.stack)
    if planned.wipes:
        return [parsed.medium.plan(each, paths.images).device for each in parsed.each_medium_options()]
    many = parsed.disks > 1
    return [f"{planned.device}{index if many else ''}" for index in range(parsed.disks)]


def _workload(
    cell: Cell, paths: Paths, directory: Path, seed: int, turns: int, layout: LayoutPlan | None = None
) -> tuple[PlannedCommand, ...]:
    scratch = tool_scratch(paths.runtime, cell.turn)
    driver, before_run = parsed_stack(cell.stack).filesystem, layout.before_run if layout else ()
    raw = Path(layout.device) if layout and driver and not driver.mounted else None
    cold = cell.cache is Cache.COLD
    job = Job(directory=directory, scratch=scratch, seed=seed, cold=cold, device=raw, turns=turns)
    workload = parsed(cell.workload)
    commands, shown = workload.commands(job), workload.runs_as().shown
    return (
        *(PlannedCommand(stage=Stage.PREPARE, argv=shown(argv)) for argv in commands.prepare),
        *(PlannedCommand(stage=Stage.PREPARE, argv=argv) for argv in before_run),
        PlannedCommand(stage=Stage.RUN, argv=shown(commands.run)),
        *(PlannedCommand(stage=Stage.CLEANUP, argv=shown(argv)) for argv in commands.cleanup),
    )
