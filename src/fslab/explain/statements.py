"""Everything that can be said of a campaign, or of two of its cells: all mechanisms asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fslab.analysis.groups import groups
from fslab.analysis.labels import stack_lines
from fslab.analysis.soundness import is_sound
from fslab.cell import Cell
from fslab.explain.mechanisms import REGISTRY
from fslab.explain.seen import Seen
from fslab.explain.statement import Statement
from fslab.record import TrialRecord


def seen_of(
    cells: Sequence[Cell], trials: Sequence[TrialRecord], traced: Sequence[TrialRecord] = ()
) -> list[Seen]:
    """Every cell with a trial, in the order of the plan; of trials that are not sound nothing is used."""
    specs = {cell.stack_id: cell.stack for cell in cells}
    names = dict(zip(specs, (" ".join(lines) for lines in stack_lines([*specs.values()])), strict=True))
    newest = {record.cell.id: record for record in traced if record.error is None}
    return [
        Seen(
            cell=cell, workload=group.label, stack=names[stack], traced=newest.get(cell.id),
            trials=[trial for trial in group.trials[stack] if is_sound(trial)],
        )
        for group in groups(cells, trials)
        for stack, cell in group.cells.items()
        if group.trials[stack]
    ]  # fmt: skip


def said(seen: Seen) -> list[Statement]:
    """What the evidence of one cell says, the weightiest first."""
    found = [each for _, mechanism in REGISTRY if mechanism.applies(seen) for each in mechanism.state(seen)]
    return sorted(found, key=lambda statement: -statement.weight)


def all_said(everything: Sequence[Seen]) -> Iterator[Statement]:
    """Of each cell in turn."""
    for seen in everything:
        yield from said(seen)
