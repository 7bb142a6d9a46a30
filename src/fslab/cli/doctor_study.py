"""The part of ``fslab doctor`` that checks one study: the programs and kernel features that it needs and that are
missing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fslab.cli.common import console, print_json

if TYPE_CHECKING:
    from fslab.cell import Cell
    from fslab.system.tools import Tool


def check(study: str, *, packages_only: bool, as_json: bool) -> None:
    """Print what the study lacks here and the command that installs it, or that nothing is missing."""
    from fslab import feasibility

    cells = _cells(study)
    needed = _programs(cells)
    if packages_only:
        print_packages(needed)
        return
    kernel = _kernel_needs(cells)
    missing = feasibility.missing_programs(needed)
    remedies = feasibility.remedies_for(needed)
    if as_json:
        print_json(
            {
                "study": study,
                "programs_missing": [tool.program for tool in missing],
                "packages_missing": feasibility.packages_missing(needed),
                "stacks": kernel,
                "remedies": remedies,
            }
        )
        return
    screen = console()
    for tool in missing:
        screen.print(f"{tool.program} is not installed", markup=False)
    for stack, why in kernel.items():
        screen.print(f"{stack}: {why}", markup=False, soft_wrap=True)
    for remedy in remedies:
        screen.print(f"→ {remedy}", markup=False, soft_wrap=True)
    if not missing and not kernel:
        screen.print(f"Nothing is missing. Start it with: fslab run {study}", markup=False, soft_wrap=True)


def print_packages(needed: Iterable[Tool]) -> None:
    """Print the missing packages that this distribution has, one per line, for scripts."""
    from fslab import feasibility

    sys.stdout.writelines(f"{package}\n" for package in feasibility.packages_missing(needed))


def _cells(study: str) -> Sequence[Cell]:
    from fslab import feasibility
    from fslab.plan.expand import expand
    from fslab.study import load

    return expand(load.load(study, []), feasibility.resolved)


def _programs(cells: Iterable[Cell]) -> list[Tool]:
    from fslab.feasibility import programs_around, programs_of

    return list(
        dict.fromkeys(tool for cell in cells for tool in (*programs_of(cell), *programs_around(cell)))
    )


def _kernel_needs(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the stacks that this machine cannot build, each with the first reason that is not a missing program."""
    from fslab import feasibility

    found = {}
    for stack in {cell.stack.model_dump_json(): cell.stack for cell in cells}.values():
        if needs := feasibility.lacking(stack, stack.machine):
            remedy = f" → {needs[0].remedy}" if needs[0].remedy else ""
            found[f"{stack.name} on {stack.machine.type}"] = f"{needs[0].what}{remedy}"
    return found
