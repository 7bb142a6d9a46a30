"""Which file systems and layouts run on which machine, and what is missing for the others. Boots no guest.

Programs are always the host's, because a guest sees the host's root. A kernel's abilities are read from its module
lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fslab.cell import MachineSpec
from fslab.feasibility import _machines
from fslab.feasibility._programs import missing_programs, remedies_for
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.kinds import Machine, Need
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system import kernel, loop_devices, rights, tools
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
    """Return an entry for every file system and every layout on every machine."""
    found = []
    for machine_name, machine in MACHINES:
        spec = MachineSpec(type=machine_name)
        absent = machine.missing(spec)
        for name, filesystem in _real_filesystems():
            lacks = _kernel(absent, _machines.missing_filesystem(name, spec))
            found.append(_entry("file system", name, machine, absent, lacks, filesystem.tools))
        for name, layout in LAYOUTS:
            lacks = _kernel(absent, _machines.missing_layout(name, spec))
            found.append(_entry("layout", name, machine, absent, lacks, layout.tools))
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
        found.append((Lack.ROOT, Need(what=f"needs {missing}", remedy="run fslab with sudo")))
    order = list(Lack)
    first = min((lack for lack, _ in found), key=order.index, default=Lack.NOTHING)
    return MatrixEntry(
        kind=kind,
        name=name,
        machine=machine.name,
        lack=first,
        needs=tuple(
            dict.fromkeys(need.what for _, need in sorted(found, key=lambda each: order.index(each[0])))
        ),
        remedies=tuple(dict.fromkeys(need.remedy for lack, need in found if lack is first and need.remedy)),
    )


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
        remedy="run with sudo; without root: fslab run here, or --on uml" if missing else None,
    )  # fmt: skip


def of_loops() -> Capability:
    found = loop_devices.CONTROL.exists()
    return Capability(
        kind="machine", name="loop", summary="loop devices for loop and ram media", available=found, versions={},
        missing=() if found else ("this kernel has no loop devices",), remedy=None if found else "modprobe loop",
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
    """Return what can be used here."""
    found = [of_user(), of_loops()]
    for name, filesystem in _real_filesystems():
        found.append(
            of_entry("file system", name, filesystem.summary, filesystem.tools, filesystem.mount_type)
        )
    for name, layout in LAYOUTS:
        found.append(of_entry("layout", name, layout.summary, layout.tools))
    for name, workload in WORKLOADS:
        found.append(of_entry("workload", name, workload.summary, workload.tools))
    return found
