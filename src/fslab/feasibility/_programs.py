"""Which programs and plug-ins are needed, and the commands that install missing programs. Installs nothing."""

from collections.abc import Iterable, Mapping

from fslab import workloads
from fslab.cell import Cell, StackSpec, WorkloadSpec
from fslab.errors import PluginError
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.planned_machine import here
from fslab.probes import REGISTRY as PROBES
from fslab.storage import initial_content
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.parsed_stack import parsed_stack
from fslab.system.tools import Tool
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES
from fslab.workloads import REGISTRY as WORKLOADS


def missing_programs(needed: Iterable[Tool]) -> list[Tool]:
    """Return the programs that are not installed, each once."""
    return [tool for tool in dict.fromkeys(needed) if not here().has_program(tool.program)]


def packages_missing(needed: Iterable[Tool]) -> list[str]:
    """Return this distribution's packages of the missing programs that need no further preparation, sorted."""
    family = here().family()
    absent = [tool for tool in missing_programs(needed) if tool.installable]
    return family.packages([tool.package for tool in absent if tool.package]) if family else []


def remedies_for(needed: Iterable[Tool]) -> list[str]:
    """Return the commands that install the missing programs: one for all in the package manager, then the others.

    A package manager installs nothing if it does not know one of the packages.
    """
    absent = missing_programs(needed)
    family, packages = here().family(), packages_missing(absent)
    command = [f"{family.install} {' '.join(packages)}"] if family and packages else []
    return command + sorted({tool.remedy for tool in absent if not tool.installable})


def programs_of(cell: Cell) -> tuple[Tool, ...]:
    """Return the programs that the cell's trials run: of the workload, the layout, the medium and the file system."""
    found = [*workloads.parsed(cell.workload).tools(), *parsed_stack(cell.stack).layout.tools]
    found += [initial_content.CHATTR] if cell.stack.attributes else []
    found += MEDIA.get(cell.stack.medium.type).tools
    if cell.stack.filesystem:
        found += FILESYSTEMS.get(cell.stack.filesystem).tools
    return tuple(dict.fromkeys(found))


def programs_around(cell: Cell) -> tuple[Tool, ...]:
    """Return the programs that the cell's machine needs on the host."""
    return MACHINES.get(cell.stack.machine.type).tools


def with_stack_plugins(spec: StackSpec) -> StackSpec:
    """Return the stack with the packages of its medium, layout, file system and machine, and their versions."""
    found = {
        **MACHINES.versions([spec.machine.type]),
        **MEDIA.versions([spec.medium.type]),
        **LAYOUTS.versions([spec.layout]),
        **FILESYSTEMS.versions([spec.filesystem]),
    }
    return spec.model_copy(update={"plugins": found})


def with_workload_plugins(spec: WorkloadSpec) -> WorkloadSpec:
    """Return the workload with the packages of its tool and of the tools in its parameters (``parts.a.tool``)."""
    parts = [str(value) for key, value in spec.parameters.items() if key.endswith(".tool")]
    return spec.model_copy(update={"plugins": WORKLOADS.versions([spec.tool, *parts])})


def check_plugins(cell: Cell) -> None:
    """Raise PluginError unless the installed plug-ins are those that the cell was planned with."""
    planned = {**cell.stack.plugins, **cell.workload.plugins}
    found = {**with_stack_plugins(cell.stack).plugins, **with_workload_plugins(cell.workload).plugins}
    if planned != found:
        raise PluginError(
            f"the cell was planned with {_shown(planned)}, but {_shown(found)} is installed",
            where=f"{cell.workload.name} on {cell.stack.name}",
            hint="install the same version, or start a new campaign",
        )


def plugins_of(cell: Cell) -> dict[str, str]:
    """Return the packages that take part in the cell's trials, with versions: in each trial also probes and rules."""
    every = {**PROBES.versions(PROBES.names()), **TRIAL_RULES.versions(TRIAL_RULES.names())}
    return {**every, **cell.stack.plugins, **cell.workload.plugins}


def _shown(versions: Mapping[str, str]) -> str:
    named = [f"{name} {version}" for name, version in sorted(versions.items())]
    return f"plug-in {', '.join(named)}" if named else "no plug-in"
