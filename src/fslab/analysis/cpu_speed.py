"""Corrects figures for the speed of the CPU during their runs, where it explains part of their noise. Pure.

``campaign.run_speed`` records the speed. Only comparisons use corrected figures: tables, pages and exports have the
measured ones. See docs/methods.md. Must not import numpy at the top: trials in guests import this module.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from math import exp, isfinite, log
from statistics import fmean

from fslab.analysis.usability import usable_value
from fslab.cell import Cell, by_workload
from fslab.record import TrialRecord
from fslab.workloads import parsed_if_known

# In Provenance.observed: the speed in equal parts of the run, in reads per second of CPU time; 0: unknown.
OBSERVED = "cpu_speed"
RATE_LEAST, RATE_MOST = 1.0, 1e12  # no CPU is slower or faster
KNOWN_LEAST = 0.8  # share of the parts of a window whose speed must be known
RUN = "run"


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectedFigure:
    """The values of a cell's metric by block at the same CPU speed.

    Figures with the same ``group`` share workload, medium and machine, and a slope.
    """

    values: Mapping[int, float]
    group: int


@dataclass(kw_only=True, slots=True)
class SpeedCorrection:
    """The correction of the figures of the usable ``trials``. Computed for each metric when it is first needed."""

    trials: Sequence[TrialRecord]
    _found: dict[str, Mapping[str, CorrectedFigure]] = field(default_factory=dict, init=False, repr=False)

    def corrected(self, metric: str, cell: Cell) -> CorrectedFigure | None:
        """Return the cell's values as they would be if the CPU had been as fast in all trials of its group.

        None unless the metric follows the speed on the cell's layout, and the speed of each of its trials is known.
        """
        if metric not in self._found:
            self._found[metric] = self._of_metric(metric)
        return self._found[metric].get(cell.id)

    def _of_metric(self, metric: str) -> Mapping[str, CorrectedFigure]:
        """Return the corrected values by cell id."""
        cells: dict[str, Cell] = {}
        points: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
        unknown: set[str] = set()
        for trial in self.trials:
            value = usable_value(trial, metric)
            if value is None:
                continue
            rates = _speeds(trial, metric)
            if value <= 0 or not rates:
                unknown.add(trial.cell.id)
                continue
            cells[trial.cell.id] = trial.cell
            points[trial.cell.id][trial.key.block] = (-log(fmean(rates)), log(value))
        if not points:
            return {}
        from fslab.stats.covariate import adjusted  # noqa: PLC0415 - numpy and scipy, for campaigns in guests only

        found: dict[str, CorrectedFigure] = {}
        group = count()
        for workloads in _alike(cells.values()):
            own = [[points[cell.id] for cell in alike] for alike in workloads]
            reference = fmean(
                x for of_workload in own for of_cell in of_workload for x, _ in of_cell.values()
            )
            kinds = [[_kind(cell) for cell in alike] for alike in workloads]
            for alike, logs in zip(workloads, adjusted(own, reference, kinds), strict=True):
                number = next(group)
                for cell, values in zip(alike, logs or [], strict=logs is not None):
                    if values and cell.id not in unknown:
                        corrected = {block: exp(value) for block, value in values.items()}
                        found[cell.id] = CorrectedFigure(values=corrected, group=number)
        return found


def _alike(cells: Iterable[Cell]) -> Iterable[list[list[Cell]]]:
    """Return the workloads of each tool on one medium and machine; of each workload the cells that are compared."""
    found: dict[tuple[str, ...], list[list[Cell]]] = defaultdict(list)
    for group in by_workload(cells):
        places: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
        for cell in group:
            stack, tool = cell.stack, cell.workload.tool
            places[tool, stack.machine.model_dump_json(), stack.medium.model_dump_json()].append(cell)
        for place, alike in places.items():
            found[place].append(alike)
    return found.values()


def _kind(cell: Cell) -> str:
    """Return what may decide how much a figure follows the CPU: what the device is made of, not the file system."""
    return f"{cell.stack.layout} {sorted(cell.stack.layout_options.items())}"


def _speeds(trial: TrialRecord, metric: str) -> list[float]:
    """Return the speeds in the parts of the run in which the metric was measured; empty if too few are known.

    The parts are equally long, so that the mean of the speeds is the work that the CPU could do.
    """
    rates = _rates(trial.provenance.observed.get(OBSERVED, ()))
    begin, end = _window(trial, metric)
    first = min(int(begin * len(rates)), len(rates) - 1)
    window = rates[first : max(min(round(end * len(rates)), len(rates)), first + 1)] if rates else ()
    known = [rate for rate in window if rate]
    return known if len(known) >= KNOWN_LEAST * len(window) else []


@lru_cache(maxsize=30_000)  # each trial is asked for each of its metrics, and again at each look
def _rates(texts: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(map(_rate, texts))


def _rate(text: str) -> float:
    """Return a stored rate; 0 if it is none. Stores can be edited, and imported."""
    try:
        rate = float(text)
    except ValueError:
        return 0.0
    return rate if RATE_LEAST <= rate <= RATE_MOST else 0.0


def _window(trial: TrialRecord, metric: str) -> tuple[float, float]:
    """Return when in the run the metric was measured, as shares of the run."""
    run_s = sum(each.duration_s or 0.0 for each in trial.provenance.commands if each.stage == RUN)
    workload = parsed_if_known(trial.cell.workload)
    if workload is None or run_s <= 0:
        return (0.0, 1.0)
    values = {name: value.value for name, value in trial.metrics.items()}
    begin_s, end_s = workload.windows(values, run_s).get(metric, (0.0, run_s))
    if not (isfinite(begin_s) and isfinite(end_s)):
        return (0.0, 1.0)
    return (min(max(begin_s / run_s, 0.0), 1.0), min(max(end_s / run_s, 0.0), 1.0))
