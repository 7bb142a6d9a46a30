"""How much the figures of a study change from campaign to campaign on one machine. Pure."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import log

from fslab.analysis.noise_pools import measured_alike
from fslab.analysis.workload_groups import headline_metrics
from fslab.answers.across_campaigns import CampaignSpread, Weight, fit
from fslab.cell import Cell
from fslab.claims.parts import CellFigure
from fslab.claims.trials import Trials
from fslab.trial_record import Metric
from fslab.units import Direction


def spread_of(campaigns: Sequence[Trials]) -> CampaignSpread | None:
    """Return the spread between campaigns, of the figures that tables show; None if too little is known of it."""
    begun = [each for each in campaigns if any(len(trials) > 1 for trials in each.by_cell.values())]
    cells = {id_: trials[0].cell for campaign in begun for id_, trials in campaign.by_cell.items()}
    workloads: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells.values():
        workloads[measured_alike(cell)].append(cell)
    return fit(
        [
            [_cells_of(campaign, own, metric) for campaign in begun]
            for metric in headline_metrics(own[0].workload)
        ]
        for own in workloads.values()
    )


def _cells_of(trials: Trials, cells: Iterable[Cell], metric: Metric) -> dict[Hashable, dict[int, float]]:
    """Return logarithms, with the sign with which more is better: what slows all cells lowers them."""
    sign = -1 if metric.better is Direction.LOWER else 1
    values = {_stack(cell): trials.values(CellFigure(cell=cell, metric=metric)) for cell in cells}
    return {
        stack: {block: sign * log(value) for block, value in each.items() if value > 0}
        for stack, each in values.items()
    }


def _stack(cell: Cell) -> Hashable:
    return cell.stack_id, cell.cache


def weights_by_cell(weights: Iterable[tuple[CellFigure, float]]) -> list[Weight]:
    """Return the weights with workload and stack: what changes all cells of either cancels where they add up to 0."""
    return [(measured_alike(figure.cell), _stack(figure.cell), weight) for figure, weight in weights]
