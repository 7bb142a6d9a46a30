"""``fslab plan``: what running a study would mean, touching nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli import consent
from fslab.cli.common import (
    JsonOption,
    KernelOption,
    MemoryOption,
    ModulesOption,
    OnOption,
    ScaleOption,
    SetOption,
    console,
    machine_settings,
    print_json,
    scale_setting,
)

if TYPE_CHECKING:
    from rich.console import Console

    from fslab.cell import Cell
    from fslab.plan.model import Plan


def plan(
    study: Annotated[
        str, typer.Argument(help="A study file, or the id of a shipped study (fslab list studies).")
    ],
    settings: SetOption = None,
    on: OnOption = None,
    kernel: KernelOption = None,
    modules: ModulesOption = None,
    guest_memory: MemoryOption = None,
    scale: ScaleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cells of a study with the exact commands, the devices and room needed, and the time.

    Touches nothing: starts no process, opens no device, writes no file. Stand-ins are in capitals:
    /dev/loopN, CAMPAIGN.
    """
    from fslab.machine import choose
    from fslab.plan.plan import make_plan
    from fslab.study import load
    from fslab.system import paths

    settings = [
        *(settings or []),
        *scale_setting(scale),
        *machine_settings(on, kernel, modules, guest_memory),
    ]
    made = make_plan(
        load.load(study, settings), images=paths.images(), runtime=paths.runtime() / "CAMPAIGN",
        place=choose.resolved, memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )  # fmt: skip
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        _show(made, console())


def _show(made: Plan, screen: Console) -> None:
    from fslab.units import format_duration, format_size

    screen.print(f"[bold]{made.study}[/bold]: {made.title}", soft_wrap=True)
    for cell in made.cells:
        _show_cell(cell, made, screen)
    _show_scale(made, screen)
    screen.print(f"\n{_trials(made)}, order drawn from seed {made.seed}", soft_wrap=True)
    expected = f"expected: about {format_duration(made.expected_s)}"
    longest_s = made.expected_most_s or made.expected_s
    if longest_s > made.expected_s:
        expected += f" to {format_duration(longest_s)}"
    if made.budget_s:
        limit = format_duration(made.budget_s)
        short = longest_s > made.budget_s
        expected += (
            f"; the budget of {limit} may end it earlier" if short else f", within the budget of {limit}"
        )
    screen.print(expected, soft_wrap=True)
    for place, needed in made.space.items():
        screen.print(f"room: {format_size(needed)} in {place}", soft_wrap=True)
    if made.devices:
        screen.print(f"devices: {', '.join(made.devices)}", soft_wrap=True)
    for device in made.wipes:
        screen.print(
            f"[bold red]everything on {device} will be lost[/bold red] (if it carries data, only with --wipe)"
        )
    if consent.own_commands(made.cells):
        screen.print(
            "[bold]commands of the study's own[/bold] run unconfined: fslab run asks, or --allow-commands"
        )
    screen.print("nothing was touched")


def _trials(made: Plan) -> str:
    """``15 cells × 5 trials = 75 trials``, or from how many to how many, and until when."""
    from fslab.stopping import Until

    cells, least, most = len(made.cells), made.trials, made.stopping.most
    if made.stopping.precision is None:
        return f"{cells} cells × {least} trials = {cells * least} trials"
    share = f"{made.stopping.precision * 100:g} %"
    until = {
        Until.DECIDED: f"until it is decided which stacks are better, or that they differ by less than {share}",
        Until.PRECISE: f"until each ratio is known to within {share}",
        Until.CLAIMS: f"until each claim is decided, or known to be within {share} of its limit",
    }
    return (
        f"{cells} cells × {least} to {most} trials = {cells * least} to {cells * most} trials, "
        f"{until[made.stopping.until]}"
    )


def _show_scale(made: Plan, screen: Console) -> None:
    """What was scaled, entry by entry, and what that costs."""
    from itertools import groupby

    from rich.markup import escape

    if made.scale == 1:
        return
    screen.print(
        f"\n[bold]scale {made.scale:g}[/bold] of the sizes, counts and run times that the study writes"
    )
    for entry, group in groupby(made.scaled, key=lambda each: each.entry):
        changes = ", ".join(
            f"{each.key} {each.written} → {each.used}{' (no less)' if each.floor else ''}" for each in group
        )
        screen.print(f"  {escape(entry)}: {escape(changes)}".replace("  : ", "  "), soft_wrap=True)
    for cost in made.costs:
        screen.print(f"  [yellow]costs[/yellow]  {escape(cost)}", soft_wrap=True)


def _show_cell(cell: Cell, made: Plan, screen: Console) -> None:
    import shlex

    from rich.markup import escape

    place = f" in {cell.stack.machine.type}" if cell.stack.machine.type != "host" else ""
    screen.print(
        f"\n[bold]{escape(cell.workload.name)}[/bold] on [bold]{escape(cell.stack.name)}[/bold]{place}"
        f"  [dim]cell {cell.id} · cache {cell.cache} · fresh {cell.fresh}[/dim]"
    )
    if cell.id in made.impossible:
        screen.print(f"  [bold]not possible[/bold]: {escape(made.impossible[cell.id])}", soft_wrap=True)
        return
    for command in made.commands[cell.id]:
        screen.print(f"  {command.stage:<8} {shlex.join(command.argv)}", markup=False, soft_wrap=True)
