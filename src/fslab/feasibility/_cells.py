"""Whether a cell can be measured: its workload's needs, its file system's declared limits, and its stack here.

What a workload needs is also tried on the mounted file system, if that is cheap and leaves nothing behind: a declared
limit comes from documentation, and another kernel version, or the file system of an existing directory, may differ.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fslab.cell import Cell, StackSpec
from fslab.errors import FslabError, UnsupportedError, UsageError
from fslab.feasibility import _machines
from fslab.filesystem_abilities import Ability, Needs
from fslab.machine.planned_machine import here
from fslab.storage import Workspace, initial_content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import namespaces, users
from fslab.units import first_of
from fslab.workloads import parsed


def why_not(cell: Cell) -> str | None:
    """Return why no trial of the cell is possible; None if no reason is known."""
    if cell.stack.filesystem is None:
        return None
    filesystem = FILESYSTEMS.get(cell.stack.filesystem)
    workload = parsed(cell.workload)
    if not filesystem.mounted:
        why = workload.why_files()
        return f"{why}; without a file system, dd and single jobs of fio can run" if why else None
    version = here().version(filesystem.tools[0]) if filesystem.limits_before else None
    return filesystem.why_not(workload.needs(), version)


def check_cell(cell: Cell) -> None:
    """Raise UnsupportedError if the cell is not possible."""
    if (error := _unfit(cell)) is not None:
        raise error


def _unfit(cell: Cell) -> UnsupportedError | None:
    why = why_not(cell)
    if why is None:
        return _no_disk_to_drive(cell) or _user_missing(cell)
    return UnsupportedError(
        why,
        where=f"{cell.workload.name} on {cell.stack.name}",
        hint="remove this file system from the study, or this workload from its 'workloads'",
    )


def _no_disk_to_drive(cell: Cell) -> UnsupportedError | None:
    stack, tool = parsed_stack(cell.stack), parsed(cell.workload).tool
    where = f"{cell.workload.name} on {cell.stack.name}"
    if not tool.drives_disk:
        return None
    if not (stack.medium.profiles and cell.stack.layout == "single"):
        return UnsupportedError(
            f"'{tool.name}' drives the disk under the file system, so it needs one virtual disk",
            where=where,
            hint="use a medium of type 'virtual' with layout 'single'",
        )
    if tool.disk_logs and cell.stack.medium.options.get("log") not in tool.disk_logs:
        return UnsupportedError(
            f"'{tool.name}' reads the log of its virtual disk",
            where=where,
            hint=f"give the medium 'log: {tool.disk_logs[0]}'",
        )
    return None


def _user_missing(cell: Cell) -> UnsupportedError | None:
    name = parsed(cell.workload).runs_as().user
    if name is None:
        return None
    try:
        here().check_user(name)
    except UnsupportedError as error:
        return error
    if cell.stack.machine.type == "host" and here().missing_for_mounts() is not None:
        return UnsupportedError(f"only root can run commands as user '{name}'", hint="run it with sudo")
    return None


Reasons = Mapping[str, FslabError]
"""The error that prevents measuring a cell, by cell id."""


def reasons_of(cells: Sequence[Cell], workspace: Workspace) -> Reasons:
    """Return the reasons for cells whose stack this machine cannot build, or whose file system lacks what they need.

    Raises any other problem of a stack: no room, no root, a danger to data.
    """
    stacks: dict[str, StackSpec] = {cell.stack.model_dump_json(): cell.stack for cell in cells}
    refused = {key: error for key, spec in stacks.items() if (error := _unbuildable(spec, workspace))}
    found: dict[str, FslabError] = {}
    for cell in cells:
        why = _unfit(cell) or refused.get(cell.stack.model_dump_json())
        if why is not None:
            found[cell.id] = why
    return found


def foreseen(cell: Cell) -> FslabError | None:
    """Return why a cell cannot be measured here, as far as it is known without root and without touching anything."""
    return _unfit(cell) or _unbuildable(cell.stack)  # what no machine can do comes first: no advice helps


def by_cause(errors: Iterable[FslabError]) -> list[str]:
    """Return one text per cause, with the first two places: ``a, b and 43 more: linux.uml is not installed``."""
    places: dict[str, dict[str, None]] = {}
    for error in errors:
        places.setdefault(error.without_place, {})[error.where or ""] = None
    return [
        f"{first_of(list(filter(None, found)), 2)}: {text}".removeprefix(": ")
        for text, found in places.items()
    ]


def _unbuildable(spec: StackSpec, workspace: Workspace | None = None) -> UnsupportedError | None:
    """Return why the stack cannot be built; without a workspace, as far as it is known without touching anything."""
    try:
        _machines.check_machine(spec)
        if workspace is not None:
            check_stack(spec, workspace)
    except UnsupportedError as error:
        return error
    return None


def check_stack(spec: StackSpec, workspace: Workspace) -> None:
    """Raise if this stack cannot be built now. Changes nothing.

    The stack may come from a store that another user wrote, not only from a study that was just checked.
    """
    _check_spec(spec)
    parsed = parsed_stack(spec)
    if spec.machine.type != "host":
        parsed.medium.check_image(parsed.medium_options, workspace, disks=parsed.disks)
        return
    parsed.layout.check()
    parsed.medium.check(parsed.medium_options, workspace, disks=parsed.disks)


def _check_spec(spec: StackSpec) -> None:
    if "/" in spec.medium.name:
        raise UsageError(
            "a medium's name must not contain '/': images are named after it", where=spec.medium.name
        )
    if spec.filesystem is None:
        return
    for mistake in initial_content.mistakes(spec):
        raise UsageError(mistake, where=spec.name)
    driver = FILESYSTEMS.get(spec.filesystem)
    try:
        driver.check_mkfs_options(spec.mkfs_options)
        driver.check_mount_options(spec.mount_options)
        parsed_stack(spec).check_together()
    except ValueError as error:
        raise UsageError(str(error), where=spec.name) from error


TRY_NAME = ".fslab-try"


def check_mounted(directory: Path, needs: Needs, filesystem: str) -> None:
    """Raise UnsupportedError for the first needed ability that fails when tried in ``directory``."""
    for ability in sorted(needs.abilities & set(TRIES)):
        path = directory / TRY_NAME
        try:
            TRIES[ability](path)
        except OSError as error:
            others = "remove this file system from the study, or change the workload"
            owned = f"a file system with one owner: mount it with uid={users.NOBODY},gid={users.NOBODY}; or {others}"
            raise UnsupportedError(
                f"it needs {ability}, which fails on {filesystem} here ({error.strerror})",
                where=str(directory),
                hint=owned if ability is Ability.CHOWN else others,
            ) from error
        finally:
            for made in (path, _other(path)):
                made.unlink(missing_ok=True)


def _other(path: Path) -> Path:
    return path.with_name(f"{path.name}-2")


def _direct(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_CLOEXEC, 0o600))


def _hard_link(path: Path) -> None:
    path.touch()
    _other(path).hardlink_to(path)


def _colon(path: Path) -> None:
    named = path.with_name(f"{path.name}:")
    named.touch()
    named.unlink()


def _chown(path: Path) -> None:
    if os.geteuid() == 0:  # for another user, servers run as this user
        path.touch()
        os.chown(path, users.NOBODY, users.NOBODY)


def _overlay(path: Path) -> None:
    if os.geteuid() == 0:  # another user needs a process of its own for it (namespaces.overlay)
        namespaces.try_overlay(path)


TRIES = {
    Ability.DIRECT_READS: _direct,
    Ability.DIRECT_WRITES: _direct,
    Ability.HARD_LINKS: _hard_link,
    Ability.SYMLINKS: lambda path: path.symlink_to(TRY_NAME),
    Ability.COLON: _colon,
    Ability.CHOWN: _chown,
    Ability.OVERLAY: _overlay,
}
