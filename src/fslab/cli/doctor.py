"""``fslab doctor``: what this machine can measure, what is missing, and the command that installs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli import doctor_study
from fslab.cli.common import JsonOption, console, print_json

if TYPE_CHECKING:
    from fslab.feasibility import Capability, MatrixEntry
    from fslab.machine.advice import Advice
    from fslab.system.tools import Tool


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
    if study is not None:
        doctor_study.check(study, packages_only=packages_only, as_json=as_json)
        return
    from fslab import feasibility

    found, needed = feasibility.everything()
    if packages_only:
        doctor_study.print_packages(needed)
        return
    _show_all([*found, *_evidence()], needed, as_json=as_json)


def _show_all(found: list[Capability], needed: list[Tool], *, as_json: bool) -> None:
    from dataclasses import asdict

    from fslab import feasibility
    from fslab.api import quiet
    from fslab.machine import facts
    from fslab.machine.advice import advise, advise_disks
    from fslab.system import reference

    machine = facts.gather()
    advice = [*advise(machine), *advise_disks()]
    entries = feasibility.matrix()
    varies = reference.spread()
    if as_json:
        print_json(
            {
                "machine": machine,
                "advice": [asdict(each) for each in advice],
                "reference_spread": varies,
                "capabilities": [asdict(capability) for capability in found],
                "matrix": [asdict(entry) for entry in entries],
                "packages_missing": feasibility.packages_missing(needed),
                "remedies": feasibility.remedies_for(needed),
            }
        )
    else:
        _show(found, entries, feasibility.remedies_for(needed))
        _show_advice(advice)
        if varies is not None:
            console().print(quiet.words(varies), markup=False, soft_wrap=True)


def _evidence() -> list[Capability]:
    """Return the sources of evidence on causes. A missing source means fewer explanations, not wrong ones."""
    from fslab.feasibility import Capability
    from fslab.tracing import available

    return [
        Capability(
            kind="evidence", name=source.name, summary=source.summary, available=source.missing is None, versions={},
            missing=() if source.missing is None else (f"{source.missing}; unavailable without it: {source.costs}",),
        )
        for source in available.sources()
    ]  # fmt: skip


def _show_advice(advice: list[Advice]) -> None:
    """Print what increases the noise on this machine, and the tuning that a study can set against it."""
    screen = console()
    for each in advice:
        remedy = f" → tuning: {{{each.tuning}}}" if each.tuning else ""
        screen.print(f"{each.what}{remedy}", markup=False)


def _show(found: list[Capability], entries: list[MatrixEntry], programs: list[str]) -> None:
    from rich.table import Table

    from fslab.cli import doctor_matrix

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
    remedies += programs
    for remedy in remedies:
        screen.print(f"→ {remedy}", soft_wrap=True)
    if not remedies:
        screen.print("Nothing is missing. Try: fslab run quick")


def _versions(capability: Capability) -> str:
    if any("not installed" in what for what in capability.missing):
        return "not installed"
    return ", ".join(f"{program} {version or '?'}" for program, version in capability.versions.items())
