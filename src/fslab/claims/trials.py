"""The usable values of trials by cell, metric and block, and the reasons why a cell has none. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.usable_trials import is_usable, usable_values
from fslab.analysis.workload_groups import by_cell, mean_s
from fslab.claims.parts import CellFigure
from fslab.claims.scope import HOST
from fslab.trial_record import Severity, Status, TrialRecord


@dataclass(kw_only=True, slots=True)
class Trials:
    """The trials of a campaign. ``impossible``: the reason why a cell cannot be measured here, by cell id."""

    records: Sequence[TrialRecord]
    impossible: Mapping[str, str] = field(default_factory=dict)
    by_cell: dict[str, list[TrialRecord]] = field(init=False)
    noise: CampaignNoise = field(init=False)

    def __post_init__(self) -> None:
        self.noise = CampaignNoise(trials=self.records)
        self.by_cell = by_cell(self.records)

    def values(self, figure: CellFigure) -> dict[int, float]:
        """Return the known values of a figure in usable trials, by block."""
        return usable_values(self.by_cell.get(figure.cell.id, []), figure.metric.name)

    def common_blocks(self, figures: Iterable[CellFigure]) -> int:
        """Return the number of blocks in which the cells of all figures have a trial, usable or not."""
        blocks = [{one.key.block for one in self.by_cell.get(each.cell.id, [])} for each in figures]
        return len(set[int].intersection(*blocks)) if blocks else 0

    def cost_s(self, cell: str) -> float:
        """Return the mean duration of a cell's trials, or of all trials if the cell has none; 0 without trials."""
        return mean_s(self.by_cell.get(cell) or self.records) or 0.0

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of usable trials; those of guests with the type of machine: ``6.1.176 (uml)``."""
        found: dict[str, None] = {}
        for record in self.records:
            kernel, machine = record.provenance.machine.get("kernel"), record.cell.stack.machine.type
            if kernel and is_usable(record):
                found[f"{kernel}" if machine == HOST else f"{kernel} ({machine})"] = None
        return tuple(found)

    def why_none(self, figure: CellFigure) -> str | None:
        """Return why a figure has no values; None if it has values."""
        if self.values(figure):
            return None
        name, stack = figure.cell.workload.name, figure.cell.stack.name
        records = self.by_cell.get(figure.cell.id, [])
        refused = [one.error or "not supported" for one in records if one.status is Status.UNSUPPORTED]
        reason = self.impossible.get(figure.cell.id) or (refused[0].splitlines()[0] if refused else None)
        if reason:
            return reason
        if not records:
            return f"{name} on {stack} is not measured"
        if any(is_usable(record) for record in records):
            return f"{figure.metric.name} of {name} on {stack} is unknown"
        return f"{name} on {stack} has no usable trial{_reason(records)}"


def _reason(records: Sequence[TrialRecord]) -> str:
    """Return the first reason why a trial failed or is invalid, as the end of a sentence."""
    failed = [record.error.splitlines()[0] for record in records if record.error]
    invalid = [
        one.message for record in records for one in record.validity if one.severity is Severity.INVALID
    ]
    return f": {[*failed, *invalid][0]}" if failed or invalid else ""
