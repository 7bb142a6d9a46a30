"""Prints explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fslab.cli.common import console
from fslab.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fslab.explain.evidence import Evidence
    from fslab.explain.statement_model import Explanation

SHOWN = 5
ALIKE = 0.1  # × the weight: a smaller contrast is none


def show(everything: Sequence[Evidence]) -> None:
    """Print all explanations, cell by cell, each with its counters below it."""
    from rich.text import Text

    from fslab.api import explanations
    from fslab.explain.statements import statements_of

    screen = console()
    for seen in everything:
        found = statements_of(seen)
        about = Text(f"{seen.workload}, {seen.stack}", style="bold")
        screen.print(about if found else about.append(": no mechanism found", style="not bold"))
        for statement in found:
            _show(statement)
        for why in explanations.withdrawn(seen):
            screen.print(f"  trace not used: {why}", markup=False)


def show_ranked(everything: Sequence[Evidence], campaign: str) -> None:
    """Print the mechanisms, those in which the stacks differ most first, each with its strongest explanation."""
    from fslab.api import explanations

    screen = console()
    ranked = explanations.ranking(everything)
    if not ranked:
        screen.print(f"no mechanism found in {counted(len(everything), 'cell')}", markup=False)
        return
    for each in ranked[:SHOWN]:
        screen.print(f"{each.mechanism}: {each.summary}", markup=False, style="bold")
        more = len(each.cells) - 1
        also = f", and in {counted(more, 'other cell')}" if more else ""
        also += "; all stacks have it alike" if each.contrast < ALIKE * each.weight else ""
        strongest = each.strongest
        screen.print(f"  {strongest.text}", markup=False)
        about = f"{strongest.workload} on {strongest.stack}{also}"
        screen.print(f"  {strongest.certainty}: {about}", markup=False, style="dim")
        screen.print(f"  falsified if: {strongest.refuted_by}", markup=False, style="dim")
    hidden = len(ranked) - SHOWN
    rest = f"{counted(hidden, 'more mechanism')}, " if hidden > 0 else ""
    screen.print(f"{rest}every cell and counter: fslab explain {campaign} --all", markup=False)
    screen.print(
        "an observed mechanism need not be a cause; to show causes: --ablate", markup=False, style="dim"
    )


def _show(statement: Explanation) -> None:
    screen = console()
    screen.print(f"  {statement.text} ({statement.certainty})", markup=False)
    for figure in statement.figures:
        screen.print(f"      {figure}", markup=False, style="dim")
    screen.print(f"      falsified if: {statement.refuted_by}", markup=False, style="dim")
