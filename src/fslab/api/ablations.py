"""Ablations: the campaign that measures a slower stack with mechanisms switched off, and its attribution."""

import statistics

from fslab import feasibility
from fslab.analysis.table_rows import looks_of
from fslab.analysis.usable_trials import usable_values
from fslab.analysis.workload_groups import by_cell, headline_metrics
from fslab.campaign import launch
from fslab.campaign.consent import Consent
from fslab.campaign.observer import Observer
from fslab.errors import UsageError
from fslab.explain import ablation as plans
from fslab.explain.ablation import Attribution
from fslab.explain.evidence import Evidence
from fslab.explain.mechanisms import REGISTRY as MECHANISMS
from fslab.stopping_settings import StoppingRule
from fslab.store.campaign import Ablation, Campaign, CampaignSettings
from fslab.store.store import Store
from fslab.trial_record import Metric
from fslab.units import Direction


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
