"""Before a campaign begins: can every stack be built, is there room for all images, does --wipe fit?

Looks only. What is wrong here is wrong for the user, not for a trial: nothing is made, nothing is stored.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fslab.cell import Cell
from fslab.errors import FslabError, NoSpaceError, ToolMissingError, UnsafeError, UsageError
from fslab.feasibility import _programs, _room
from fslab.feasibility._cells import Reasons, foreseen, reasons_of
from fslab.feasibility._plugins import check_plugins
from fslab.feasibility._programs import programs_of
from fslab.machine import tuning
from fslab.machine.kinds import REGISTRY
from fslab.probes import REGISTRY as PROBES
from fslab.storage import Workspace, guard, print_nothing
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import paths
from fslab.validity.trial import REGISTRY as TRIAL_RULES


class RefusingJournal:
    """Nothing may be created while looking: any attempt is a bug."""

    def will_create(self, kind: str, target: str) -> str:
        raise AssertionError(f"a check was about to create {kind} {target}")

    def undone(self, entry: str) -> None:
        raise AssertionError(f"a check undid {entry}")


def check(
    campaign: str, cells: Sequence[Cell], wipe: frozenset[str], tell: Callable[[str], None] = print_nothing
) -> Reasons:
    """Raise what keeps these cells from being measured safely; changes nothing. ``tell`` gets a line before long steps.

    Cells that are not possible here do not keep the others from being measured: they are returned with the
    reason, unless they are all that there is.
    """
    workspace = Workspace(
        campaign=campaign,
        runtime=paths.runtime() / campaign,
        images=paths.images(),
        journal=RefusingJournal(),
        wipe=wipe,
        tell=tell,
    )
    _check_plugins(cells)
    _check_wipe(cells, wipe)
    for cell in {str(cell.tuning): cell for cell in cells}.values():
        tuning.check(cell.tuning)
    reasons = reasons_of(cells, workspace)
    measured = [cell for cell in cells if cell.id not in reasons]
    if not measured and reasons:
        raise next(iter(reasons.values()))
    guard.check_apart(sorted(_devices(measured)))
    _check_programs(measured)
    _room.check_room(measured, workspace)
    return reasons


def _check_plugins(cells: Sequence[Cell]) -> None:
    """PluginError where a trial would run with other plug-ins than planned, or without one that watches or judges."""
    for cell in cells:
        check_plugins(cell)
    PROBES.require()
    TRIAL_RULES.require()


def _check_programs(cells: Sequence[Cell]) -> None:
    """ToolMissingError that names all missing programs and the commands that install them."""
    needed = list(dict.fromkeys(tool for cell in cells for tool in programs_of(cell)))
    if missing := _programs.missing_programs(needed):
        raise ToolMissingError(
            f"not installed: {', '.join(tool.program for tool in missing)}",
            hint="; ".join(_programs.remedies_for(needed)),
        )


def foresee(cells: Sequence[Cell], images_directory: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """What :func:`check` would say of these cells, as far as that is known without root, without opening a device.

    The reason for each cell (by id) that cannot be measured here, and what would keep the campaign from starting.
    """
    found = {cell.id: error for cell in cells if (error := foreseen(cell))}
    measured = [cell for cell in cells if cell.id not in found]
    refused = [] if measured or not found else [str(next(iter(found.values())))]
    refused += map(str, _refusals(measured, images_directory))
    needs_root = any(
        MEDIA.get(cell.stack.medium.type).needs_root and not REGISTRY.get(cell.stack.machine.type).guest
        for cell in measured
    )
    if needs_root and os.geteuid() != 0:
        refused.append("this study needs root: run it with sudo")
    return {key: str(error) for key, error in found.items()}, tuple(refused)


def _refusals(cells: Sequence[Cell], directory: Path) -> Iterator[FslabError]:
    """What is missing: programs, then room."""
    workspace = Workspace(
        campaign="CAMPAIGN", runtime=directory, images=directory, journal=RefusingJournal(), wipe=frozenset()
    )
    try:
        _check_programs(cells)
    except ToolMissingError as error:
        yield error
    try:
        _room.check_room(cells, workspace)
    except NoSpaceError as error:
        yield error


def check_named(cells: Sequence[Cell], wipe: frozenset[str]) -> None:
    """UnsafeError for a device that a stored campaign would overwrite and the user did not name now: a store can be
    anybody's, and a device can be blank without being meant."""
    if unnamed := sorted(_devices(cells) - wipe):
        raise UnsafeError(
            f"a stored campaign would overwrite {', '.join(unnamed)}", where="device",
            hint=f"if all data on it may be lost: {' '.join(f'--wipe {device}' for device in unnamed)}",
        )  # fmt: skip


def _devices(cells: Sequence[Cell]) -> set[str]:
    """The devices whose content is lost, by the names that the study has for them."""
    found: set[str] = set()
    for cell in cells:
        found.update(parsed_stack(cell.stack).medium_plan(paths.images()).wipes)
    return found


def _check_wipe(cells: Sequence[Cell], wipe: frozenset[str]) -> None:
    """A device named for wiping that no medium of the study uses is a mistake, perhaps a bad one."""
    used = _devices(cells)
    if strange := sorted(wipe - used):
        raise UsageError(
            f"the study has no medium on {', '.join(strange)}", where="--wipe",
            hint=f"the study's devices: {', '.join(sorted(used))}" if used else "the study names no device",
        )  # fmt: skip
