"""Groups trials by workload: the same workload on each stack, and its figures by block. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean, median

from fslab.analysis import labels
from fslab.analysis.usable_trials import usable_values
from fslab.cell import Cell, StackSpec, WorkloadSpec, by_workload, grouped
from fslab.trial_record import Metric, TrialRecord
from fslab.units import Direction
from fslab.workloads import parsed_if_known

MetricsOf = Callable[[WorkloadSpec], tuple[Metric, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The usable values of one metric on one stack, by block. ``block_s``: mean duration of its trials in seconds."""

    stack: str
    spec: StackSpec
    values: Mapping[int, float]
    block_s: float | None = None

    @property
    def median(self) -> float:
        """The median. Raises StatisticsError if there is no value."""
        return median(self.values.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Cells that differ only in their stack, and their trials; both by stack id.

    Stacks that the plan does not combine with the workload are absent. Trials are in the order of their blocks.
    """

    label: str
    workload: WorkloadSpec
    cells: dict[str, Cell]
    trials: dict[str, list[TrialRecord]]
    _values: dict[tuple[str, str], dict[int, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def samples(self, metric: Metric) -> list[Sample]:
        return [
            Sample(
                stack=stack, spec=cell.stack, values=self.by_block(metric.name, stack),
                block_s=mean_s(self.trials.get(stack, ())),
            )
            for stack, cell in self.cells.items()
        ]  # fmt: skip

    def by_block(self, metric: str, stack: str) -> Mapping[int, float]:
        """Return the values of a metric in the usable trials on a stack, by block. Unknown values are absent."""
        if (metric, stack) not in self._values:
            self._values[metric, stack] = usable_values(self.trials.get(stack, []), metric)
        return self._values[metric, stack]


def mean_s(trials: Sequence[TrialRecord]) -> float | None:
    """Return the mean duration of trials in seconds; None without trials."""
    return fmean(trial.duration_s for trial in trials) if trials else None


def by_cell(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    return grouped(trials, lambda trial: trial.cell.id)


def groups(cells: Sequence[Cell], trials: Sequence[TrialRecord]) -> Iterator[Group]:
    """Yield one group per workload, in the order of the plan."""
    own = by_cell(sorted(trials, key=lambda trial: trial.key.block))
    alike = by_workload(cells)
    names = labels.workload_labels([group[0] for group in alike])
    for label, group in zip(names, alike, strict=True):
        yield Group(
            label=label,
            workload=group[0].workload,
            cells={cell.stack_id: cell for cell in group},
            trials={cell.stack_id: own.get(cell.id, []) for cell in group},
        )


def headline_metrics(workload: WorkloadSpec) -> tuple[Metric, ...]:
    """Return the metrics that a table shows for a workload; empty if this version of fslab does not know it."""
    known = parsed_if_known(workload)
    if known is None:
        return ()
    declared = {metric.name: metric for metric in known.metrics()}
    return tuple(declared[name] for name in known.headline())


def all_metrics(workload: WorkloadSpec) -> tuple[Metric, ...]:
    """Return every metric of a workload, those of the headline first; empty if this version does not know it."""
    known = parsed_if_known(workload)
    return known.metrics() if known else ()


def metrics_of(group: Group, known: MetricsOf = headline_metrics) -> tuple[Metric, ...]:
    """Return the metrics to show for a group; for a workload of another version of fslab, the first stored figure."""
    stored = (
        Metric(name=name, unit=value.unit, better=Direction.NEITHER)  # of unknown meaning
        for trials in group.trials.values()
        for trial in trials
        for name, value in trial.metrics.items()
    )
    return known(group.workload) or tuple(islice(stored, 1))
