"""What this machine can measure, what it or one study lacks, and the commands that get it. Installs nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fslab import feasibility
from fslab.cell import Cell
from fslab.feasibility import Capability, MatrixEntry
from fslab.machine import facts
from fslab.machine.advice import Advice, advise, advise_disks
from fslab.plan.expand import expand
from fslab.study import load
from fslab.system import reference
from fslab.system.tools import Tool
from fslab.tracing import available


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineCapabilities:
    """The facts of a machine, what can be measured on it, and what is missing.

    ``reference_spread``: the variation of a fixed loop's speed (standard deviation of its logarithm), or None if it
    could not be measured. ``matrix``: each file system and layout on each machine.
    """

    machine: dict[str, Any]
    advice: Sequence[Advice]
    reference_spread: float | None
    capabilities: Sequence[Capability]
    matrix: Sequence[MatrixEntry]
    packages_missing: Sequence[str]
    remedies: Sequence[str]


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
    found, needed = feasibility.everything()
    machine = facts.gather()
    return MachineCapabilities(
        machine=machine,
        advice=[*advise(machine), *advise_disks()],
        reference_spread=reference.spread(),
        capabilities=[*found, *_evidence()],
        matrix=feasibility.matrix(),
        packages_missing=feasibility.packages_missing(needed),
        remedies=feasibility.remedies_for(needed),
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
    needed = feasibility.everything()[1] if study is None else _programs(_cells(study))
    return feasibility.packages_missing(needed)


def _evidence() -> list[Capability]:
    """Return the sources of evidence on causes. A missing source means fewer explanations, not wrong ones."""
    return [
        Capability(
            kind="evidence", name=source.name, summary=source.summary, available=source.missing is None, versions={},
            missing=() if source.missing is None else (f"{source.missing}; unavailable without it: {source.costs}",),
        )
        for source in available.sources()
    ]  # fmt: skip


def _cells(study: str) -> Sequence[Cell]:
    return expand(load.load(study, []), feasibility.all_resolved)


def _programs(cells: Iterable[Cell]) -> list[Tool]:
    return list(
        dict.fromkeys(
            tool
            for cell in cells
            for tool in (*feasibility.programs_of(cell), *feasibility.programs_around(cell))
        )
    )


def _kernel_needs(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the stacks that this machine cannot build, each with the first reason that is not a missing program."""
    found = {}
    for stack in {cell.stack.model_dump_json(): cell.stack for cell in cells}.values():
        if needs := feasibility.lacking(stack, stack.machine):
            remedy = f" → {needs[0].remedy}" if needs[0].remedy else ""
            found[f"{stack.name} on {stack.machine.type}"] = f"{needs[0].what}{remedy}"
    return found
