"""Which file systems and layouts run on which machine, and what is missing for the others. Boots no guest.

Also the description of a machine (``machine.planned_machine``): that of this one, and the reading of a file with one.

Programs are always the host's, because a guest sees the host's root. A kernel's abilities are read from its module
lists.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab import untrusted_text
from fslab.cell import MachineSpec
from fslab.errors import UsageError, nearest
from fslab.feasibility import _machines, _programs
from fslab.feasibility._programs import missing_programs, remedies_for
from fslab.machine import facts
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.kinds import Machine, Need
from fslab.machine.planned_machine import DescribedKind, MachineDescription, here
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system import kernel, loop_devices, memory, paths, rights, tools
from fslab.system.tools import Tool
from fslab.workloads import REGISTRY as WORKLOADS


class Lack(StrEnum):
    """What is missing. The table shows the first of these that applies."""

    NOTHING = "runs"
    MACHINE = "machine"
    KERNEL = "kernel"
    TOOL = "tool"
    ROOT = "root"


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixEntry:
    """One file system or layout (``kind``) on one machine.

    ``needs``: everything that is missing, starting with what ``lack`` means. ``remedies``: the commands that get what
    ``lack`` means.
    """

    kind: str
    name: str
    machine: str
    lack: Lack
    needs: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def matrix() -> list[MatrixEntry]:
    found = []
    for machine_name, machine in MACHINES:
        spec = MachineSpec(type=machine_name)
        absent = machine.missing(spec)
        for name, filesystem in _real_filesystems():
            lacks = _kernel(absent, _machines.missing_filesystem(name, spec))
            found.append(_entry("file system", name, machine, absent, lacks, filesystem.tools))
        for name, layout in LAYOUTS:
            # A layout of one file system's own runs where that runs.
            own = layout.filesystems if layout.filesystems and len(layout.filesystems) == 1 else ()
            needs = (need for each in own for need in _machines.missing_filesystem(each, spec))
            lacks = _kernel(absent, (*needs, *_machines.missing_layout(name, spec)))
            tools = (*layout.tools, *(tool for each in own for tool in FILESYSTEMS.get(each).tools))
            found.append(_entry("layout", name, machine, absent, lacks, tools))
    return found


def _real_filesystems() -> list[tuple[str, FileSystem]]:
    return [(name, filesystem) for name, filesystem in FILESYSTEMS if filesystem.mounted]


Lacks = list[tuple[Lack, Need]]


def _kernel(absent: Sequence[Need], needs: Sequence[Need]) -> Lacks:
    return [(Lack.KERNEL, need) for need in needs if need not in absent]


def _entry(
    kind: str, name: str, machine: Machine, absent: Sequence[Need], lacks: Lacks, needed: Sequence[Tool]
) -> MatrixEntry:
    found = [*lacks, *((Lack.MACHINE, need) for need in absent)]
    found += [
        (Lack.TOOL, Need(what=f"{tool.program} is not installed", remedy=tool.remedy))
        for tool in missing_programs(needed)
    ]
    if not machine.guest and (missing := rights.missing_for_mounts()):
        found.append((Lack.ROOT, Need(what=f"needs {missing}", remedy=rights.remedy(missing))))
    found.sort(key=lambda each: [*Lack].index(each[0]))
    first = found[0][0] if found else Lack.NOTHING
    return MatrixEntry(
        kind=kind, name=name, machine=machine.name, lack=first,
        needs=tuple(dict.fromkeys(need.what for _, need in found)),
        remedies=tuple(dict.fromkeys(need.remedy for lack, need in found if lack is first and need.remedy)),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Capability:
    """Something that can or cannot be used. ``versions``: by program. ``missing``: why not. ``remedy``: what to do."""

    kind: str
    name: str
    summary: str
    available: bool
    versions: dict[str, str | None]
    missing: tuple[str, ...] = ()
    remedy: str | None = None


def of_user() -> Capability:
    missing = rights.missing_for_mounts()
    return Capability(
        kind="machine", name="root", summary="attach loop devices, mount, drop caches", available=missing is None,
        versions={}, missing=(f"needs {missing}",) if missing else (),
        remedy=f"{rights.remedy(missing)}; without: fslab run here, or --on uml" if missing else None,
    )  # fmt: skip


def of_loops() -> Capability:
    found = loop_devices.CONTROL.exists()
    return Capability(
        kind="machine", name="loop", summary="loop devices for loop and ram media", available=found, versions={},
        missing=() if found else (f"there is no {loop_devices.CONTROL}",),
        remedy=None if found else loop_devices.REMEDY,
    )  # fmt: skip


def of_entry(
    kind: str, name: str, summary: str, needed: Sequence[Tool], mount_type: str | None = None
) -> Capability:
    """Return whether the programs and, if one is named, the kernel's file system are available."""
    lacks = [f"{tool.program} is not installed" for tool in missing_programs(needed)]
    if mount_type and not kernel.has_filesystem(mount_type, load=False):
        lacks.append(f"this kernel has no {mount_type}")
    remedies = remedies_for(needed)
    return Capability(
        kind=kind, name=name, summary=summary, available=not lacks,
        versions={tool.program: tools.version(tool) for tool in needed},
        missing=tuple(lacks), remedy="; ".join(remedies) or None,
    )  # fmt: skip


def programs() -> list[Tool]:
    """Return every program that anything needs."""
    filesystems = [filesystem for _, filesystem in _real_filesystems()]
    others = [each for registry in (LAYOUTS, WORKLOADS) for _, each in registry]
    machines = [machine for _, machine in MACHINES]
    return [tool for each in (*machines, *filesystems, *others) for tool in each.tools]


def everything() -> list[Capability]:
    return [
        of_user(),
        of_loops(),
        *(
            of_entry("file system", name, filesystem.summary, filesystem.tools, filesystem.mount_type)
            for name, filesystem in _real_filesystems()
        ),
        *(of_entry("layout", name, layout.summary, layout.tools) for name, layout in LAYOUTS),
        *(of_entry("workload", name, workload.summary, workload.tools) for name, workload in WORKLOADS),
    ]


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
    match error["type"]:
        case "extra_forbidden":
            what = "is not a fact of a machine's description"
        case "missing":
            what = "is missing"
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
    for name in names:
        if name not in known:
            yield f"{place}: no '{name}' ({nearest(name, sorted(known))})"


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
