"""Checks whether ``worker.toml`` of this machine allows a study, before anything of the study is executed.

Refuses everything that is not known to be harmless: each path in a cell must be allowed. Has no side effects.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from fslab.campaign.consent import Executed, Kind, executed
from fslab.cell import Cell, MachineSpec, MediumSpec
from fslab.errors import UnsafeError
from fslab.fleet.worker_settings import Allowed
from fslab.machine import tunables
from fslab.names import shown
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import paths
from fslab.workloads import REGISTRY as WORKLOADS

PATHS = frozenset({"path", "image", "directory"})
# Names of files whose texts are part of the study, and these texts. fslab opens no file by these names.
TEXTS = frozenset({"file", "file_text", "description"})


def check(allowed: Allowed, cells: Sequence[Cell]) -> None:
    """Raise UnsafeError if something is not allowed. The message lists up to five refusals, each with the key of
    ``worker.toml`` that would allow it."""
    _raise_any(_refused(allowed, cells))


def check_executed(allowed: Allowed, found: Sequence[Executed]) -> None:
    """Raise UnsafeError like ``check`` if something may not be executed."""
    _raise_any(why for each in found for why in _of_executed(allowed, each))


def _raise_any(found: Iterable[str]) -> None:
    refused = dict.fromkeys(found)
    if refused:
        raise UnsafeError(
            f"this machine does not allow the study: {'; '.join(list(refused)[:5])}",
            where="worker.toml",
            hint="its administrator can allow it below [allow] in worker.toml, and restart the agent",
        )


def _refused(allowed: Allowed, cells: Sequence[Cell]) -> Iterator[str]:
    for cell in cells:
        yield from _of_medium(allowed, cell)
        yield from _of_machine(allowed, cell.stack.machine)
        # The kernel itself ends this request when the process that made it ends (pm_qos_interface.rst).
        if cell.tuned.keys() - {tunables.IDLE} and not allowed.tuning:
            yield "settings of the kernel or of services (tuning = true)"
        options = (cell.stack.mkfs_options, cell.stack.mount_options)
        for path in (word for text in options for word in text.split() if "/" in word):
            yield f"a path in options of mkfs or mount: {shown(path)}"
        texts = WORKLOADS.get(cell.workload.tool).Parameters.command_keys | TEXTS
        values = [
            value for key, value in cell.workload.parameters.items() if key.rpartition(".")[2] not in texts
        ]
        for value in (*values, *cell.stack.layout_options.values()):
            if _is_path(value) and not _below(str(value), allowed.directories):
                yield f"{shown(str(value))} (directories)"
    for each in executed(cells):
        yield from _of_executed(allowed, each)


def _of_medium(allowed: Allowed, cell: Cell) -> Iterator[str]:
    medium = cell.stack.medium
    if medium.type not in (*allowed.media, *(["device"] if allowed.devices else []),
                           *(["directory"] if allowed.directories else [])):  # fmt: skip
        yield f"the medium '{shown(medium.type)}' (media)"
        return
    stack = parsed_stack(cell.stack)
    planned = stack.medium_plan(paths.images())
    for device in planned.wipes:
        if device not in allowed.devices:
            yield f"to overwrite {shown(device)} (devices)"
    for path in _paths_of(medium):
        if path not in allowed.devices and not _below(path, allowed.directories):
            yield f"{shown(path)} (directories)"
    if not stack.medium.formatted and not _below(planned.device, allowed.directories):
        yield f"{shown(planned.device)} (directories)"


def _paths_of(medium: MediumSpec) -> Iterator[str]:
    """Yield the paths in a medium's options: values of keys that name a path, and values that look like one."""
    for key, value in medium.options.items():
        text = str(value)
        if key in PATHS or "/" in text or text.startswith((".", "~")):
            yield from text.split() if medium.type == "device" else (text,)


def _of_machine(allowed: Allowed, machine: MachineSpec) -> Iterator[str]:
    if machine.type != MachineSpec().type and not allowed.guests:
        yield "virtual machines (guests = true)"


def _of_executed(allowed: Allowed, each: Executed) -> Iterator[str]:
    if each.kind in {Kind.COMMAND, Kind.SCRIPT}:
        if not allowed.commands:
            yield f"the {each.kind} '{shown(each.what)}' (commands = true)"
    elif each.what not in allowed.kernels:
        yield f"to boot {shown(each.what)} (kernels)"


def _is_path(value: Any) -> bool:
    text = str(value)
    return "\n" not in text and (text.startswith(("/", "~")) or ".." in PurePosixPath(text).parts)


def _below(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path, as written, is below one of the directories. False for a relative path, also one with
    ``~``, and for a path with ``..``."""
    wanted = PurePosixPath(path)
    if not wanted.is_absolute() or ".." in wanted.parts:
        return False
    return any(wanted.is_relative_to(PurePosixPath(each)) for each in directories)
