"""Which file systems and layouts run on which machine, and what the others need. Looks only: boots nothing.

Programs are the host's everywhere: a guest sees the host's root. What a kernel has is read from its module lists.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fslab.cell import MachineSpec
from fslab.machine import choose
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.kinds import Machine, Need
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system import tools
from fslab.system.tools import Tool


class Lack(StrEnum):
    """What is missing, in a word: the first of these that applies stands in the table."""

    NOTHING = "runs"
    REFUSED = "not built"
    MACHINE = "machine"
    KERNEL = "kernel"
    TOOL = "tool"
    ROOT = "root"


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixEntry:
    """One file system or layout (``kind``) on one machine.

    ``needs`` is all that is missing, what ``lack`` means first; ``remedies`` are the commands that get that.
    """

    kind: str
    name: str
    machine: str
    lack: Lack
    needs: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def entries() -> list[MatrixEntry]:
    """Every file system and every layout on every machine."""
    found = []
    for machine_name, machine in MACHINES:
        spec = MachineSpec(type=machine_name)
        absent = machine.missing(spec)
        for name, filesystem in FILESYSTEMS:
            lacks = _refused(filesystem.refusal) or _kernel(absent, choose.missing_filesystem(name, spec))
            found.append(_entry("file system", name, machine, absent, lacks, filesystem.tools))
        for name, layout in LAYOUTS:
            lacks = _kernel(absent, choose.missing_layout(name, spec))
            found.append(_entry("layout", name, machine, absent, lacks, layout.tools))
    return found


Lacks = list[tuple[Lack, Need]]


def _refused(why: str | None) -> Lacks:
    return [(Lack.REFUSED, Need(what=why))] if why else []


def _kernel(absent: Sequence[Need], needs: Sequence[Need]) -> Lacks:
    return [(Lack.KERNEL, need) for need in needs if need not in absent]


def _entry(
    kind: str, name: str, machine: Machine, absent: Sequence[Need], lacks: Lacks, needed: Sequence[Tool]
) -> MatrixEntry:
    found = [*lacks, *((Lack.MACHINE, need) for need in absent)]
    refused = any(lack is Lack.REFUSED for lack, _ in found)
    for tool in () if refused else needed:  # nothing that can be installed would change it
        if tools.find(tool.program) is None:
            what = f"{tool.program} is not installed"
            found.append((Lack.TOOL, Need(what=what, remedy=tool.remedy)))
    if not machine.guest and os.geteuid() != 0:
        found.append((Lack.ROOT, Need(what="making it needs root", remedy="run fslab with sudo")))
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
