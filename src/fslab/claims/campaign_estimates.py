"""Estimates quotients of figures, and figures, by the trials of one campaign. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

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
from fslab.claims.parts import CellFigure
from fslab.claims.trials import Trials
from fslab.stats import Reason

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
            return self._median(over, coverage, looked)
        found = self._compare(over, under, coverage, prior, looked)
        # The denominator is not an independent sample here, so an interval from all pairs would be invalid.
        unpaired = found.method in UNPAIRED
        return dataclasses.replace(found, interval=None, reason=Reason.TOO_FEW_SAMPLES) if unpaired else found

    def _compare(
        self,
        a: Mapping[int, float],
        b: Mapping[int, float],
        coverage: float,
        prior: NoisePrior | None,
        looked: int,
    ) -> Estimate:
        """Compare in the blocks that both have. ``looked``: the blocks that they took part in.

        This is the number of blocks of the look: the cells of a comparison may be left out of some blocks, and a failed
        trial must not make one look use the level of the one before again.
        """
        if self._is_early(looked):
            return self._early(min(len(a), len(b)), coverage)
        question = Question(over=a, under=b, prior=prior, blocks=looked or None)
        return estimate(question, looks=self.looks, coverage=coverage)

    def _median(self, values: Values, coverage: float, looked: int) -> Estimate:
        """Estimate a figure, some of whose values are 0. ``looked``: see :meth:`_compare`."""
        if self._is_early(looked):
            return self._early(len(values), coverage)
        return estimate_figure(values, looks=self.looks, coverage=coverage, blocks=looked)

    def _is_early(self, looked: int) -> bool:
        """Return whether an interim analysis is before the blocks of the first look.

        Cells that begin later than the campaign have fewer blocks than others at its interim analyses. Both looks would
        spend the error of the first one. A report of a campaign that ended early takes the place of the first look.
        """
        return self.interim and self.looks is not None and looked < self.looks.at(0)

    def _early(self, size: int, coverage: float) -> Estimate:
        return without(
            size, Reason.TOO_FEW_SAMPLES, self.looks.at(0) if self.looks else PAIRS_LEAST, coverage
        )


def _product(
    values: Sequence[Mapping[int, float]], powers: Sequence[float], blocks: Sequence[int], way: int
) -> dict[int, float]:
    """Return by block the product of the figures in the numerator (``way`` 1) or in the denominator (−1)."""
    chosen = [(each, abs(power)) for each, power in zip(values, powers, strict=True) if power * way > 0]
    return {block: prod(each[block] ** power for each, power in chosen) for block in blocks}
