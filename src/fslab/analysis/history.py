"""One study over time on one machine: a point per campaign, changes of level, and the facts that changed there. Pure.

Combines the statistics of ``stats`` with the facts of ``machine.facts``; defines neither.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Self

from fslab.analysis.campaign_comparison import (
    MeasuredCampaign,
    circumstances_of,
    figures_by_workload,
    metrics_for,
    work_of,
)
from fslab.analysis.usable_trials import usable_values
from fslab.analysis.workload_groups import MetricsOf, by_cell, headline_metrics
from fslab.answers.ratio import Question, answer
from fslab.answers.verdict_words import change_words
from fslab.cell import Cell, Frozen, grouped
from fslab.machine import facts
from fslab.machine.differences import Difference
from fslab.stats import Interval
from fslab.stats.median import MEDIAN_COVERAGE, median_interval
from fslab.stats.time_series import change_points, drifts
from fslab.trial_record import Metric, TrialRecord
from fslab.units import Direction, Unit


class HistoryPoint(Frozen):
    """One figure of one campaign: the median of its ``n`` usable trials, and the interval of this median."""

    campaign: str
    created: datetime
    median: float
    interval: Interval | None
    n: int


class LevelChange(Frozen):
    """A change of level: ``since`` is the first campaign after it, ``before`` the last campaign before it.

    ``ratio``: later level ÷ earlier level, with an interval computed from the campaigns' medians. ``p_value``: for the
    null hypothesis "no change". ``facts``: facts that changed between the two campaigns.
    """

    since: str
    before: str
    ratio: float | None
    interval: Interval | None
    p_value: float
    facts: tuple[Difference, ...]
    words: str


class HistorySeries(Frozen):
    """One metric of one cell over the campaigns that have it."""

    stack: str
    workload: str
    cache: str
    metric: str
    unit: Unit
    better: Direction
    points: tuple[HistoryPoint, ...]
    changes: tuple[LevelChange, ...]


class HistoryStep(Frozen):
    """Facts that changed between two consecutive campaigns."""

    before: str
    after: str
    facts: tuple[Difference, ...]


class History(Frozen):
    """A study over time on one machine.

    ``elsewhere``: number of the study's campaigns that ran on other machines. ``former``: number of cells of earlier
    campaigns that the latest campaign does not have. Both are not shown. ``enough``: number of campaigns below which no
    change can be significant.
    """

    study: str
    machine: str | None
    campaigns: tuple[str, ...]
    series: tuple[HistorySeries, ...]
    steps: tuple[HistoryStep, ...]
    elsewhere: int
    former: int
    enough: int


ALPHA = 0.01
LEAST = 3  # minimum number of campaigns on a level: one outlier is not a change
ENOUGH = 10  # with fewer campaigns, no change can be significant at ALPHA

Past = Sequence[tuple[MeasuredCampaign, Sequence[TrialRecord]]]


def history(
    campaigns: Past,
    *,
    metrics: Collection[str] = (),
    stacks: Collection[str] = (),
    workloads: Collection[str] = (),
    metrics_of: MetricsOf = headline_metrics,
) -> History:
    """Return the history of one study. ``campaigns`` are sorted, oldest first.

    The last campaign defines which machine and which cells are shown. ``metrics``, ``stacks`` and ``workloads``, if not
    empty, select by name.
    """
    latest = campaigns[-1][0]
    here = [(campaign, trials) for campaign, trials in campaigns if _machine(campaign) == _machine(latest)]
    measured = [(campaign, trials) for campaign, trials in here if trials]
    steps = _steps([campaign for campaign, _ in measured], {each.id: trials for each, trials in measured})
    figures = figures_by_workload(trial for _, trials in measured for trial in trials)
    past = [_PastCampaign.of(campaign, trials) for campaign, trials in measured]
    followed = _of_one_kernel(latest.cells)
    series = [
        _series(cell, metric, own, steps)
        for cell in latest.cells
        if (not stacks or {cell.stack.name, cell.stack.filesystem} & set(stacks))
        and (not workloads or cell.workload.name in workloads)
        for own in [[(each.campaign, each.trials_of(cell, followed)) for each in past]]
        for metric in metrics_for(cell.workload, figures.get(work_of(cell), {}), metrics, metrics_of)
    ]
    known = {cell.content_id for cell in latest.cells}
    former = {cell.content_id for campaign, _ in here for cell in campaign.cells} - known
    for campaign, _ in here:
        former -= {cell.content_id for key, cell in _of_one_kernel(campaign.cells).items() if key in followed}
    return History(
        study=latest.study_id,
        machine=_machine(latest),
        campaigns=tuple(campaign.id for campaign, _ in measured),
        series=tuple(each for each in series if each.points),
        steps=tuple(steps.values()),
        elsewhere=len(campaigns) - len(here),
        former=len(former),
        enough=ENOUGH,
    )


def _machine(campaign: MeasuredCampaign) -> str | None:
    name = campaign.machine.get("hostname")
    return None if name is None else str(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class _PastCampaign:
    """A campaign with its cells by content and its trials by cell id, so that each is looked up, not searched for."""

    campaign: MeasuredCampaign
    cells: Mapping[str, Sequence[Cell]]
    of_one_kernel: Mapping[str, Cell]
    trials: Mapping[str, Sequence[TrialRecord]]

    @classmethod
    def of(cls, campaign: MeasuredCampaign, trials: Sequence[TrialRecord]) -> Self:
        cells = grouped(campaign.cells, lambda cell: cell.content_id)
        kernels = _of_one_kernel(campaign.cells)
        return cls(campaign=campaign, cells=cells, of_one_kernel=kernels, trials=by_cell(trials))

    def trials_of(self, cell: Cell, followed: Mapping[str, Cell]) -> Sequence[TrialRecord]:
        """Return the trials of the cell that measures the same; if there are several, of the one with the same names.

        Cells with different content are different series. The file of a guest's kernel is no content where both
        campaigns have only one (``followed``: in the last one): as on a host, the kernel is a fact that changes.
        """
        key = _without_kernel(cell)
        other = self.of_one_kernel.get(key) if key in followed else None
        found = self.cells.get(cell.content_id) or ([other] if other else [])
        named = [other for other in found if _names(other) == _names(cell)]
        same = next(iter(named or found), None)
        return () if same is None else self.trials.get(same.id, ())


def _without_kernel(cell: Cell) -> str:
    machine = cell.stack.machine.model_copy(update={"kernel": None, "modules": None})
    return cell.model_copy(update={"stack": cell.stack.model_copy(update={"machine": machine})}).content_id


def _of_one_kernel(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Return the cells that differ from each other in more than the kernel, by what they are without it."""
    return {key: own[0] for key, own in grouped(cells, _without_kernel).items() if len(own) == 1}


def _names(cell: Cell) -> tuple[str, str]:
    return cell.stack.name, cell.workload.name


def _series(cell: Cell, metric: Metric, measured: Past, steps: Mapping[str, HistoryStep]) -> HistorySeries:
    valued = ((campaign, list(usable_values(trials, metric.name).values())) for campaign, trials in measured)
    points = [
        HistoryPoint(
            campaign=campaign.id, created=campaign.created, median=statistics.median(values), n=len(values),
            interval=median_interval(values, coverage=MEDIAN_COVERAGE),
        )
        for campaign, values in valued
        if values
    ]  # fmt: skip
    return HistorySeries(
        stack=cell.stack.name,
        workload=cell.workload.name,
        cache=cell.cache.value,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        points=tuple(points),
        changes=tuple(_changes(points, metric, [each for each, _ in measured], steps)),
    )


def _changes(
    points: Sequence[HistoryPoint],
    metric: Metric,
    campaigns: Sequence[MeasuredCampaign],
    steps: Mapping[str, HistoryStep],
) -> list[LevelChange]:
    """Return the changes of level, each with the ratio of the later level to the earlier one."""
    medians = [point.median for point in points]
    found = change_points(medians, alpha=ALPHA, least=LEAST)
    bounds = [0, *(change.index for change in found), len(medians)]
    changes = []
    for number, change in enumerate(found, start=1):
        earlier = medians[bounds[number - 1] : change.index]
        later = medians[change.index : bounds[number + 1]]
        levels = (dict(enumerate(values)) for values in (later, earlier))
        (told,) = answer([Question(over=next(levels), under=next(levels), paired=False)])
        before, since = points[change.index - 1].campaign, points[change.index].campaign
        words = change_words(told.ratio, told.interval, metric.unit, metric.better)
        if drifts([*earlier, *later], len(earlier)):
            words += ", but a steady drift fits better than a change"
        changes.append(
            LevelChange(
                since=since, before=before, ratio=told.ratio, interval=told.interval, p_value=change.p_value,
                facts=_changed_between(before, since, campaigns, steps),
                words=words,
            )
        )  # fmt: skip
    return changes


def _changed_between(
    before: str, since: str, campaigns: Sequence[MeasuredCampaign], steps: Mapping[str, HistoryStep]
) -> tuple[Difference, ...]:
    """Return the facts that changed between two points, also at campaigns in between that the series does not have."""
    ids = [campaign.id for campaign in campaigns]
    between = ids[ids.index(before) + 1 : ids.index(since) + 1]
    return tuple(fact for name in between if name in steps for fact in steps[name].facts)


def _steps(
    campaigns: Sequence[MeasuredCampaign], trials: Mapping[str, Sequence[TrialRecord]]
) -> dict[str, HistoryStep]:
    """Return the facts, of any weight, that changed since the previous campaign, by id of the later campaign."""
    known = {
        campaign.id: circumstances_of(
            trials[campaign.id], campaign.cells, campaign.machine, lambda trial: trial.cell.content_id
        )
        for campaign in campaigns
    }
    found = {}
    for one, two in pairwise(campaigns):
        differing = facts.differing(known[one.id], known[two.id])
        if changed := tuple(each for each in differing if each.known):
            found[two.id] = HistoryStep(before=one.id, after=two.id, facts=changed)
    return found
