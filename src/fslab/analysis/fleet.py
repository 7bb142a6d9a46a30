"""One study on several machines: ratios of stacks within each machine, then over machines. Pure.

Figures of unlike machines are never put together: only what two stacks are to each other on one machine is. The
statistics are ``stats``'s; this decides what is compared with what.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, expm1, log, sqrt
from statistics import fmean, stdev
from typing import Any

from fslab.analysis import labels
from fslab.analysis.campaign_comparison import figures_of, metrics_for
from fslab.analysis.campaign_comparison_lines import values_by_block
from fslab.analysis.comparison_model import Span
from fslab.analysis.fleet_facts import splits
from fslab.analysis.fleet_model import Fleet, FleetMachine, FleetRow, FleetVerdict, MachineRatio
from fslab.analysis.groups import MetricsOf, headline_metrics
from fslab.analysis.matching import PLACES
from fslab.analysis.measured import MeasuredCampaign
from fslab.analysis.pairs import comparable
from fslab.cell import Cell
from fslab.record import Metric, TrialRecord
from fslab.stats.interval import Interval
from fslab.stats.paired import PAIRS_LEAST, compare_blocks
from fslab.stats.random_effects import MACHINES_LEAST, Combined, Estimate, combine
from fslab.units import Direction

Measured = Sequence[tuple[MeasuredCampaign, Sequence[TrialRecord]]]
# Two machines with one name are told apart by what no update changes.
_HARDWARE = ("product", "cpu", "cpus", "memory_bytes")
_STEP = 1_000_000  # apart from each other: the blocks of two campaigns of one machine


@dataclass(frozen=True, kw_only=True, slots=True)
class _Machine:
    """``trials``: of each campaign, oldest first, by what was measured (:func:`_identity`)."""

    name: str
    campaigns: list[MeasuredCampaign] = field(default_factory=list)
    trials: list[dict[str, list[TrialRecord]]] = field(default_factory=list)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Those of its last campaign."""
        return self.campaigns[-1].machine

    def values(self, identity: str, metric: str) -> dict[int, float]:
        """By block, over all campaigns."""
        return {
            number * _STEP + block: value
            for number, trials in enumerate(self.trials)
            for block, value in values_by_block(trials.get(identity, ()), metric).items()
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    """A stack and the reference in one workload, as the newest campaign calls them, and what they are everywhere."""

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
    """The campaigns of one study, oldest first; the last one says what there is and what it is called.

    ``against``: the stack (name or file system) that all others are compared with; default: the first of the plan.
    """
    machines = _by_machine(campaigns)
    latest = campaigns[-1][0]
    rows, partial = [], []
    for pair in _pairs(latest.cells, against):
        if workloads and pair.cell.workload.name not in workloads:
            continue
        for metric in metrics_for(pair.cell.workload, figures_of(pair.cell, campaigns), metrics, metrics_of):
            row = _row(pair, metric, machines)
            if row is None:
                partial.append(f"{pair.workload} on {pair.stack}, {metric.name}")
            else:
                rows.append(row)
    counts = Counter(
        identity for machine in machines for identity in {name for each in machine.trials for name in each}
    )
    return Fleet(
        study=latest.study_id,
        machines=tuple(map(_shown, machines)),
        rows=tuple(rows), needed=MACHINES_LEAST, partial=tuple(partial),
        uncommon=sum(count < len(machines) for count in counts.values()),
    )  # fmt: skip


def _by_machine(campaigns: Measured) -> list[_Machine]:
    """Those with trials; of several machines with one name the second is called ``name (2)``."""
    found: dict[tuple[str, ...], _Machine] = {}
    seen: Counter[str] = Counter()
    for campaign, trials in campaigns:
        if not trials:
            continue
        facts = campaign.machine
        name = str(facts.get("hostname") or "unknown")
        hardware = (name, *(str(facts.get(each)) for each in _HARDWARE))
        if hardware not in found:
            seen[name] += 1
            found[hardware] = _Machine(name=name if seen[name] == 1 else f"{name} ({seen[name]})")
        by_cell: dict[str, list[TrialRecord]] = {}
        for trial in trials:
            by_cell.setdefault(trial.cell.id, []).append(trial)
        found[hardware].campaigns.append(campaign)
        found[hardware].trials.append({_identity(cell): by_cell.get(cell.id, []) for cell in campaign.cells})
    return list(found.values())


def _shown(machine: _Machine) -> FleetMachine:
    kernel, cpu = (
        None if machine.facts.get(key) is None else str(machine.facts[key]) for key in ("kernel", "cpu")
    )
    return FleetMachine(
        name=machine.name, campaigns=tuple(each.id for each in machine.campaigns), kernel=kernel, cpu=cpu
    )


def _identity(cell: Cell) -> str:
    """The same on every machine: what is measured, wherever its disk is. Names tell apart what is otherwise alike."""
    stack = cell.stack
    options = {name: value for name, value in stack.medium.options.items() if name not in PLACES}
    medium = stack.medium.model_copy(update={"options": options})
    return f"{stack.name} {cell.model_copy(update={'stack': stack.model_copy(update={'medium': medium})}).content_id}"


def _pairs(cells: Sequence[Cell], against: str | None) -> Iterator[_Pair]:
    """Each stack with the reference, workload by workload, in the order of the plan."""
    alike: dict[str, list[Cell]] = {}
    for cell in cells:
        alike.setdefault(cell.model_dump_json(exclude={"stack", "time_limit_s"}), []).append(cell)
    names = labels.workload_labels([group[0] for group in alike.values()])
    for name, group in zip(names, alike.values(), strict=True):
        chosen = [cell for cell in group if against in {None, cell.stack.name, cell.stack.filesystem}]
        stacks = {
            cell.id: ", ".join(line)
            for cell, line in zip(group, labels.stack_lines([cell.stack for cell in group]), strict=True)
        }
        for cell in group if chosen else []:
            if cell is not chosen[0] and comparable(cell.stack, chosen[0].stack):
                yield _Pair(
                    stack=stacks[cell.id], reference=stacks[chosen[0].id], workload=name, cell=cell,
                    identities=(_identity(cell), _identity(chosen[0])),
                )  # fmt: skip


def _row(pair: _Pair, metric: Metric, machines: Sequence[_Machine]) -> FleetRow | None:
    """None if no machine has enough blocks of both."""
    ratios, estimates, facts = [], [], {}
    for machine in machines:
        stack, reference = (machine.values(identity, metric.name) for identity in pair.identities)
        found = _on_one_machine(machine.name, stack, reference, metric)
        if found is not None:
            ratios.append(found[0])
            estimates.append(found[1])
            facts[machine.name] = machine.facts
    if not ratios:
        return None
    together = combine(estimates)
    row = FleetRow(
        workload=pair.workload, metric=metric.name, unit=metric.unit, better=metric.better, stack=pair.stack,
        reference=pair.reference, machines=tuple(ratios), verdict=FleetVerdict.FEW_MACHINES,
    )  # fmt: skip
    if together.mean is None or together.spread is None:
        return row
    update = {
        "verdict": _verdict(together), "average": exp(together.mean), "interval": _span(together.interval),
        "prediction": _span(together.prediction), "spread": expm1(together.spread), "share": together.share,
        "coincides": splits({one.machine: one.ratio for one in ratios}, facts),
    }  # fmt: skip
    return row.model_copy(update=update)


def _on_one_machine(
    name: str, stack: Mapping[int, float], reference: Mapping[int, float], metric: Metric
) -> tuple[MachineRatio, Estimate] | None:
    """None where fewer than three blocks have both, or a value has no logarithm."""
    top, bottom = (reference, stack) if metric.better is Direction.LOWER else (stack, reference)
    common = sorted(stack.keys() & reference.keys())
    found = compare_blocks(top, bottom)
    if found.ratio is None or len(common) < PAIRS_LEAST:
        return None
    differences = [log(top[block]) - log(bottom[block]) for block in common]
    error = found.widening * stdev(differences) / sqrt(len(common))
    ratio = MachineRatio(
        machine=name,
        ratio=exp(fmean(differences)),
        n=len(common),
        interval=None
        if found.interval is None
        else Span(low=found.interval.low, high=found.interval.high, coverage=found.interval.coverage),
    )
    return ratio, Estimate(mean=fmean(differences), error=error, size=len(common))


def _verdict(together: Combined) -> FleetVerdict:
    interval, prediction = together.interval, together.prediction
    if interval is None or prediction is None:
        return FleetVerdict.FEW_MACHINES
    if interval.low <= 0 <= interval.high:
        return FleetVerdict.UNDECIDED
    return FleetVerdict.ON_AVERAGE if prediction.low <= 0 <= prediction.high else FleetVerdict.EVERYWHERE


def _span(interval: Interval | None) -> Span | None:
    if interval is None:
        return None
    return Span(low=exp(interval.low), high=exp(interval.high), coverage=interval.coverage)
