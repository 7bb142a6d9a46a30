"""Estimates the noise of a metric from all cells of a campaign that have it. Pure.

A comparison of two cells has few blocks. The other cells of its workload, on the same medium and machine, show how much
such a figure varies (``stats.moderation``). This module does not decide which cells are compared.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from fslab.analysis.groups import Group
from fslab.analysis.usability import is_usable
from fslab.cell import Cell
from fslab.record import TrialRecord
from fslab.stats.noise_prior import NoisePrior, fit_noise

CELLS_OWN = 8  # workloads with fewer cells share one estimate of the noise per machine and medium

_Blocks = dict[int, float]


@dataclass(kw_only=True, slots=True)
class CampaignNoise:
    """The noise of the usable ``trials``. It is computed for each metric when it is first needed."""

    trials: Sequence[TrialRecord]
    _fitted: dict[str, Mapping[str, NoisePrior | None]] = field(default_factory=dict, init=False, repr=False)

    def prior(self, metric: str, weights: Iterable[tuple[Cell, float]]) -> NoisePrior | None:
        """Return the prior, estimated from other cells, for Σ weight · log(metric of the cell) in one block.

        None if too few cells show the noise of one of the cells.
        """
        if metric not in self._fitted:
            self._fitted[metric] = self._fit(metric)
        known = [(self._fitted[metric].get(_workload_of(cell)), weight) for cell, weight in weights]
        found = [prior.times(weight * weight) for prior, weight in known if prior is not None]
        if not found or len(found) < len(known):
            return None
        return NoisePrior(
            variance=sum(prior.variance for prior in found),
            freedom=min(prior.freedom for prior in found),
            most=min(prior.most for prior in found),
        )

    def of_pairs(self, group: Group, metric: str) -> Callable[[str, str], NoisePrior | None]:
        """Return a function that gives the prior of the ratio of two stacks (ids) of a group."""
        cells = group.cells
        return lambda a, b: self.prior(metric, [(cells[a], 1.0), (cells[b], -1.0)])

    def _fit(self, metric: str) -> Mapping[str, NoisePrior | None]:
        """Return the prior by workload and place: that of the workload, or of all small workloads at its place."""
        workloads: dict[str, dict[str, _Blocks]] = defaultdict(lambda: defaultdict(dict))
        places: dict[str, list[str]] = defaultdict(list)
        for trial in self.trials:
            figure = trial.metrics.get(metric)
            value = None if figure is None else figure.value
            if value is not None and value > 0 and is_usable(trial):
                workloads[_workload_of(trial.cell)][trial.cell.id][trial.key.block] = log(value)
        small = [name for name, cells in workloads.items() if len(cells) < CELLS_OWN]
        for name in small:
            places[_place_of(name)].append(name)
        shared = {
            place: fit_noise([_cells(workloads[name]) for name in names]) for place, names in places.items()
        }
        own = {
            name: fit_noise([_cells(cells)]) for name, cells in workloads.items() if len(cells) >= CELLS_OWN
        }
        return {**own, **{name: shared[_place_of(name)] for name in small}}


def _cells(cells: Mapping[str, _Blocks]) -> list[_Blocks]:
    """Return the cells in the order of their ids, which does not depend on measured values."""
    return [cells[cell] for cell in sorted(cells)]


def _workload_of(cell: Cell) -> str:
    """Return the key of a workload at its place (machine and medium). Its cells have similar noise."""
    return f"{cell.stack.machine.type}/{cell.stack.medium.name}/{cell.workload.model_dump_json()}"


def _place_of(workload: str) -> str:
    machine, medium, _ = workload.split("/", 2)
    return f"{machine}/{medium}"
