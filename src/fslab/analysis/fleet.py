"""One study on several machines: ratios of stacks within each machine, then over machines. Pure.

Figures of different machines are never combined; only the ratios of two stacks within each machine are. ``stats``
computes the statistics; this module decides what is compared.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from statistics import fmean
from typing import Any

from fslab.analysis import labels
from fslab.analysis.campaign_comparison import figures_by_workload, metrics_for, work_of
from fslab.analysis.fleet_machines import Machine, Measured, by_machine, distinct_cells, identity
from fslab.analysis.table_rows import comparable
from fslab.analysis.workload_groups import MetricsOf, headline_metrics
from fslab.answers.across_machines import MACHINES_LEAST, OverMachines, over_machines, within_machine
from fslab.answers.ratio import Question, answer, false_discoveries
from fslab.cell import Cell, Frozen, by_workload
from fslab.machine import differences, facts
from fslab.stats import Interval
from fslab.trial_record import Metric
from fslab.units import Direction, Unit


class FleetVerdict(StrEnum):
    """The verdict on a stack against the reference.

    ``everywhere``: it differs on average, and in the same direction on another such machine (the prediction interval
    excludes 1). ``on_average``: it differs on average, but may differ in the other direction on another machine.
    ``undecided``: the interval of the average contains 1. ``few_machines``: fewer than five machines; they are listed
    and not combined.
    """

    EVERYWHERE = "everywhere"
    ON_AVERAGE = "on_average"
    UNDECIDED = "undecided"
    FEW_MACHINES = "few_machines"


class FleetMachine(Frozen):
    """One machine and its campaigns, oldest first."""

    name: str
    campaigns: tuple[str, ...]
    kernel: str | None
    cpu: str | None


class MachineRatio(Frozen):
    """The ratio on one machine: the stack's figure ÷ the reference's, from the ``n`` blocks that have both."""

    machine: str
    ratio: float
    interval: Interval
    n: int


class FactSplit(Frozen):
    """Facts that divide the machines into two groups with different ratios. This is a coincidence, not a cause.

    ``facts``: each as ``name: value in the first group / in the second``. ``ratios``: geometric mean of each group.
    ``p_value``: after the correction of Benjamini and Hochberg over all divisions in all rows.
    """

    facts: tuple[str, ...]
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    ratios: tuple[float, float]
    p_value: float


class FleetRow(OverMachines):
    """One stack against the reference in one metric. Ratios are the stack's figure ÷ the reference's.

    ``left_out``: machines without three blocks of both, with figures that have no ratio (0), or with figures that are
    too coarse to estimate the noise.
    """

    workload: str
    metric: str
    unit: Unit
    better: Direction
    stack: str
    reference: str
    verdict: FleetVerdict
    machines: tuple[MachineRatio, ...]
    left_out: tuple[str, ...] = ()
    coincides: tuple[FactSplit, ...] = ()


class Fleet(Frozen):
    """A study on several machines. ``needed``: number of machines needed to combine them.

    ``partial``: comparisons for which no machine has enough blocks. ``uncommon``: number of cells that not all machines
    have.
    """

    study: str
    machines: tuple[FleetMachine, ...]
    rows: tuple[FleetRow, ...]
    needed: int
    uncommon: int
    partial: tuple[str, ...] = ()


GROUP_LEAST = 3

MANY = 50  # machines; the time for the exact distribution grows with the cube of their number

ALPHA = 0.05

_Groups = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFacts:
    """One row of a fleet's results: the ratio of each machine, and its facts by name. Facts of devices are texts."""

    ratios: Mapping[str, float]
    machines: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    """A stack and the reference in one workload: their names in the newest campaign, and their ``identities``."""

    stack: str
    reference: str
    workload: str
    identities: tuple[str, str]
    cell: Cell


def fleet(
    campaigns: Measured,
    *,
    against: str | None = None,
    workloads: Collection[str] = (),
    metrics: Collection[str] = (),
    metrics_of: MetricsOf = headline_metrics,
) -> Fleet:
    """Combine the campaigns of one study. ``campaigns`` are sorted, oldest first; the newest one defines the names.

    Pairs of stacks that most machines have come first. ``against``: the stack (name or file system) with which all
    others are compared; default: the first stack of the plan.
    """
    machines = by_machine(campaigns)
    pairs = list(_pairs(distinct_cells(campaigns), against))
    pairs.sort(key=lambda pair: -sum(machine.measured >= {*pair.identities} for machine in machines))
    figures = figures_by_workload(trial for _, trials in campaigns for trial in trials)
    rows, facts, partial = [], [], []
    for pair in pairs:
        if workloads and pair.cell.workload.name not in workloads:
            continue
        known = {machine.name: machine.facts_with(pair.identities) for machine in machines}
        for metric in metrics_for(
            pair.cell.workload, figures.get(work_of(pair.cell), {}), metrics, metrics_of
        ):
            row = _row(pair, metric, machines)
            if row is None:
                partial.append(f"{pair.workload} on {pair.stack}, {metric.name}")
            else:
                rows.append(row)
                facts.append(_facts(row, known))
    rows = [
        row.model_copy(update={"coincides": found}) for row, found in zip(rows, splits(facts), strict=True)
    ]
    counts = Counter(name for machine in machines for name in machine.measured)
    return Fleet(
        study=campaigns[-1][0].study_id,
        machines=tuple(map(_shown, sorted(machines, key=lambda machine: machine.name))),
        rows=tuple(rows),
        needed=MACHINES_LEAST,
        partial=tuple(partial),
        uncommon=sum(count < len(machines) for count in counts.values()),
    )


def _shown(machine: Machine) -> FleetMachine:
    cpu = machine.campaigns[-1].machine.get("cpu")
    return FleetMachine(
        name=machine.name,
        campaigns=tuple(each.id for each in machine.campaigns),
        kernel=", ".join(machine.kernels) or None,
        cpu=None if cpu is None else str(cpu),
    )


def _pairs(cells: Sequence[Cell], against: str | None) -> Iterator[_Pair]:
    """Yield each stack with its reference, by workload, in the order of the plan."""
    alike = by_workload(cells)
    names = labels.workload_labels([group[0] for group in alike])
    for name, group in zip(names, alike, strict=True):
        named = [cell for cell in group if against in {None, cell.stack.name}]
        chosen = named or [cell for cell in group if cell.stack.filesystem == against]
        lines = labels.stack_lines([cell.stack for cell in group])
        stacks = {cell.id: ", ".join(line) for cell, line in zip(group, lines, strict=True)}
        for cell in group:
            # The figures of a guest also depend on its machine: each kind of machine has its own reference.
            reference = next((each for each in chosen if comparable(cell.stack, each.stack)), None)
            if reference is not None and reference is not cell:
                yield _Pair(
                    stack=stacks[cell.id], reference=stacks[reference.id], workload=name, cell=cell,
                    identities=(identity(cell), identity(reference)),
                )  # fmt: skip


def _row(pair: _Pair, metric: Metric, machines: Sequence[Machine]) -> FleetRow | None:
    """Return the row of a pair and a metric; None if no machine has enough blocks of both stacks."""
    values = {
        machine.name: tuple(machine.values(wanted, metric.name) for wanted in pair.identities)
        for machine in machines
    }
    ratios = {name: found for name, both in values.items() if (found := within_machine(*both)) is not None}
    if not ratios:
        return None
    together = over_machines([*ratios.values()])
    return FleetRow(
        **dict(together), workload=pair.workload, metric=metric.name, unit=metric.unit, better=metric.better,
        stack=pair.stack, reference=pair.reference, verdict=_verdict(together),
        machines=tuple(
            MachineRatio(machine=name, ratio=each.ratio, n=each.n, interval=each.interval)
            for name, each in ratios.items()
        ),
        left_out=tuple(name for name in values if name not in ratios),
    )  # fmt: skip


def _facts(row: FleetRow, known: Mapping[str, Mapping[str, Any]]) -> RowFacts:
    """Return what may coincide with the ratios of a row; nothing if they are not combined."""
    ratios = {} if row.average is None else {one.machine: one.ratio for one in row.machines}
    return RowFacts(ratios=ratios, machines={name: known[name] for name in ratios})


def _verdict(together: OverMachines) -> FleetVerdict:
    interval, prediction = together.interval, together.prediction
    if interval is None or prediction is None:
        return FleetVerdict.FEW_MACHINES
    if interval.low <= 1 <= interval.high:
        return FleetVerdict.UNDECIDED
    return FleetVerdict.ON_AVERAGE if prediction.low <= 1 <= prediction.high else FleetVerdict.EVERYWHERE


def splits(rows: Sequence[RowFacts]) -> list[tuple[FactSplit, ...]]:
    """Return for each row the divisions of the machines into two groups whose ratios differ significantly.

    A group has at least three machines. The test is the exact rank-sum test; from 50 machines on, its normal
    approximation. Facts that divide the machines in the same way are one division, because their effects cannot be
    separated. Of all divisions that are returned, over all rows, at most 5 % are expected to differ by chance
    (Benjamini & Hochberg). With seven machines or fewer, none can be significant.
    """
    tried = [
        (number, groups, named)
        for number, row in enumerate(rows)
        for groups, named in _divisions(row.machines).items()
    ]
    adjusted = false_discoveries([_p_value(rows[number].ratios, groups) for number, groups, _ in tried])
    found: list[list[FactSplit]] = [[] for _ in rows]
    for (number, groups, named), p_value in zip(tried, adjusted, strict=True):
        if p_value <= ALPHA:
            means = _means(groups, rows[number].ratios)
            found[number].append(
                FactSplit(facts=tuple(named), machines=groups, p_value=p_value, ratios=means)
            )
    return [tuple(sorted(each, key=lambda split: split.p_value)) for each in found]


def _p_value(ratios: Mapping[str, float], groups: _Groups) -> float:
    one, other = ([ratios[name] for name in group] for group in groups)
    if len(one) + len(other) >= MANY:
        from scipy.stats import mannwhitneyu  # noqa: PLC0415 - 0.5 s, which few commands need

        return float(mannwhitneyu(one, other, method="asymptotic").pvalue)
    question = Question(over=dict(enumerate(one)), under=dict(enumerate(other)), paired=False)
    (found,) = answer([question])
    return 1.0 if found.p_value is None else found.p_value


def _divisions(machines: Mapping[str, Mapping[str, Any]]) -> dict[_Groups, list[str]]:
    """Return the facts by the division that they make: facts with two values, each on at least three machines."""
    found: dict[_Groups, list[str]] = {}
    names = dict.fromkeys(name for known in machines.values() for name in known)
    for name in names:
        fact = facts.CATALOGUE.get(name)
        if name == "hostname" or (fact is None and not name.startswith(differences.DEVICE)):
            continue
        groups: dict[str, list[str]] = {}
        for machine, known in machines.items():
            value = known.get(name) if fact is None else facts.canonical(fact, known)
            groups.setdefault("unknown" if value is None else str(value), []).append(machine)
        if len(groups) == 2 and "unknown" not in groups and min(map(len, groups.values())) >= GROUP_LEAST:
            (first, one), (second, other) = groups.items()
            found.setdefault((tuple(one), tuple(other)), []).append(f"{name}: {first} / {second}")
    return found


def _means(groups: _Groups, ratios: Mapping[str, float]) -> tuple[float, float]:
    one, other = (exp(fmean(log(ratios[name]) for name in group)) for group in groups)
    return one, other
