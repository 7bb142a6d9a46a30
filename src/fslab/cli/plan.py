"""``fslab plan``: show what a study would do. Changes nothing."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from fslab.cli.common import (
    JsonOption,
    StudyChanges,
    console,
    print_json,
)
from fslab.units import counted, first_of, format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from fslab.cell import Cell
    from fslab.plan.model import Plan


def plan(
    study: str,
    *,
    changes: StudyChanges,
    commands: bool = False,
    machine: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a study would need: trials, time, space, the devices that it overwrites, and what cannot run here.

    Changes nothing: opens no device, leaves no file. It starts fio, which only checks the jobs, and tools that tell
    their version. Names that are known only at run time are shown as placeholders: /dev/loopN, CAMPAIGN.

    Parameters:
        study: A study file, or the id of a shipped study (fslab list studies).
        commands --commands --all: Print each cell with the exact commands of a trial.
        machine FILE: Plan for another machine, by a file that 'fslab doctor --json' wrote there. Default: this machine.
    """
    from fslab.api import plans

    with plans.on_machine(machine) as where:
        loaded = changes.load(study)
        made = plans.plan(loaded)
        claims = plans.claims_lines(loaded, made)
        if as_json:
            foreseen = plans.claims_foreseen(loaded, made)
            print_json({**made.model_dump(), "claims": claims, "claims_foreseen": foreseen})
        else:
            if where:
                console().print(where, markup=False, soft_wrap=True)
            planned_for = ["--machine", str(machine)] if machine else []
            words = ["fslab", "plan", study, *changes.words(), *planned_for, "--commands"]
            _show(made, console(markup=True), more=None if commands else shlex.join(words), claims=claims)


def _show(made: Plan, screen: Console, *, more: str | None, claims: Sequence[str]) -> None:
    """``more``: the command that shows the exact commands of each cell; None: show them."""
    screen.print(f"[bold]{escape(made.study)}[/bold]: {escape(made.title)}", soft_wrap=True)
    screen.print(f"{_trials(made)}, in random order (seed {made.seed})", soft_wrap=True)
    _show_slices(made, screen)
    screen.print(_expected(made), soft_wrap=True)
    space = (f"space: {format_size(needed)} in {place}" for place, needed in made.space.items())
    notes = (f"note: {text}" for text in made.notices)
    for line in (*_where(made), *claims, *space, *_shared(made), *notes):
        screen.print(line, soft_wrap=True, markup=False)
    if made.devices:
        screen.print(f"devices: {', '.join(made.devices)}", soft_wrap=True, markup=False)
    for device in made.wipes:
        screen.print(
            f"[bold red]everything on {escape(device)} will be lost[/bold red] (needs --wipe, unless it is blank)"
        )
    for text in made.refused:
        screen.print(f"[bold red]cannot run here[/bold red]: {escape(text)}", soft_wrap=True)
    for reason, cells in _reasons(made):
        share = f"{cells} of {counted(len(made.cells), 'cell')}"
        screen.print(f"[bold yellow]not possible[/bold yellow] ({share}): {escape(reason)}", soft_wrap=True)
    _show_scale(made, screen)
    _show_executed(made, screen)
    if more is None:
        for cell in made.cells:
            _show_cell(cell, made, screen)
    else:
        screen.print(f"exact commands of each cell: {more}", style="dim", markup=False, soft_wrap=True)
    screen.print("nothing was changed")


def _show_slices(made: Plan, screen: Console) -> None:
    from fslab.plan.expand import LEAST_SLICES

    if sliced := {cell.workload.name: cell.slice_s for cell in made.cells if cell.slice_s}:
        told = ", ".join(f"{name} ({format_duration(slice_s)})" for name, slice_s in sliced.items())
        whole = f"what a stack does within {LEAST_SLICES} slices is measured whole"
        screen.print(f"in slices, the stacks in turns: {told}; {whole}", soft_wrap=True, markup=False)
    for why in dict.fromkeys(made.whole.values()):
        told = ", ".join(name for name, each in made.whole.items() if each == why)
        screen.print(f"not in slices ({why}): {told}", soft_wrap=True, markup=False)


def _show_executed(made: Plan, screen: Console) -> None:
    from fslab.campaign.consent import executed
    from fslab.cli import consent

    if found := executed(made.cells):
        for line in consent.lines(found, sys.maxsize):
            screen.print(line, soft_wrap=True, markup=False)


def _where(made: Plan) -> Iterator[str]:
    """Yield where the stacks are measured, unless that is this machine itself for all of them."""
    if all(each.type == "host" for each in made.machines):
        return
    for each in made.machines:
        line = f"on {each.type}: {first_of(list(each.stacks), 12)}"
        told = "every instruction is emulated, which shows whether something works, not how fast"
        if each.emulated is None:
            line += f" (the first boot shows whether KVM works; without it, {told})"
        yield f"{line} (without KVM: {told})" if each.emulated else line


def _shared(made: Plan) -> Iterator[str]:
    from fslab.cell import Fresh

    for files, what in ((True, "files"), (False, "empty file systems")):
        groups = [each.group for each in made.shared.values() if each.files is files]
        if groups:
            yield (
                f"{what}: shared by {len(groups)} cells (fresh: block): in each block, {len(set(groups))} of them "
                "make them, and the others copy them"
            )
    if alone := sum(cell.fresh is Fresh.BLOCK and cell.id not in made.shared for cell in made.measured):
        yield (
            f"fresh: block has no effect on {counted(alone, 'cell')}: no other cell begins with the same state, or the "
            "medium cannot be copied (an image needs 'room')"
        )


def _reasons(made: Plan) -> list[tuple[str, int]]:
    """Return the reasons why cells cannot be measured, each with the number of its cells.

    Empty if no cell is possible: then ``refused`` has the reasons.
    """
    if made.refused and len(made.impossible) == len(made.cells):
        return []
    return list(Counter(made.impossible.values()).items())


def _expected(made: Plan) -> str:
    expected = f"expected: about {format_duration(made.expected_s)}"
    longest_s = made.expected_most_s or made.expected_s
    if longest_s > made.expected_s:
        expected += f" to {format_duration(longest_s)}"
    if made.budget_s:
        limit = format_duration(made.budget_s)
        if made.expected_s > made.budget_s:
            first = len(made.measured) * made.trials
            paid = int(first * made.budget_s / made.expected_s)
            expected += f"; the budget of {limit} may end it after about {paid} of the first {first} trials"
        elif longest_s > made.budget_s:
            expected += f"; the budget of {limit} may end it earlier"
        else:
            expected += f", within the budget of {limit}"
        expected += ", not counting the time spent waiting for other campaigns (run --wall-limit)"
    return expected


def _trials(made: Plan) -> str:
    """Return ``15 cells × 5 trials = 75 trials``; with a precision, the least and most trials and the stopping rule."""
    from fslab.stopping_settings import Until

    cells, least, most = len(made.measured), made.trials, made.stopping.most
    all_ = f"{cells} of " * (cells < len(made.cells)) + counted(len(made.cells), "cell")
    if made.stopping.precision is None:
        return f"{all_} × {counted(least, 'trial')} = {counted(cells * least, 'trial')}"
    share = f"{made.stopping.precision * 100:g} %"
    until = {
        Until.DECIDED: f"until it is decided which stacks are better, or that they differ by less than {share}",
        Until.PRECISE: f"until each ratio is known to within {share}",
        Until.CLAIMS: "until each claim is decided, as far as the budget reaches",
    }
    return (
        f"{all_} × {least} to {most} trials = {cells * least} to {cells * most} trials, "
        f"{until[made.stopping.until]}"
    )


def _show_scale(made: Plan, screen: Console) -> None:
    """Print the scaled amounts of each entry, and the costs of scaling."""
    if made.scale == 1:
        return
    screen.print(
        f"\n[bold]scale {made.scale:g}[/bold] of the sizes, counts and run times that the study writes"
    )
    for entry, group in groupby(made.scaled, key=lambda each: each.entry):
        changes = ", ".join(
            f"{each.key} {each.written} → {each.used}{' (minimum)' if each.floor else ''}" for each in group
        )
        screen.print(f"  {escape(entry)}: {escape(changes)}".replace("  : ", "  "), soft_wrap=True)
    for cost in made.costs:
        screen.print(f"  [yellow]costs[/yellow]  {escape(cost)}", soft_wrap=True)


def _show_cell(cell: Cell, made: Plan, screen: Console) -> None:
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
