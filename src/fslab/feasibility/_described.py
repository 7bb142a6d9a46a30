"""The description of a machine (``machine.description``): that of this one, and the reading of a file with one."""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab import untrusted_text
from fslab.cell import MachineSpec
from fslab.errors import UsageError, nearest
from fslab.feasibility import _programs
from fslab.feasibility._overview import programs
from fslab.machine import facts
from fslab.machine.description import DescribedKind, MachineDescription
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.planned_machine import here
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system import memory, paths

KEY = "description"  # in the output of doctor
_LIMIT_BYTES = 4 << 20


def describe() -> MachineDescription:
    """Return the description of this machine, as far as plans need it."""
    found = facts.gather()
    return MachineDescription(
        memory_bytes=found["memory_bytes"],
        distribution=found["distribution"],
        root=here().missing_for_mounts() is None,
        limits_memory=here().limits_memory(),
        programs_missing=tuple(tool.program for tool in _programs.missing_programs(programs())),
        images_free_bytes=_free(here().filesystem_of(paths.images())[1]),
        memory_files_free_bytes=_free(memory.SHARED) if memory.SHARED.is_dir() else 0,
        kinds={name: _kind(name) for name, _ in MACHINES},
    )


def described(path: Path) -> MachineDescription:
    """Read a description, or what ``fslab doctor --json`` wrote. Raises UsageError with all that is wrong."""
    try:
        value = untrusted_text.json_of(untrusted_text.of_file(path, limit_bytes=_LIMIT_BYTES))
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _wrong(path, f"is not JSON: {error}") from error
    if isinstance(value, dict) and isinstance(value.get(KEY), dict):
        value = value[KEY]
    try:
        found = MachineDescription.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise _wrong(path, "; ".join(map(_said, error.errors()))) from error
    if mistakes := list(_unknown(found)):
        raise _wrong(path, "; ".join(mistakes))
    return found


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(
        what, where=str(path), hint="let that machine write it: fslab doctor --json > machine.json"
    )


def _said(error: Any) -> str:
    """Return a mistake with its place: ``kinds.host.cpus: Input should be …``."""
    place = ".".join(map(str, error["loc"]))
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        what = "is not a fact of a machine's description"
    return f"{place}: {what}" if place else what


def _unknown(found: MachineDescription) -> Iterator[str]:
    """Yield the names that nothing of fslab has."""
    known = {tool.program for tool in programs()}
    yield from _strange("programs_missing", found.programs_missing, known)
    yield from _strange("kinds", found.kinds, set(MACHINES.names()))
    for name, kind in found.kinds.items():
        yield from _strange(f"kinds.{name}.filesystems", kind.filesystems, _mount_types())
        yield from _strange(f"kinds.{name}.modules", kind.modules, _modules())


def _strange(place: str, names: Iterable[str], known: Collection[str]) -> Iterator[str]:
    yield from (
        f"{place}: no '{name}' ({nearest(name, sorted(known))})" for name in names if name not in known
    )


def _kind(name: str) -> DescribedKind:
    spec = MachineSpec(type=name)
    kernel = here().kernel(spec)
    missing = [need.what for need in here().missing(spec)]
    if missing or kernel is None:
        return DescribedKind(missing=tuple(missing or ["what its kernel has is unknown"]))
    return DescribedKind(
        kernel=kernel.release,
        cpus=here().facts(spec)["cpus"],
        emulated=here().emulated(spec) is not False,
        filesystems=tuple(sorted(filter(kernel.has_filesystem, _mount_types()))),
        modules=tuple(sorted(filter(kernel.has_module, _modules()))),
    )


def _mount_types() -> set[str]:
    return {filesystem.mount_type for _, filesystem in FILESYSTEMS if filesystem.mounted}


def _modules() -> set[str]:
    return {module for _, layout in LAYOUTS for module in getattr(layout, "modules", ())}


def _free(place: Path) -> int:
    room = os.statvfs(place)
    return room.f_bavail * room.f_frsize
