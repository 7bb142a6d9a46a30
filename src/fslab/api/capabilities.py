"""What this machine can measure, what it or a study lacks, and what studies can use: shipped studies, entries, keys.

Installs nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fslab import feasibility, plugins
from fslab.cell import Cell
from fslab.errors import UsageError, nearest
from fslab.feasibility import Capability, MatrixEntry
from fslab.machine import facts
from fslab.machine.advice import Advice, advise, advise_disks
from fslab.plan.expand import expand
from fslab.storage.filesystems import FileSystem
from fslab.study import load, shipped
from fslab.study.reference_pages import options_of
from fslab.system import cpu_speed
from fslab.system.tools import Tool
from fslab.tracing.tracer import sources

BUILT_IN = "fslab"
STUDIES = "studies"

_PACKAGES = {
    "filesystems": "storage.filesystems",
    "layouts": "storage.layouts",
    "media": "storage.media",
    "machines": "machine.kinds",
    "workloads": "workloads",
    "probes": "probes",
    "features": "features",
    "applications": "applications",
    "faults": "faults",
    "mechanisms": "explain.mechanisms",
    "validity-rules": "validity.trial_warnings",
    "campaign-rules": "validity.campaign_warnings",
}

KINDS = (STUDIES, *_PACKAGES)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineCapabilities:
    """The facts of a machine, what can be measured on it, and what is missing.

    ``reference_spread``: the variation of a fixed loop's speed (standard deviation of its logarithm), or None if it
    could not be measured. ``matrix``: each file system and layout on each machine. ``description``: what ``fslab plan
    --machine`` reads.
    """

    machine: dict[str, Any]
    advice: Sequence[Advice]
    reference_spread: float | None
    capabilities: Sequence[Capability]
    matrix: Sequence[MatrixEntry]
    packages_missing: Sequence[str]
    remedies: Sequence[str]
    description: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyNeeds:
    """What a study needs that is missing. ``stacks``: stacks that this machine cannot build, each with the reason that
    is not a missing program."""

    study: str
    programs_missing: Sequence[str]
    packages_missing: Sequence[str]
    stacks: dict[str, str]
    remedies: Sequence[str]


def of_machine() -> MachineCapabilities:
    """Check everything on this machine. Measures the speed of a fixed loop for 1.5 s."""
    found, needed = feasibility.everything(), feasibility.programs()
    machine = facts.gather()
    return MachineCapabilities(
        machine=machine,
        advice=[*advise(machine), *advise_disks()],
        reference_spread=cpu_speed.reference_spread(),
        capabilities=[*found, *_evidence()],
        matrix=feasibility.matrix(),
        packages_missing=feasibility.packages_missing(needed),
        remedies=feasibility.remedies_for(needed),
        description=feasibility.describe().model_dump(mode="json"),
    )


def of_study(study: str) -> StudyNeeds:
    """Return what a study, a file or the id of a shipped one, needs that is missing here."""
    cells = _cells(study)
    needed = _programs(cells)
    return StudyNeeds(
        study=study,
        programs_missing=[tool.program for tool in feasibility.missing_programs(needed)],
        packages_missing=feasibility.packages_missing(needed),
        stacks=_kernel_needs(cells),
        remedies=feasibility.remedies_for(needed),
    )


def packages_missing(study: str | None = None) -> Sequence[str]:
    """Return the missing packages that this distribution has: those of one study, or all."""
    needed = feasibility.programs() if study is None else _programs(_cells(study))
    return feasibility.packages_missing(needed)


def _evidence() -> list[Capability]:
    """Return the sources of evidence on causes. A missing source means fewer explanations, not wrong ones."""
    return [
        Capability(
            kind="evidence", name=source.name, summary=source.summary, available=source.missing is None, versions={},
            missing=() if source.missing is None else (f"{source.missing}; unavailable without it: {source.costs}",),
        )
        for source in sources()
    ]  # fmt: skip


def _cells(study: str) -> Sequence[Cell]:
    return expand(load.load(study, []), feasibility.all_resolved)


def _programs(cells: Iterable[Cell]) -> list[Tool]:
    needed = ((*feasibility.programs_of(cell), *feasibility.programs_around(cell)) for cell in cells)
    return list(dict.fromkeys(tool for tools in needed for tool in tools))


def _kernel_needs(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the stacks that this machine cannot build, each with the first reason that is not a missing program."""
    found = {}
    for stack in {cell.stack.model_dump_json(): cell.stack for cell in cells}.values():
        if needs := feasibility.lacking(stack, stack.machine):
            remedy = f" → {needs[0].remedy}" if needs[0].remedy else ""
            found[f"{stack.name} on {stack.machine.type}"] = f"{needs[0].what}{remedy}"
    return found


def entries(kind: str) -> list[dict[str, Any]]:
    """Return the entries of one of the ``KINDS``: name, summary, the package it is from, and its details.

    Raises UsageError for another kind.
    """
    if kind == STUDIES:
        return [{"name": name, "summary": shipped.title(name), "from": BUILT_IN} for name in shipped.ids()]
    registry = _registry(kind)
    return [
        {
            "name": name,
            "summary": entry.summary,
            "from": str(registry.plugin(name) or BUILT_IN),
            **_details(entry),
        }
        for name, entry in registry
    ]


def problems(kind: str) -> Iterator[str]:
    """Yield why plug-ins of a kind cannot be used."""
    if kind != STUDIES:
        yield from (str(problem) for problem in _registry(kind).problems())


def unknown_groups() -> Iterator[str]:
    """Yield which plug-ins belong to no group."""
    yield from map(str, plugins.of_other_groups({f"fslab.{kind.replace('-', '_')}" for kind in _PACKAGES}))


def _details(entry: Any) -> dict[str, Any]:
    """Return what studies may choose: options of a file system, profiles of a medium, settings of an application."""
    if isinstance(entry, FileSystem):
        return {"options": options_of(entry)}
    profiles, settings = getattr(entry, "profiles", None), getattr(entry, "settings", None)
    return {
        **({"profiles": list(profiles.values())} if profiles else {}),
        **({"settings": {name: list(values) for name, values in settings.items()}} if settings else {}),
    }


def _registry(kind: str) -> Any:
    if kind not in _PACKAGES:
        raise UsageError(f"no kind '{kind}'", hint=nearest(kind, KINDS))
    return import_module(f"fslab.{_PACKAGES[kind]}").REGISTRY
