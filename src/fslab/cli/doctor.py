"""``fslab doctor``: what this machine can measure, what is missing, and the command that installs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fslab.cli.common import JsonOption, console, print_json, say

if TYPE_CHECKING:
    from rich.console import Console

    from fslab.api.capabilities import MachineCapabilities, StudyNeeds
    from fslab.feasibility import Capability, MatrixEntry


HAS_NO = " has no "

# The meaning of the words in the table. Each names the first thing that is missing.
MEANING = {
    "machine": "the guest cannot start here",
    "kernel": "the kernel does not have it",
    "tool": "a program is not installed",
    "root": "needs root",
}


def doctor(study: str | None = None, *, packages_only: bool = False, as_json: JsonOption = False) -> None:
    """Show what this machine can measure, what is missing, and the command that installs it.

    Measures the speed of a fixed loop for 1.5 s. Installs and changes nothing. Exit status 0 even if something is
    missing.

    Parameters:
        study: Check only what this study needs: a file, or the id of a shipped study.
        packages_only --packages: Print only the names of missing packages, one per line.
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
        print_json(found)
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
    from fslab.api import plans

    if as_json:
        print_json(found)
        return
    _show(found)
    screen = console()
    for each in found.advice:
        remedy = f" → tuning: {{{each.tuning}}}" if each.tuning else ""
        screen.print(f"{each.what}{remedy}", markup=False)
    if found.reference_spread is not None:
        say(plans.trials_sentence(found.reference_spread))


def _show(machine: MachineCapabilities) -> None:
    from rich.table import Table

    found, entries = machine.capabilities, machine.matrix
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "version, or what is missing"):
        table.add_column(title, overflow="fold")
    for capability in found:
        if capability.kind in {entry.kind for entry in entries}:
            continue
        table.add_row(
            "[green]✓[/green]" if capability.available else "[red]✗[/red]",
            f"{capability.kind} [bold]{capability.name}[/bold]",
            "; ".join([_versions(capability)] * capability.available + list(capability.missing)),
        )
    screen = console(markup=True)
    screen.print(table)
    show(entries, {capability.name: _versions(capability) for capability in found}, screen)
    remedies = [each.remedy for each in found if each.remedy and each.kind == "machine"] + [*machine.remedies]
    for remedy in remedies:
        screen.print(f"→ {remedy}", soft_wrap=True)
    if not remedies:
        screen.print("Nothing is missing. Try: fslab run quick")


def _versions(capability: Capability) -> str:
    if any("not installed" in what for what in capability.missing):
        return "not installed"
    return ", ".join(f"{program} {version or '?'}" for program, version in capability.versions.items())


def show(entries: Sequence[MatrixEntry], versions: Mapping[str, str], screen: Console) -> None:
    """Print the table, and below it what is missing on each machine, with the command that installs it.

    ``versions``: the versions of the programs of each file system and layout, by its name.
    """
    from rich.table import Table
    from rich.text import Text

    from fslab.feasibility import Lack

    machines = list(dict.fromkeys(entry.machine for entry in entries))
    styles = {Lack.NOTHING: "green"}
    for kind in dict.fromkeys(entry.kind for entry in entries):
        table = Table(box=None, pad_edge=False)
        for title in (kind, *(f"on {machine}" for machine in machines), "programs"):
            table.add_column(Text(title))
        for name in dict.fromkeys(entry.name for entry in entries if entry.kind == kind):
            of = {entry.machine: entry.lack for entry in entries if (entry.kind, entry.name) == (kind, name)}
            words = (Text(of[machine].value, style=styles.get(of[machine], "red")) for machine in machines)
            table.add_row(Text(name, style="bold"), *words, Text(versions.get(name, ""), style="dim"))
        screen.print(table)
    used = [
        f"{lack}: {words}" for lack, words in MEANING.items() if any(entry.lack == lack for entry in entries)
    ]
    if used:
        screen.print(" · ".join(used), style="dim", markup=False, soft_wrap=True)
    for line in lines(entries):
        screen.print(line, markup=False, soft_wrap=True)


def lines(entries: Sequence[MatrixEntry]) -> Iterator[str]:
    """Yield what is missing, without duplicates, and the commands for machines that are not ready."""
    from fslab.feasibility import Lack

    kernels: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for entry in entries:
        what = entry.needs[0] if entry.needs else ""
        if entry.lack is Lack.KERNEL:
            kernel, _, name = what.partition(HAS_NO)
            kernels.setdefault(f"{entry.machine}: {kernel}", {})[name] = None
        elif entry.lack is Lack.MACHINE:
            others[f"{entry.machine}: {what}"] = None
            others |= {f"→ {remedy}": None for remedy in entry.remedies}
    yield from (f"{kernel}{HAS_NO}{', '.join(names)}" for kernel, names in kernels.items())
    yield from others
