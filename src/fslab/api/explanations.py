"""Explanations: the evidence on causes in each cell of a campaign, those with the most weight, and ablations."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import permutations
from shlex import quote
from typing import Any

from fslab import feasibility
from fslab.analysis.table_rows import looks_of
from fslab.analysis.usable_trials import usable_values
from fslab.analysis.workload_groups import by_cell, headline_metrics
from fslab.campaign import launch
from fslab.campaign.consent import Consent
from fslab.campaign.observer import Observer
from fslab.cell import Frozen
from fslab.claims.model import Verdicts
from fslab.claims.replication import Reason, deciding
from fslab.errors import UsageError, nearest
from fslab.explain import ablation as plans
from fslab.explain import evidence, mechanisms
from fslab.explain.ablation import Attribution
from fslab.explain.evidence import Evidence, Explanation
from fslab.explain.mechanisms import REGISTRY as MECHANISMS
from fslab.explain.mechanisms import Mechanism, bounded
from fslab.stopping_settings import StoppingRule
from fslab.store.campaign import Ablation, Campaign, CampaignSettings
from fslab.store.store import Store
from fslab.trial_record import Metric
from fslab.units import Direction

NOTABLE = 1.0
ALIKE = 0.1  # × the weight, or × the run for what takes a share of it: up to this, a contrast is none


def evidence_of(campaign: Campaign, store: Store) -> list[Evidence]:
    """Return the cells of a campaign with their evidence."""
    return evidence.evidence_of(campaign.cells, store.trials(campaign.id), store.traced(campaign.id))


def chosen(everything: list[Evidence], workload: str | None, a: str | None, b: str | None) -> list[Evidence]:
    """Select cells by workload and stacks ``a`` and ``b``; with only ``a``, it comes first and the other cells follow.

    Raises UsageError if nothing matches, or several stacks match one name.
    """
    if workload is not None:
        names = {seen.workload for seen in everything}
        if workload not in names:
            raise UsageError(f"no workload '{workload}' with a usable trial", hint=nearest(workload, names))
        everything = [seen for seen in everything if seen.workload == workload]
    if a is None:
        return everything
    one = _stack(everything, a)
    if b is not None:
        return [one, _stack(everything, b)]
    others = [seen for seen in everything if seen is not one]
    return [one, *others]


def _stack(everything: list[Evidence], wanted: str) -> Evidence:
    exact = [seen for seen in everything if wanted in {seen.stack, seen.cell.stack.name, seen.cell.id}]
    own = [seen for seen in everything if wanted == seen.filesystem or wanted in seen.stack.split()]
    found = exact or own
    if len(found) != 1:
        what = f"'{wanted}' matches {len(found)} stacks" if found else f"no stack '{wanted}'"
        raise UsageError(what, hint=f"known: {', '.join(quote(seen.stack) for seen in everything)}")
    return found[0]


_OF_SPREADS = {"spread", "of"}  # words of a part's name that are no names of stacks


def of_claims(verdicts: Verdicts, everything: Sequence[Evidence]) -> tuple[Reason, ...]:
    """Return at most three explanations for failed claims, those with the largest deviation first.

    For each claim: the first in the ranking of the cells that the deciding part of the claim compares, unless it cannot
    explain their difference. Omits duplicates.
    """
    found: dict[tuple[str, str], Reason] = {}
    for claim, part in deciding(verdicts):
        compared = [set(side.split()) - _OF_SPREADS for side in part.what.split(" / ")]
        cells = [
            seen
            for seen in everything
            if seen.workload == part.where and any(side <= set(seen.stack.split()) for side in compared)
        ]
        differ = (each.strongest for each in ranking(cells) if each.weight > NOTABLE and each.can_explain)
        if (one := next(differ, None)) is not None:
            reason = Reason(
                claim=claim, where=f"{one.workload} on {one.stack}", text=one.text, certainty=one.certainty,
                refuted_by=one.refuted_by,
            )  # fmt: skip
            found.setdefault((one.mechanism, one.workload), reason)
    return tuple(found.values())[:3]


def as_document(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [statement.model_dump(mode="json") for statement in mechanisms.all_statements(everything)]


def withdrawn(seen: Evidence) -> tuple[str, ...]:
    """Return why figures of a cell's trace are not used; empty if all are, or if there is no trace."""
    if seen.traced is None:
        return ()
    observed = seen.traced.provenance.observed
    return (*observed.get("trace_withdrawn", ()), *observed.get("trace_absent", ()))


def traces_not_used(everything: Sequence[Evidence]) -> list[dict[str, Any]]:
    """Return the cells with figures of traces that are not used, each with the reasons."""
    found = [(seen, withdrawn(seen)) for seen in everything]
    return [{"workload": seen.workload, "stack": seen.stack, "reasons": [*why]} for seen, why in found if why]


class RankedMechanism(Frozen):
    """A mechanism. ``cells``: where it was found.

    ``contrast``: the largest difference in weight between two stacks under one workload. A mechanism that all stacks
    have ``alike`` explains no difference between them. ``opposed``: nor does this one, because each stack that has more
    of it was faster in each trial than those that have less (of what speeds up: slower). ``strongest``: the explanation
    on the stack of the two that has more, with its ``weight``.
    """

    mechanism: str
    summary: str
    weight: float
    contrast: float
    cells: tuple[str, ...]
    strongest: Explanation
    alike: bool
    opposed: bool

    @property
    def can_explain(self) -> bool:
        return not self.alike and not self.opposed

    @property
    def why_not(self) -> str:
        """Why it explains no difference, in words; empty if it can explain one."""
        if self.alike:
            return "all stacks have it alike" + ", within 10 % of the run" * (
                self.strongest.takes is not None
            )
        was = "slower" if MECHANISMS.get(self.mechanism).speeds_up else "faster"
        return f"stacks with more of it were {was} than those with less" if self.opposed else ""


def ranking(everything: Sequence[Evidence]) -> list[RankedMechanism]:
    """Return the mechanisms found: first the one in whose evidence the stacks differ most, then the strongest; those
    that cannot explain a difference are last."""
    found: dict[str, list[Explanation]] = {}
    for each in mechanisms.all_statements(everything):
        found.setdefault(each.mechanism, []).append(each)
    ranked = [_ranked(name, each_of, everything) for name, each_of in found.items()]
    return sorted(
        ranked,
        key=lambda each: (
            not each.can_explain, each.alike, -each.contrast, -each.weight, -len(each.cells), each.mechanism
        ),
    )  # fmt: skip


def in_order(everything: Sequence[Evidence]) -> Iterator[tuple[Evidence, list[tuple[Explanation, str]]]]:
    """Yield each cell with its statements, in the order of the ranking of all cells of its workload, and why the
    mechanism explains no difference between these."""
    ranked: dict[str, dict[str, tuple[int, str]]] = {}
    for seen in everything:
        if seen.workload not in ranked:
            beside = [each for each in everything if each.workload == seen.workload]
            places = enumerate(ranking(beside))
            ranked[seen.workload] = {each.mechanism: (place, each.why_not) for place, each in places}
        own = ranked[seen.workload]
        found = sorted(mechanisms.statements_of(seen), key=lambda each: own[each.mechanism])
        yield seen, [(each, own[each.mechanism][1]) for each in found]


def unexplained(everything: Sequence[Evidence]) -> list[str]:
    """Return the workloads on several stacks without a mechanism that can explain a difference between these."""
    beside: dict[str, list[Evidence]] = {}
    for seen in everything:
        if seen.trials:
            beside.setdefault(seen.workload, []).append(seen)
    return [
        workload
        for workload, cells in beside.items()
        if len(cells) > 1 and not any(each.can_explain for each in ranking(cells))
    ]


def _ranked(name: str, found: Sequence[Explanation], everything: Sequence[Evidence]) -> RankedMechanism:
    """Return the mechanism as it is under the workload where it explains most."""
    known = [seen for seen in everything if seen.trials or seen.traced]
    under = [
        _under(
            MECHANISMS.get(name),
            [each for each in found if each.workload == workload],
            [seen for seen in known if seen.workload == workload],
        )
        for workload in dict.fromkeys(each.workload for each in found)
    ]
    most = max(under, key=lambda each: (each.can_explain, each.contrast))
    cells = dict.fromkeys(f"{each.workload} on {each.stack}" for each in found)
    return most.model_copy(update={"cells": tuple(cells)})


def _under(
    mechanism: Mechanism, found: Sequence[Explanation], compared: Sequence[Evidence]
) -> RankedMechanism:
    """Return the mechanism under one workload: the two stacks that differ in it most, of those that it can explain."""
    weights, timed = _weights(found, compared), _timed(compared)
    strongest = {each.stack: each for each in sorted(found, key=lambda each: each.weight)}

    def least(stack: str) -> float:
        return ALIKE if timed and strongest[stack].takes is not None else ALIKE * weights[stack]

    stack = max(strongest, key=lambda stack: weights[stack])
    contrast, opposed, alike = weights[stack], False, not weights[stack]
    if len(compared) > 1:
        pairs = [
            (
                not _opposed(more, less, mechanism.speeds_up),
                weights[more.stack] - weights[less.stack],
                more.stack,
            )
            for more, less in permutations(compared, 2)
            if weights[more.stack] > weights[less.stack]
        ]
        differing = [each for each in pairs if each[1] > least(each[2])]
        explains, contrast, stack = max(differing or pairs, default=(True, 0.0, stack))
        opposed, alike = not explains, not differing
    return RankedMechanism(
        mechanism=mechanism.name, summary=mechanism.summary, weight=weights[stack], strongest=strongest[stack],
        contrast=min(contrast, NOTABLE) if mechanism.general else contrast, cells=(), alike=alike, opposed=opposed,
    )  # fmt: skip


def _weights(found: Sequence[Explanation], compared: Sequence[Evidence]) -> dict[str, float]:
    """Return the weight on each stack; 0 without an explanation.

    What takes a share of the run counts by its time for the same work, as a multiple of the time that the fastest stack
    takes for that work: so what a stack needs more of the disk or the CPU is comparable with what it is slower by.
    """
    times = {seen.stack: statistics.median(seen.times) for seen in compared} if _timed(compared) else {}
    weights = dict.fromkeys((seen.stack for seen in compared), 0.0)
    for each in found:
        weight = each.weight
        if each.takes is not None and times:
            weight = bounded(each.takes * times[each.stack] / min(times.values()))
        weights[each.stack] = max(weight, weights.get(each.stack, 0.0))
    return weights


def _timed(compared: Sequence[Evidence]) -> bool:
    """Return whether it is known how long each stack takes for the same work."""
    return len(compared) > 1 and all(seen.times for seen in compared)


def _opposed(more: Evidence, less: Evidence, speeds_up: bool | None) -> bool:
    """Return whether the stack with more of a mechanism was faster in each trial; of what speeds up, slower."""
    fast, slow = (less, more) if speeds_up else (more, less)
    return speeds_up is not None and bool(fast.times and slow.times) and max(fast.times) < min(slow.times)


def on_page(
    everything: Sequence[Evidence], most: int
) -> tuple[tuple[Explanation, ...], tuple[Explanation, ...]]:
    """Return the strongest statement on each mechanism that can explain a difference, in the order of the ranking, and
    at most ``most`` others, those with the most weight first."""
    first = tuple(each.strongest for each in ranking(everything) if each.can_explain)
    others = [each for each in mechanisms.all_statements(everything) if each not in first]
    return first, tuple(sorted(others, key=lambda statement: -statement.weight)[:most])


def slower_and_faster(pair: list[Evidence], *, first: bool = True) -> tuple[Evidence, Evidence, Metric]:
    """Return the slower and the faster cell of one workload, and the metric that orders them.

    Of more than two cells: the first one and the best of the others; without ``first``, the slowest and the fastest.
    Raises UsageError if the cells have no order.
    """
    if len({seen.cell.id for seen in pair}) < 2 or len({seen.workload for seen in pair}) > 1:
        hint = "fslab explain CAMPAIGN WORKLOAD A B --ablate"
        raise UsageError("needs one workload and two stacks", where="--ablate", hint=hint)
    metric = headline_metrics(pair[0].cell.workload)[0]
    if metric.better is Direction.NEITHER:
        what = f"{metric.name} has no preferred direction, so that no stack is slower"
        raise UsageError(what, where="--ablate", hint="choose another workload")
    sign = 1 if metric.better is Direction.HIGHER else -1

    def level(seen: Evidence) -> float:
        figures = (trial.metrics.get(metric.name) for trial in seen.trials)
        values = [figure.value for figure in figures if figure is not None and figure.value is not None]
        return sign * statistics.median(values) if values else float("-inf")

    meant = (pair[0], max(pair[1:], key=level)) if first else pair
    # Sorted, not by min and max: of equal levels, or without any usable trial, they would return the same cell twice.
    slow, *_, fast = sorted(meant, key=level)
    return slow, fast, metric


def ablation_of(
    campaign: Campaign,
    slower: Evidence,
    faster: Evidence,
    metric: Metric,
    only: list[str],
    trials: int | None,
) -> Campaign:
    """Return the campaign of an ablation: both original cells, and the slower one with mechanisms switched off."""
    for name in only:
        MECHANISMS.get(name)
    # The mechanisms asked for can belong to the stack that has been faster so far, or make it faster.
    for slow, fast in ((slower, faster), (faster, slower)):
        if switches := plans.candidates(slow, fast, only):
            break
    else:
        what = f"no mechanism of {slow.stack} or {fast.stack} can be switched off for this workload"
        hint = "fslab list mechanisms; --only MECHANISM tries one that changes the workload or volume"
        raise UsageError(what, where="--ablate", hint=hint)
    variants, _ = plans.cells(slow, fast, switches)
    plan = Ablation(
        of=campaign.id, workload=slow.workload, slow=slow.stack, fast=fast.stack, slow_cell=slow.cell.id,
        fast_cell=fast.cell.id, metric=metric.name, higher_is_better=metric.better is Direction.HIGHER,
        off={names: cell.id for names, cell in variants.items()},
        switches={name: str(switch) for name, switch in switches.items()},
        common=plans.common(switches, fast),
    )  # fmt: skip
    stopping = campaign.stopping if trials is None else StoppingRule(trials=trials)
    given = campaign.settings
    return launch.new(
        {cell.id: cell for cell in (slow.cell, fast.cell, *variants.values())}.values(),
        stopping,
        CampaignSettings(scale=given.scale, files=given.files, directory=given.directory, ablation=plan),
        study_id=f"{campaign.study_id}-why",
        study_title=f"{slow.workload}: {slow.stack} with its mechanisms off, against {fast.stack}",
        study_source=campaign.study_source,
        seed=campaign.seed,
    )


def run_ablation(
    campaign: Campaign, store: Store, observer: Observer, wipe: frozenset[str], consent: Consent
) -> tuple[Campaign, Attribution | None]:
    """Store and run the campaign of an ablation, in interleaved blocks, and return it with the attribution of its
    trials. It can be resumed."""
    feasibility.check_named(campaign.cells, wipe)
    conditions = launch.RunConditions(consent=consent, wipe=wipe)
    launch.create(campaign, store, conditions)
    launch.run(campaign, store, observer, conditions, new=True)
    stored = store.campaign(campaign.id)
    return stored, read_ablation(stored, store)[1]


def read_ablation(campaign: Campaign, store: Store) -> tuple[Ablation, Attribution | None]:
    """Return the plan of an ablation, and the attribution from its usable trials; None without such trials.

    ValueError if the campaign is not an ablation.
    """
    plan = campaign.settings.ablation
    if plan is None:
        raise ValueError(f"{campaign.id} is not an ablation")
    trials = by_cell(store.trials(campaign.id))
    known = {cell: usable_values(own, plan.metric) for cell, own in trials.items()}
    values = {cell: own for cell, own in known.items() if own}
    blocks = min((len(each) for each in values.values()), default=0)
    looks = looks_of(campaign.stopping)
    coverage = looks.coverage_at(blocks) if looks is not None and blocks else 0.95
    return plan, plans.attributed(plan, values, coverage)


def effective(campaign: Campaign, found: Attribution) -> list[str]:
    """Return the mechanisms to measure together after an ablation; empty if fewer than two have an effect."""
    plan = campaign.settings.ablation
    names = plans.matter(plan, found) if plan is not None else []
    return names if len(names) > 1 else []
