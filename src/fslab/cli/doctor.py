"""``fslab doctor``: what this machine can measure, what is missing, and the command that installs it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import JsonOption, console, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fslab.api.capabilities import MachineCapabilities, StudyNeeds
    from fslab.feasibility import Capability
    from fslab.machine.advice import Advice


def doctor(
    study: Annotated[
        str | None,
        typer.Argument(help="Check only what this study needs: a file, or the id of a shipped study."),
    ] = None,
    packages_only: Annotated[
        bool, typer.Option("--packages", help="Print only the names of missing packages, one per line.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what this machine can measure, what is missing, and the command that installs it.

    Measures the speed of a fixed loop for 1.5 s. Installs and changes nothing. Exit status 0 even if something is
    missing.
    """
    from fslab.api import capabilities

    if packages_only:
        sys.stdout.writelines(f"{package}\n" for package in capabilities.packages_missing(study))
    elif study is not None:
        _show_study(capabilities.of_study(study), as_json=as_json)
    else:
        _show_all(capabilities.of_machine(), as_json=as_json)


def _show_study(found: StudyNeeds, *, as_json: bool) -> None:
    """Print what a study lacks here and the command that installs it, or that nothing is missing."""
    if as_json:
        print_json(asdict(found))
        return
    for program in found.programs_missing:
        say(f"{program} is not installed")
    for stack, why in found.stacks.items():
        say(f"{stack}: {why}")
    for remedy in found.remedies:
        say(f"→ {remedy}")
    if not found.programs_missing and not found.stacks:
        say(f"Nothing is missing. Start it with: fslab run {found.study}")


def _show_all(found: MachineCapabilities, *, as_json: bool) -> None:
    from fslab.api import machine_noise

    if as_json:
        print_json(asdict(found))
        return
    _show(found)
    _show_advice(found.advice)
    if found.reference_spread is not None:
        say(machine_noise.trials_sentence(found.reference_spread))


def _show_advice(advice: Sequence[Advice]) -> None:
    """Print what increases the noise on this machine, and the tuning that a study can set against it."""
    screen = console()
    for each in advice:
        remedy = f" → tuning: {{{each.tuning}}}" if each.tuning else ""
        screen.print(f"{each.what}{remedy}", markup=False)


def _show(machine: MachineCapabilities) -> None:
    from rich.table import Table

    from fslab.cli import doctor_matrix

    found, entries = machine.capabilities, machine.matrix
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "version", "missing"):
        table.add_column(title)
    for capability in found:
        if capability.kind in {entry.kind for entry in entries}:
            continue
        table.add_row(
            "[green]✓[/green]" if capability.available else "[red]✗[/red]",
            f"{capability.kind} [bold]{capability.name}[/bold]",
            _versions(capability) if capability.available else "",
            "; ".join(capability.missing),
        )
    screen = console(markup=True)
    screen.print(table)
    doctor_matrix.show(entries, {capability.name: _versions(capability) for capability in found}, screen)
    remedies = [
        capability.remedy for capability in found if capability.remedy and capability.kind == "machine"
    ]
    remedies += machine.remedies
    for remedy in remedies:
        screen.print(f"→ {remedy}", soft_wrap=True)
    if not remedies:
        screen.print("Nothing is missing. Try: fslab run quick")


def _versions(capability: Capability) -> str:
    if any("not installed" in what for what in capability.missing):
        return "not installed"
    return ", ".join(f"{program} {version or '?'}" for program, version in capability.versions.items())
