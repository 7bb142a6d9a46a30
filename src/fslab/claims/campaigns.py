"""How much the figures of a study change from campaign to campaign on one machine. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log

from fslab.analysis.groups import headline_metrics
from fslab.analysis.noise import measured_alike
from fslab.answers.campaigns import CampaignCells, CampaignSpread, fit
from fslab.cell import Cell
from fslab.claims.parts import CellFigure
from fslab.claims.trials import Trials
from fslab.record import Metric


def spread_of(campaigns: Sequence[Trials]) -> CampaignSpread | None:
    """Return the spread between campaigns, of the figures that tables show; None if too little is known of it."""
    if len(campaigns) < 2:
        return None
    cells = {id_: trials[0].cell for campaign in campaigns for id_, trials in campaign.by_cell.items()}
    workloads: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells.values():
        workloads[measured_alike(cell)].append(cell)
    return fit(
        [
            [_cells_of(campaign, own, metric) for campaign in campaigns]
            for metric in headline_metrics(own[0].workload)
        ]
        for own in workloads.values()
    )


def _cells_of(trials: Trials, cells: Iterable[Cell], metric: Metric) -> CampaignCells:
    found = (trials.values(CellFigure(cell=cell, metric=metric)) for cell in cells)
    return [{block: log(value) for block, value in each.items() if value > 0} for each in found]


def weights_by_workload(weights: Iterable[tuple[CellFigure, float]]) -> list[list[float]]:
    """Return the weights of the cells of each workload: what shifts all of them cancels where these add up to 0."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for figure, weight in weights:
        found[measured_alike(figure.cell)].append(weight)
    return [*found.values()]
