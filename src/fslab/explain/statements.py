"""Collects the statements of all mechanisms about a campaign, or about two of its cells. Pure."""

from collections.abc import Iterator, Sequence

from fslab.analysis.labels import stack_names
from fslab.analysis.usable_trials import is_usable
from fslab.analysis.workload_groups import groups
from fslab.cell import Cell
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY
from fslab.explain.statement_model import Explanation
from fslab.trial_record import TrialRecord


def evidence_of(
    cells: Sequence[Cell], trials: Sequence[TrialRecord], traced: Sequence[TrialRecord] = ()
) -> list[Evidence]:
    """Return the evidence on each cell with a trial, in the order of the plan. Only usable trials are included."""
    names = stack_names(cells)
    newest = {record.cell.id: record for record in traced if record.error is None}
    return [
        Evidence(
            cell=cell, workload=group.label, stack=names[stack], traced=newest.get(cell.id),
            trials=[trial for trial in group.trials[stack] if is_usable(trial)],
        )
        for group in groups(cells, trials)
        for stack, cell in group.cells.items()
        if group.trials[stack]
    ]  # fmt: skip


def statements_of(evidence: Evidence) -> list[Explanation]:
    """Return the statements about one cell. The one with the largest weight comes first."""
    found = [
        each for _, mechanism in REGISTRY if mechanism.present(evidence) for each in mechanism.state(evidence)
    ]
    return sorted(found, key=lambda statement: -statement.weight)


def all_statements(everything: Sequence[Evidence]) -> Iterator[Explanation]:
    for evidence in everything:
        yield from statements_of(evidence)
