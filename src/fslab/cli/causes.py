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
            print_wrapped(f"  trace not used: {why}")


def show_ranked(everything: Sequence[Evidence], in_commands: str) -> None:
    """Print the mechanisms, those in which the stacks differ most first, each with its strongest explanation.

    ``in_commands``: how commands name the campaign.
    """
    from fslab.api import explanations

    ranked = explanations.ranking(everything)
    if not ranked:
        print_wrapped(f"no mechanism found in {counted(len(everything), 'cell')}")
        return
    for each in ranked[:SHOWN]:
        print_wrapped(f"{each.mechanism}: {each.summary}", style="bold")
        more = len(each.cells) - 1
        also = f", and in {counted(more, 'other cell')}" if more else ""
        also += "; all stacks have it alike" if each.contrast < ALIKE * each.weight else ""
        strongest = each.strongest
        print_wrapped(f"  {strongest.text}")
        about = f"{strongest.workload} on {strongest.stack}{also}"
        print_wrapped(f"  {strongest.certainty}: {about}", style="dim")
        print_wrapped(f"  falsified if: {strongest.refuted_by}", style="dim")
    hidden = len(ranked) - SHOWN
    rest = f"{counted(hidden, 'more mechanism')}, " if hidden > 0 else ""
    print_wrapped(f"{rest}every cell and counter: fslab explain {in_commands} --all")
    print_wrapped("an observed mechanism need not be a cause; to show causes: --ablate", style="dim")


def print_wrapped(text: str, style: str = "") -> None:
    """Print a text whose lines after the first are indented as the first one."""
    from fslab.report.terminal_width import wrapped

    screen = console()
    indent = len(text) - len(text.lstrip(" "))
    screen.print(wrapped(text, screen.width, style=style, hang=indent), soft_wrap=True)


def _show(statement: Explanation) -> None:
    print_wrapped(f"  {statement.text} ({statement.certainty})")
    for figure in statement.figures:
        print_wrapped(f"      {figure}", style="dim")
    print_wrapped(f"      falsified if: {statement.refuted_by}", style="dim")
