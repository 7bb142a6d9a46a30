"""What comparisons compare: figures as measured or, where they can be corrected, at the same CPU speed. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.cpu_speed import SpeedCorrection
from fslab.analysis.groups import Group
from fslab.analysis.noise import CampaignNoise, measured_alike
from fslab.cell import Cell
from fslab.record import TrialRecord
from fslab.stats.noise_prior import NoisePrior

_BALANCED = 1e-9  # weights such as 1/7 do not add up to exactly 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """The basis of one comparison.

    ``values``: for each figure its values by block at the same CPU speed, or None for those measured; empty if all are
    those measured. ``prior``: the noise of these values as other cells show it.
    """

    values: Sequence[Mapping[int, float] | None] = ()
    prior: NoisePrior | None = None

    def corrected(self) -> list[Mapping[int, float]] | None:
        """Return the values of all figures at the same CPU speed; None if some are those measured."""
        known = [each for each in self.values if each is not None]
        return known if known and len(known) == len(self.values) else None


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

        Figures of one metric, workload, medium and machine use corrected values if their weights add up to 0: then all
        that slows a whole block cancels among them. The measured values are used where not all of these figures can be
        corrected, or where too few corrected cells show their noise. A single figure is no comparison.
        """
        found = [self._correction.corrected(metric, cell) for metric, cell, _ in weights]
        sums: dict[tuple[str, int], float] = defaultdict(float)
        for (metric, _, weight), figure in zip(weights, found, strict=True):
            if figure is not None:
                sums[metric, figure.group] += weight
        values = [
            figure.values if figure is not None and abs(sums[metric, figure.group]) < _BALANCED else None
            for (metric, _, _), figure in zip(weights, found, strict=True)
        ]
        measured = self._prior(weights, [None] * len(weights))
        if all(own is None for own in values):
            return Basis(prior=measured)
        prior = self._prior(weights, values)
        return (
            Basis(prior=measured)
            if prior is None and measured is not None
            else Basis(values=values, prior=prior)
        )

    def of_stacks(self, group: Group, metric: str) -> Callable[[Sequence[str]], Basis]:
        """Return a function that gives the basis of a comparison of two stacks (ids) of a group, or of more."""

        def found(stacks: Sequence[str]) -> Basis:
            against = [-1.0] * (len(stacks) - 1)
            signs = [-sum(against), *against]
            return self.of(
                [(metric, group.cells[stack], sign) for stack, sign in zip(stacks, signs, strict=True)]
            )

        return found

    def corrected(self, metric: str, cell: Cell) -> Mapping[int, float] | None:
        """Return the cell's values by block at the same CPU speed; None if they cannot be corrected."""
        found = self._correction.corrected(metric, cell)
        return None if found is None else found.values

    def _prior(
        self, weights: Sequence[tuple[str, Cell, float]], values: Sequence[Mapping[int, float] | None]
    ) -> NoisePrior | None:
        """Return the prior of a comparison with these values.

        None for different metrics, and unless the weights add up to 0 in each workload, medium and machine: other
        cells show the noise of figures of one block, but not how much a workload varies from block to block.
        """
        metrics = {metric for metric, _, _ in weights}
        sums: dict[object, float] = defaultdict(float)
        for _, cell, weight in weights:
            sums[measured_alike(cell)] += weight
        if len(metrics) > 1 or any(abs(total) > _BALANCED for total in sums.values()):
            return None
        (metric,) = metrics
        found: list[NoisePrior] = []
        for noise, corrected in ((self._measured, False), (self._corrected, True)):
            cells = [
                (cell, weight)
                for (_, cell, weight), own in zip(weights, values, strict=True)
                if (own is not None) is corrected
            ]
            prior = noise.prior(metric, cells) if cells else None
            if prior is not None:
                found.append(prior)
            elif cells:
                return None
        return NoisePrior.of_sum(found)
