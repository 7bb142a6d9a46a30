"""Which plug-ins a stack and a workload come from. Versions are part of a cell: another version is another cell."""

from collections.abc import Mapping

from fslab.cell import Cell, StackSpec, WorkloadSpec
from fslab.errors import PluginError
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.probes import REGISTRY as PROBES
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.validity.trial import REGISTRY as TRIAL_RULES
from fslab.workloads import REGISTRY as WORKLOADS


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
