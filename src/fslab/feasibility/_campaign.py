"""Checks before a campaign starts: can every stack be built, is there room for all images, does --wipe match?

Creates and stores nothing: a problem found here is reported to the user, not stored as a trial.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from fslab.cell import Cache, Cell
from fslab.errors import FslabError, NoSpaceError, ToolMissingError, ToolTimeoutError, UnsafeError, UsageError
from fslab.feasibility import _programs, _room
from fslab.feasibility._cells import Reasons, by_cause, foreseen, reasons_of
from fslab.feasibility._programs import check_plugins, programs_of
from fslab.machine import tuning
from fslab.machine.kinds import REGISTRY
from fslab.machine.planned_machine import here
from fslab.probes import REGISTRY as PROBES
from fslab.storage import Workspace, overwrite_check, print_nothing
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import paths, proc, rights, untrusted_files
from fslab.system.temporary import TemporaryDirectory
from fslab.system.tool_messages import one_line
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES
from fslab.workloads import Check, Job, parsed


class RefusingJournal:
    """A journal for checks. A check must not create anything, so any attempt is a bug."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:  # noqa: ARG002
        raise AssertionError(f"a check was about to create {kind} {target}")

    def undone(self, entry: str) -> None:
        raise AssertionError(f"a check undid {entry}")


def check(
    campaign: str, cells: Sequence[Cell], wipe: frozenset[str], tell: Callable[[str], None] = print_nothing
) -> Reasons:
    """Raise what prevents measuring these cells safely. Changes nothing. ``tell`` gets a line before long steps.

    Cells that are not possible here do not prevent the others: they are returned with the reason. If no cell is
    possible, the first reason is raised.
    """
    workspace = Workspace(
        campaign=campaign, runtime=paths.runtime() / campaign, images=paths.images(), journal=RefusingJournal(),
        wipe=wipe, tell=tell,
    )  # fmt: skip
    for cell in cells:
        check_plugins(cell)
    PROBES.require()
    TRIAL_RULES.require()
    _check_wipe(cells, wipe)
    reasons = reasons_of(cells, workspace)
    measured = [cell for cell in cells if cell.id not in reasons]
    if not measured and reasons:
        raise next(iter(reasons.values()))
    for cell in {str(cell.tuned): cell for cell in measured}.values():
        tuning.check(cell.tuned)
    overwrite_check.check_apart(sorted(_devices(measured)))
    _check_programs(measured)
    _room.check_room(measured, workspace.images)
    if refused := refused_by_tools(measured):
        raise UsageError("\n".join(map(str, refused)))
    return reasons


def _check_programs(cells: Sequence[Cell]) -> None:
    """Raise ToolMissingError with all missing programs and the commands that install them."""
    needed = list(dict.fromkeys(tool for cell in cells for tool in programs_of(cell)))
    if missing := _programs.missing_programs(needed):
        raise ToolMissingError(
            f"not installed: {', '.join(tool.program for tool in missing)}",
            hint="; ".join(_programs.remedies_for(needed)),
        )


def foresee(cells: Sequence[Cell], images_directory: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what :func:`check` would find, as far as it is known without root and without opening a device.

    First the reason for each cell (by id) that cannot be measured here, without the names of stack and machine; then
    what would prevent the campaign's start.
    """
    found = {cell.id: error for cell in cells if (error := foreseen(cell))}
    measured = [cell for cell in cells if cell.id not in found]
    refused = [] if measured else by_cause(found.values())
    refused += map(str, _refusals(measured, images_directory))
    needs_root = any(
        MEDIA.get(cell.stack.medium.type).needs_root and not REGISTRY.get(cell.stack.machine.type).guest
        for cell in measured
    )
    if needs_root and (missing := here().missing_for_mounts()):
        refused.append(f"this study needs {missing}: {rights.remedy(missing)}")
    return {key: error.without_place for key, error in found.items()}, tuple(refused)


def _refusals(cells: Sequence[Cell], directory: Path) -> Iterator[FslabError]:
    """Yield what is missing: first places and programs, then what the tools refuse, then room."""
    places = sorted(_room.places_of(cells, directory))
    checks = [partial(here().check_place, each) for each in places]
    for check_one in checks + [partial(here().check_device, each) for each in sorted(_devices(cells))]:
        try:
            check_one()
        except (UsageError, UnsafeError) as error:
            yield error
    try:
        _check_programs(cells)
    except ToolMissingError as error:
        yield error
    yield from refused_by_tools(cells)
    try:
        _room.check_room(cells, directory)
    except NoSpaceError as error:
        yield error


def fitting(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells; without slices if there is no room for all stacks of a workload at the same time."""
    if all(cell.slice_s is None for cell in cells):
        return cells
    try:
        _room.check_room([cell for cell in cells if not foreseen(cell)], paths.images())
    except NoSpaceError:
        return tuple(cell.model_copy(update={"slice_s": None}) for cell in cells)
    return cells


def check_named(cells: Sequence[Cell], wipe: frozenset[str]) -> None:
    """Raise UnsafeError for a device that a stored campaign would overwrite and that the user did not name now.

    Another user may have written the store, and a blank device may not be the intended one.
    """
    if unnamed := sorted(_devices(cells) - wipe):
        raise UnsafeError(
            f"a stored campaign would overwrite {', '.join(unnamed)}",
            where="device",
            hint=f"if all data on it may be lost: {' '.join(f'--wipe {device}' for device in unnamed)}",
        )


def _devices(cells: Sequence[Cell]) -> set[str]:
    """Return the devices whose content would be lost, as the study names them."""
    found: set[str] = set()
    for cell in cells:
        found.update(parsed_stack(cell.stack).medium_plan(paths.images()).wipes)
    return found


def _check_wipe(cells: Sequence[Cell], wipe: frozenset[str]) -> None:
    """Raise UsageError for a device named for wiping that no medium uses: a mistake, perhaps a dangerous one."""
    used = _devices(cells)
    if strange := sorted(wipe - used):
        raise UsageError(
            f"no medium of the study uses {', '.join(strange)}",
            where="--wipe",
            hint=f"the study's devices: {', '.join(sorted(used))}" if used else "the study names no device",
        )


LIMIT_S = 20.0
_AT_ONCE = 8
_IN_ONE = 16  # checks in one command


def refused_by_tools(cells: Sequence[Cell]) -> list[UsageError]:
    """Return what the installed tools refuse, each different input once, with the tool's own sentence.

    The programs of a guest are the host's: one answer is enough. Nothing is asked for a described machine.
    """
    asked = {} if here().described else {check: cell for cell in cells for check in _checks(cell)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = [each for told in pool.map(_told, _together(asked)) for each in told]
    errors = [_error(asked[check], check, told) for check, told in found]
    return list({str(error): error for error in errors}.values())


def _checks(cell: Cell) -> list[Check]:
    filesystem = parsed_stack(cell.stack).filesystem
    raw = filesystem is not None and not filesystem.mounted
    job = Job(
        directory=Path(), scratch=Path(), seed=1, cold=cell.cache is Cache.COLD,
        device=Path("device") if raw else None,
    )  # fmt: skip
    return [check for check in parsed(cell.workload).checks(job) if here().has_program(check.argv[0])]


def _together(checks: Iterable[Check]) -> list[tuple[Check, ...]]:
    """Return the checks, those together that one command can do: each start of fio takes a tenth of a second."""
    by_command: dict[Check, list[Check]] = {}
    for check in checks:
        by_command.setdefault(replace(check, own=()), []).append(check)
    return [
        tuple(each[at : at + _IN_ONE]) for each in by_command.values() for at in range(0, len(each), _IN_ONE)
    ]


def _told(checks: Sequence[Check]) -> list[tuple[Check, tuple[str, str]]]:
    """Return the checks that are refused, and what the tool says to each of them alone."""
    if _refusal(replace(checks[0], own=tuple(word for check in checks for word in check.own))) is None:
        return []
    return [(check, told) for check in checks if (told := _refusal(check)) is not None]


@lru_cache(maxsize=1024)
def _refusal(check: Check) -> tuple[str, str] | None:
    """Return the output and the errors of a tool that refuses its input. It runs in a directory of its own."""
    with TemporaryDirectory("check") as made:
        if check.file is not None:
            untrusted_files.write_new(made.path / check.file, check.text.encode())
        try:
            done = proc.run((*check.argv, *check.own), cwd=made.path, timeout_s=LIMIT_S, check=False)
        except ToolTimeoutError as error:
            return "", error.what
    # Too old for this check: then the trial shows what it refuses.
    too_old = f"unrecognized option '{check.argv[1]}'" in done.stderr
    if done.returncode == 0 or too_old:
        return None
    signal = f"ended by signal {-done.returncode}" if done.returncode < 0 else ""
    return done.stdout, done.stderr + signal


def _error(cell: Cell, check: Check, told: tuple[str, str]) -> UsageError:
    output, errors = told
    place = parsed(cell.workload).place_of(f"{output}\n{errors}")
    return UsageError(
        f"{check.argv[0]} refuses it: {one_line(errors, output) or 'it does not say why'}",
        where=place or f"workload '{cell.workload.name}'",
        hint="correct it; nothing was made or changed",
    )
