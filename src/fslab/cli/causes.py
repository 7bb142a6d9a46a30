"""What is known of the causes, as a person or a program reads it: shared by explain, results and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fslab.cli.common import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fslab.explain.evidence import Evidence
    from fslab.explain.statement import Explanation
    from fslab.store.campaign import Campaign
    from fslab.store.store import Store

NOTABLE = 1.0
SHORT = 2
WIDEST = 110


def evidence_of(campaign: Campaign, store: Store) -> list[Evidence]:
    """Every cell of a campaign with what is known of it."""
    from fslab.explain import statements

    return statements.evidence_of(campaign.cells, store.trials(campaign.id), store.traced(campaign.id))


def show(everything: Sequence[Evidence]) -> None:
    """All statements, cell by cell, each with its counters below it."""
    from rich.text import Text

    from fslab.explain import statements

    screen = console()
    for seen in everything:
        found = statements.statements_of(seen)
        about = Text(f"{seen.workload}, {seen.stack}", style="bold")
        screen.print(about if found else about.append(": no mechanism found", style="not bold"))
        for statement in found:
            _show(statement)
        for why in _withdrawn(seen):
            screen.print(f"  the trace is not used: {why}", markup=False)


def show_briefly(campaign: Campaign, store: Store) -> None:
    """The weightiest statements, at most two lines each; nothing where no mechanism is found."""
    from fslab.report.fit import fitted, lines_of

    # One of each mechanism: the weightiest comes first.
    notable = {each.mechanism: each for each in reversed(_notable(evidence_of(campaign, store)))}
    found = sorted(notable.values(), key=lambda statement: -statement.weight)
    screen = console()
    width = min(screen.width, WIDEST)
    for statement in found[:SHORT]:
        said = f"why: {statement.workload} on {statement.stack}: {statement.text}"
        screen.print("\n".join(lines_of(fitted(said, width), width)), markup=False)


def as_document(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    """All statements as JSON values."""
    from fslab.explain import statements

    return [statement.model_dump(mode="json") for statement in statements.all_statements(everything)]


def _show(statement: Explanation) -> None:
    screen = console()
    screen.print(f"  {statement.text} ({statement.certainty})", markup=False)
    for figure in statement.figures:
        screen.print(f"      {figure}", markup=False, style="dim")
    screen.print(f"      falsified if: {statement.refuted_by}", markup=False, style="dim")


def _notable(everything: Sequence[Evidence]) -> list[Explanation]:
    """One of each mechanism and workload, that with the most weight."""
    from fslab.explain import statements

    best: dict[tuple[str, str], Explanation] = {}
    for each in statements.all_statements(everything):
        key = (each.mechanism, each.workload)
        if each.weight > NOTABLE and (key not in best or best[key].weight < each.weight):
            best[key] = each
    return sorted(best.values(), key=lambda statement: -statement.weight)


def _withdrawn(seen: Evidence) -> tuple[str, ...]:
    if seen.traced is None:
        return ()
    observed = seen.traced.provenance.observed
    return (*observed.get("trace_withdrawn", ()), *observed.get("trace_absent", ()))
