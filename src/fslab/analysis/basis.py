"""What comparisons compare: figures as measured or, if that is known of all of them, at the same CPU speed. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.cpu_speed import SpeedCorrection
from fslab.analysis.groups import Group
from fslab.analysis.noise import CampaignNoise
from fslab.cell import Cell
from fslab.record import TrialRecord
from fslab.stats.noise_prior import NoisePrior


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """The basis of one comparison.

    ``values``: the values of its figures by block at the same CPU speed; None: those measured. ``prior``: the noise of
    these values as other cells show it.
    """

    values: Sequence[Mapping[int, float]] | None = None
    prior: NoisePrior | None = None


@dataclass(kw_only=True, slots=True)
class ComparisonBasis:
    """The bases of all comparisons of the usable ``trials``."""

    trials: Sequence[TrialRecord]
    _correction: SpeedCorrection = field(init=False, repr=False)
    _measured: CampaignNoise = field(init=False, repr=False)
    _corrected: CampaignNoise = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._correction = SpeedCorrection(trials=self.trials)
        self._measured = CampaignNoise(trials=self.trials)
        self._corrected = CampaignNoise(trials=self.trials, correction=self._correction)

    def of(self, weights: Sequence[tuple[str, Cell, float]]) -> Basis:
        """Return the basis of a comparison of figures: Σ weight · log(metric of the cell) in one block.

        The measured values are used if one figure cannot be corrected, or if the figures do not share a slope: what
        slows a whole block cancels in the quotient of all measured or of all corrected values, but not of both. Also if
        there are too few corrected cells to show their noise. A single figure is no comparison.
        """
        metrics = {metric for metric, _, _ in weights}
        if len(weights) == 1 or len(metrics) > 1:
            return Basis()
        (metric,) = metrics
        cells = [(cell, weight) for _, cell, weight in weights]
        measured = self._measured.prior(metric, cells)
        found = [self._correction.corrected(metric, cell) for cell, _ in cells]
        known = [each for each in found if each is not None]
        if len(known) == len(found) and len({each.group for each in known}) == 1:
            prior = self._corrected.prior(metric, cells)
            if prior is not None or measured is None:
                return Basis(values=[each.values for each in known], prior=prior)
        return Basis(prior=measured)

    def of_stacks(self, group: Group, metric: str) -> Callable[[Sequence[str]], Basis]:
        """Return a function that gives the basis of a comparison of two stacks (ids) of a group, or of more."""

        def found(stacks: Sequence[str]) -> Basis:
            first = [1.0] + [-1.0] * (len(stacks) - 1)
            return self.of(
                [(metric, group.cells[stack], sign) for stack, sign in zip(stacks, first, strict=True)]
            )

        return found

    def corrected(self, metric: str, cell: Cell) -> Mapping[int, float] | None:
        """Return the cell's values by block at the same CPU speed; None if they cannot be corrected."""
        found = self._correction.corrected(metric, cell)
        return None if found is None else found.values
