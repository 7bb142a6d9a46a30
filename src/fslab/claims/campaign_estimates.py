"""The usable values of trials by cell, metric and block, and estimates of figures and their quotients by them. Pure.

Also why a cell has no value, and how much figures change from campaign to campaign.
"""

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, prod

from fslab.analysis.noise_pools import CampaignNoise, measured_alike
from fslab.analysis.usable_trials import is_usable, usable_values
from fslab.analysis.workload_groups import by_cell, headline_metrics, mean_s
from fslab.answers.across_campaigns import CampaignSpread, Weight, fit
from fslab.answers.model import UNPAIRED
from fslab.answers.ratio import (
    PAIRS_LEAST,
    Estimate,
    Looks,
    NoisePrior,
    Question,
    Values,
    estimate,
    estimate_figure,
    unfit,
    without,
)
from fslab.cell import Cell, grouped
from fslab.claims.parts import CellFigure
from fslab.claims.scope import HOST
from fslab.stats import Reason
from fslab.trial_record import Metric, Severity, Status, TrialRecord
from fslab.units import Direction


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


Weights = Sequence[tuple[CellFigure, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignEstimates:
    """The trials of a campaign. ``looks``: of one with interim analyses; None without them. ``interim``: whether this
    is one of these analyses, so that others follow."""

    trials: Trials
    looks: Looks | None = None
    interim: bool = False

    def of_campaign(self, weights: Weights, coverage: float, among: int) -> Estimate:
        """Return the estimate of a product of powers of figures. ``weights``: the powers. ``among``: the number of
        comparisons of which the least certain one decides."""
        values: list[Mapping[int, float]] = [self.trials.values(figure) for figure, _ in weights]
        powers = [weight for _, weight in weights]
        prior = None
        metrics = [*{figure.metric.name for figure, _ in weights}]
        if len(metrics) == 1:
            prior = self.trials.noise.prior(metrics[0], [(figure.cell, weight) for figure, weight in weights])
        # Of the comparisons of a claim, the one with the largest variance decides.
        prior = prior and dataclasses.replace(prior, among=max(prior.among, among))
        looked = self.trials.common_blocks(figure for figure, _ in weights)
        if powers == [1.0, -1.0]:
            return self._compare(values[0], values[1], coverage, prior, looked)
        every = [one for each in values for one in each.values()]
        problem = unfit(every)
        has_zeros = problem is Reason.NOT_POSITIVE and min(every) == 0 and min(powers) > 0
        if problem is not None and not has_zeros:
            return without(len(values[0]), problem, PAIRS_LEAST, coverage)
        blocks = sorted(set.intersection(*(set(each) for each in values)))
        if not blocks:
            return without(0, Reason.NO_SAMPLES, PAIRS_LEAST, coverage)
        over, under = (_product(values, powers, blocks, way) for way in (1, -1))
        if has_zeros:
            early = self._early(looked, len(over), coverage)
            return early or estimate_figure(over, looks=self.looks, coverage=coverage, blocks=looked)
        found = self._compare(over, under, coverage, prior, looked)
        # The denominator is not an independent sample here, so an interval from all pairs would be invalid.
        unpaired = found.method in UNPAIRED
        return dataclasses.replace(found, interval=None, reason=Reason.TOO_FEW_SAMPLES) if unpaired else found

    def _compare(
        self, a: Values, b: Values, coverage: float, prior: NoisePrior | None, looked: int
    ) -> Estimate:
        """Compare in the blocks that both have. ``looked``: the blocks that they took part in.

        This is the number of blocks of the look: the cells of a comparison may be left out of some blocks, and a failed
        trial must not make one look use the level of the one before again.
        """
        question = Question(over=a, under=b, prior=prior, blocks=looked or None)
        early = self._early(looked, min(len(a), len(b)), coverage)
        return early or estimate(question, looks=self.looks, coverage=coverage)

    def _early(self, looked: int, size: int, coverage: float) -> Estimate | None:
        """Return that there are too few blocks if an interim analysis is before those of the first look.

        Cells that begin later than the campaign have fewer blocks than others at its interim analyses. Both looks would
        spend the error of the first one. A report of a campaign that ended early takes the place of the first look.
        """
        if not self.interim or self.looks is None or looked >= self.looks.at(0):
            return None
        return without(size, Reason.TOO_FEW_SAMPLES, self.looks.at(0), coverage)


def _product(
    values: Sequence[Mapping[int, float]], powers: Sequence[float], blocks: Sequence[int], way: int
) -> dict[int, float]:
    """Return by block the product of the figures in the numerator (``way`` 1) or in the denominator (−1)."""
    chosen = [(each, abs(power)) for each, power in zip(values, powers, strict=True) if power * way > 0]
    return {block: prod(each[block] ** power for each, power in chosen) for block in blocks}


def spread_of(campaigns: Sequence[Trials]) -> CampaignSpread | None:
    """Return the spread between campaigns, of the figures that tables show; None if too little is known of it."""
    begun = [each for each in campaigns if any(len(trials) > 1 for trials in each.by_cell.values())]
    cells = {id_: trials[0].cell for campaign in begun for id_, trials in campaign.by_cell.items()}
    workloads = grouped(cells.values(), measured_alike)
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
