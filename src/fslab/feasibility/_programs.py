"""Which programs are needed, which of them are missing, and the commands that install these. Installs nothing."""

from collections.abc import Iterable

from fslab import workloads
from fslab.cell import Cell
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.storage import content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import distributions, tools
from fslab.system.tools import Tool


def missing_programs(needed: Iterable[Tool]) -> list[Tool]:
    """Return the programs that are not installed, each once."""
    return [tool for tool in dict.fromkeys(needed) if tools.find(tool.program) is None]


def packages_missing(needed: Iterable[Tool]) -> list[str]:
    """Return this distribution's packages of the missing programs that need no further preparation, sorted."""
    family = distributions.here()
    absent = [tool for tool in missing_programs(needed) if tool.installable]
    return family.packages([tool.package for tool in absent if tool.package]) if family else []


def remedies_for(needed: Iterable[Tool]) -> list[str]:
    """Return the commands that install the missing programs: one for all in the package manager, then the others.

    A package manager installs nothing if it does not know one of the packages.
    """
    absent = missing_programs(needed)
    family, packages = distributions.here(), packages_missing(absent)
    command = [f"{family.install} {' '.join(packages)}"] if family and packages else []
    return command + sorted({tool.remedy for tool in absent if not tool.installable})


def programs_of(cell: Cell) -> tuple[Tool, ...]:
    """Return the programs that the cell's trials run: of the workload, the layout, the medium and the file system."""
    found = [*workloads.parsed(cell.workload).tools(), *LAYOUTS.get(cell.stack.layout).tools]
    found += [content.CHATTR] if cell.stack.attributes else []
    found += MEDIA.get(cell.stack.medium.type).tools
    if cell.stack.filesystem:
        found += FILESYSTEMS.get(cell.stack.filesystem).tools
    return tuple(dict.fromkeys(found))


def programs_around(cell: Cell) -> tuple[Tool, ...]:
    """Return the programs that the cell's machine needs on the host."""
    return MACHINES.get(cell.stack.machine.type).tools
