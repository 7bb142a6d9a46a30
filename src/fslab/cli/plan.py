"""``fslab plan``: show what a study would do. Changes nothing."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from fslab.cli import run_options
from fslab.cli.common import JsonOption, StudyChanges, console, print_json, words_of
from fslab.units import counted, first_of, format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fslab.cell import Cell
    from fslab.plan.model import Plan


def plan(
    study: str,
    *,
    changes: StudyChanges,
    repeats: run_options.Repeats,
    budget: str | None = None,
    commands: bool = False,
    machine: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a study would need: trials, time, space, the devices that it overwrites, and what cannot run here.

    Changes nothing: opens no device, leaves no file. It starts fio, which only checks the jobs, and tools that tell
    their version. Names that are known only at run time are shown as placeholders: /dev/loopN, CAMPAIGN.

    Parameters:
        study: A study file, or the id of a shipped study (fslab list studies).
        budget TIME: The time after which no new trial starts, such as 10m. Default: 'budget' of the study.
        commands --commands --all: Print each cell with the exact commands of a trial.
        machine FILE: Plan for another machine, by a file that 'fslab doctor --json' wrote there. Default: this machine.
    """
    from fslab.api import plans

    with plans.on_machine(machine) as where:
        run_options.seconds(budget)  # refuses a wrong one by the name of the option
        limit = [] if budget is None else [f"budget={budget}"]
        loaded = changes.load(study, *repeats.settings(), *limit)
        made = plans.plan(loaded)
        claims = plans.claims_lines(loaded, made)
        if as_json:
            foreseen = plans.claims_foreseen(loaded, made)
            print_json({**made.model_dump(), "claims": claims, "claims_foreseen": foreseen})
        else:
            if where:
                console().print(where, markup=False, soft_wrap=True)
            given = {**vars(changes), **vars(repeats), "budget": budget, "machine": machine, "commands": True}
            words = ["fslab", "plan", study, *words_of(given)]
            screen = console(markup=True)
            for line in _lines(made, more=None if commands else shlex.join(words), claims=claims):
                screen.print(line, soft_wrap=True)


def _lines(made: Plan, *, more: str | None, claims: Sequence[str]) -> Iterator[str]:
    """Yield the plan with Rich's markup. ``more``: the command that shows the exact commands of each cell; None: show
    them."""
    yield f"[bold]{escape(made.study)}[/bold]: {escape(made.title)}"
    yield f"{_trials(made)}, in random order (seed {made.seed})"
    yield from map(escape, _slices(made))
    yield escape(_expected(made))
    space = (f"space: {format_size(needed)} in {place}" for place, needed in made.space.items())
    notes = (f"note: {text}" for text in made.notices)
    yield from map(escape, (*_where(made), *claims, *space, *_shared(made), *notes))
    if made.devices:
        yield escape(f"devices: {', '.join(made.devices)}")
    for device in made.wipes:
        yield f"[bold red]everything on {escape(device)} will be lost[/bold red] (needs --wipe, unless it is blank)"
    for text in made.refused:
        yield f"[bold red]cannot run here[/bold red]: {escape(text)}"
    if not (made.refused and len(made.impossible) == len(made.cells)):  # else ``refused`` has the reasons
        for reason, cells in Counter(made.impossible.values()).items():
            share = f"{cells} of {counted(len(made.cells), 'cell')}"
            yield f"[bold yellow]not possible[/bold yellow] ({share}): {escape(reason)}"
    yield from _scale(made)
    yield from map(escape, _executed(made))
    if more is None:
        for cell in made.cells:
            yield from _cell(cell, made)
    else:
        yield f"[dim]exact commands of each cell: {escape(more)}[/dim]"
    yield "nothing was changed"


def _slices(made: Plan) -> Iterator[str]:
    from fslab.plan.expand import LEAST_SLICES

    if sliced := {cell.workload.name: cell.slice_s for cell in made.cells if cell.slice_s}:
        told = ", ".join(f"{name} ({format_duration(slice_s)})" for name, slice_s in sliced.items())
        whole = f"what a stack does within {LEAST_SLICES} slices is measured whole"
        yield f"in slices, the stacks in turns: {told}; {whole}"
    for why in dict.fromkeys(made.whole.values()):
        told = ", ".join(name for name, each in made.whole.items() if each == why)
        yield f"not in slices ({why}): {told}"


def _executed(made: Plan) -> Iterator[str]:
    from fslab.campaign.consent import executed
    from fslab.cli import consent

    if found := executed(made.cells):
        yield from consent.lines(found, sys.maxsize)


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
    total = f"{cells * least} to {cells * most} trials"
    return f"{all_} × {least} to {most} trials = {total}, {until[made.stopping.until]}"


def _scale(made: Plan) -> Iterator[str]:
    """Yield the scaled amounts of each entry, and the costs of scaling."""
    if made.scale == 1:
        return
    yield f"\n[bold]scale {made.scale:g}[/bold] of the sizes, counts and run times that the study writes"
    for entry, group in groupby(made.scaled, key=lambda each: each.entry):
        told = (f"{each.key} {each.written} → {each.used}{' (minimum)' * each.floor}" for each in group)
        changes = ", ".join(told)
        yield f"  {escape(entry)}: {escape(changes)}".replace("  : ", "  ")
    for cost in made.costs:
        yield f"  [yellow]costs[/yellow]  {escape(cost)}"


def _cell(cell: Cell, made: Plan) -> Iterator[str]:
    place = f" in {cell.stack.machine.type}" if cell.stack.machine.type != "host" else ""
    yield (
        f"\n[bold]{escape(cell.workload.name)}[/bold] on [bold]{escape(cell.stack.name)}[/bold]{place}"
        f"  [dim]cell {cell.id} · cache {cell.cache} · fresh {cell.fresh}[/dim]"
    )
    if cell.id in made.impossible:
        yield f"  [bold]not possible[/bold]: {escape(made.impossible[cell.id])}"
        return
    for command in made.commands[cell.id]:
        yield escape(f"  {command.stage:<8} {shlex.join(command.argv)}")
