"""Estimates the noise of a metric from all cells of a campaign that have it. Pure.

A comparison of two cells has few blocks. The other cells of its workload, on the same medium and machine, show how much
such a figure varies (``stats.moderated_variance``). This module does not decide which cells are compared.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

from fslab.analysis.usable_trials import usable_value
from fslab.analysis.workload_groups import Group, headline_metrics
from fslab.answers.ratio import CommonCorrelation, NoisePrior, fit_correlation, fit_noise, of_two_campaigns
from fslab.cell import Cell
from fslab.trial_record import TrialRecord

# A file system in a workload with so many cells has an estimate of its own; else the workload with so many; the smaller
# workloads share one per machine and medium.
CELLS_OWN = 8

_BALANCED = 1e-9  # weights such as 1/7 do not add up to exactly 0
PLACE, WORKLOAD = 2, 3  # lengths of the parts of a key that name machine and medium, and the workload

_Blocks = dict[int, float]
_Key = tuple[str, ...]


@dataclass(kw_only=True, slots=True)
class CampaignNoise:
    """The noise of the usable ``trials``. It is computed for each metric when it is first needed."""

    trials: Sequence[TrialRecord]
    _fitted: dict[str, Mapping[_Key, NoisePrior | None]] = field(default_factory=dict, init=False, repr=False)
    _correlated: dict[str | None, CommonCorrelation | None] = field(
        default_factory=dict, init=False, repr=False
    )

    def prior(self, metric: str, weights: Iterable[tuple[Cell, float]]) -> NoisePrior | None:
        """Return the prior, estimated from other cells, for Σ weight · log(metric of the cell) in one block.

        None if too few cells show the noise of one of the cells, and unless the weights add up to 0 in each workload,
        medium and machine: other cells show the noise of figures of one block, but not how much a workload varies from
        block to block.
        """
        weights = list(weights)
        sums: dict[_Key, float] = defaultdict(float)
        for cell, weight in weights:
            sums[measured_alike(cell)] += weight
        if any(abs(total) > _BALANCED for total in sums.values()):
            return None
        if metric not in self._fitted:
            self._fitted[metric] = self._fit(metric)
        known = [(self._fitted[metric].get(_key(cell)), weight) for cell, weight in weights]
        found = [prior.times(weight * weight) for prior, weight in known if prior is not None]
        prior = NoisePrior.of_sum(found) if len(found) == len(known) else None
        own = self._correlation(metric)
        return prior and replace(prior, alone=(own, own))

    def of_stacks(self, group: Group, metric: str) -> Callable[[str, str], NoisePrior | None]:
        """Return a function that gives the prior of a comparison of two stacks (ids) of a group."""
        return lambda one, other: self.prior(metric, [(group.cells[one], 1.0), (group.cells[other], -1.0)])

    def between(self, other: "CampaignNoise", metric: str) -> NoisePrior:
        """Return the prior of a comparison with a trial of another campaign: how much trials resemble the ones
        before."""
        return of_two_campaigns(self._correlation(metric), other._correlation(metric))

    def _correlation(self, metric: str | None) -> CommonCorrelation | None:
        """Return the autocorrelation of a metric; where too few cells have it, that of the first figure of each."""
        if metric not in self._correlated:
            found = fit_correlation([*self._values(metric)[1].values()])
            enough = metric is None or (found is not None and found.is_known)
            self._correlated[metric] = found if enough else self._correlation(None)
        return self._correlated[metric]

    def _fit(self, metric: str) -> Mapping[_Key, NoisePrior | None]:
        """Return the prior of each cell's kind, estimated from the smallest group of its cells that is large enough."""
        cells, values = self._values(metric)
        kinds: dict[_Key, list[_Blocks]] = defaultdict(list)
        for cell in sorted(cells):  # ids: an order that depends on nothing that was measured
            kinds[_key(cells[cell])].append(values[cell])
        workloads: dict[_Key, list[_Blocks]] = defaultdict(list)
        for key, own in kinds.items():
            workloads[key[:WORKLOAD]] += own
        small: dict[_Key, list[list[_Blocks]]] = defaultdict(list)
        for key, own in workloads.items():
            if len(own) < CELLS_OWN:
                small[key[:PLACE]].append(own)
        of_places = {key: fit_noise(those) for key, those in small.items()}
        of_workloads = {
            key: fit_noise([own]) if len(own) >= CELLS_OWN else of_places[key[:PLACE]]
            for key, own in workloads.items()
        }
        return {
            key: (fit_noise([own]) if len(own) >= CELLS_OWN else None) or of_workloads[key[:WORKLOAD]]
            for key, own in kinds.items()
        }

    def _values(self, metric: str | None) -> tuple[dict[str, Cell], dict[str, _Blocks]]:
        """Return cells, and the logarithms of their values by block, by the cells' ids. None: of the first figure."""
        cells: dict[str, Cell] = {}
        values: dict[str, dict[int, float]] = defaultdict(dict)
        names: dict[str, str] = {}
        for trial in self.trials:
            if metric is None and trial.cell.id not in names:
                names[trial.cell.id] = _first(trial)
            value = usable_value(trial, names[trial.cell.id] if metric is None else metric)
            if value is not None and value > 0:
                cells[trial.cell.id] = trial.cell
                values[trial.cell.id][trial.key.block] = value
        logs = {key: {block: log(value) for block, value in own.items()} for key, own in values.items()}
        return cells, logs


def _first(trial: TrialRecord) -> str:
    """Return the first figure of a trial's workload in a table."""
    return next((each.name for each in headline_metrics(trial.cell.workload)), next(iter(trial.metrics), ""))


def measured_alike(cell: Cell) -> _Key:
    """Return machine, medium and workload: what slows a whole block cancels between cells that have them in common."""
    return (cell.stack.machine.type, cell.stack.medium.name, cell.workload.model_dump_json())


def _key(cell: Cell) -> _Key:
    """Return what cells have in common that vary alike: also the file system."""
    return (*measured_alike(cell), cell.stack.filesystem or "")
