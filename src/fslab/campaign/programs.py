"""Which programs and plug-ins a cell needs. Pure: whether they are installed is not asked here."""

from __future__ import annotations

from fslab import workloads
from fslab.cell import Cell
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.probes import REGISTRY as PROBES
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.system.tools import Tool
from fslab.validity.trial import REGISTRY as TRIAL_RULES


def programs_of(cell: Cell) -> tuple[Tool, ...]:
    """What its trials run: the workload's tools, the layout's, the file system's."""
    found = [*workloads.parsed(cell.workload).tools(), *LAYOUTS.get(cell.stack.layout).tools]
    if cell.stack.filesystem:
        found += FILESYSTEMS.get(cell.stack.filesystem).tools
    return tuple(dict.fromkeys(found))


def programs_around(cell: Cell) -> tuple[Tool, ...]:
    """What the machine that its trials run on needs on the host."""
    return MACHINES.get(cell.stack.machine.type).tools


def plugins_of(cell: Cell) -> dict[str, str]:
    """The packages that take part in its trials, with their versions: probes and rules take part in every trial."""
    every = {**PROBES.versions(PROBES.names()), **TRIAL_RULES.versions(TRIAL_RULES.names())}
    return {**every, **cell.stack.plugins, **cell.workload.plugins}
