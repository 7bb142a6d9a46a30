"""One study over time on one machine: a point per campaign, changes of level, and the facts that changed there. Pure.

Combines the statistics of ``stats`` with the facts of ``machine.facts``; defines neither.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from fslab.analysis.campaign_comparison import change_of, figures_of, metrics_for, without_repeats
from fslab.analysis.campaign_comparison_lines import change_words, values_of
from fslab.analysis.campaign_comparison_model import FactChange
from fslab.analysis.comparison_model import Span
from fslab.analysis.groups import MetricsOf, headline_metrics
from fslab.analysis.history_model import History, HistoryPoint, HistorySeries, HistoryStep, LevelChange
from fslab.analysis.measured import MeasuredCampaign
from fslab.cell import Cell
from fslab.machine import facts
from fslab.machine.differences import Circumstances
from fslab.record import Metric, TrialRecord
from fslab.stats.changes import change_points
from fslab.stats.compare import compare_ratio
from fslab.stats.interval import median_interval

MEDIAN_COVERAGE = 0.9
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
    series = [
        _series(cell, metric, measured, steps)
        for cell in latest.cells
        if (not stacks or {cell.stack.name, cell.stack.filesystem} & set(stacks))
        and (not workloads or cell.workload.name in workloads)
        for metric in metrics_for(cell.workload, figures_of(cell, measured), metrics, metrics_of)
    ]
    known = {_content(cell) for cell in latest.cells}
    former = {_content(cell) for campaign, _ in here for cell in campaign.cells} - known
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


def _content(cell: Cell) -> str:
    """Return the identity of a measurement, independent of names. Cells with different content are different series."""
    return cell.content_id


def _same(cell: Cell, among: Sequence[Cell]) -> Cell | None:
    """Return the cell of another campaign that measures the same; if there are several, the one with the same names."""
    found = [other for other in among if _content(other) == _content(cell)]
    named = [other for other in found if _names(other) == _names(cell)]
    return next(iter(named or found), None)


def _names(cell: Cell) -> tuple[str, str]:
    return cell.stack.name, cell.workload.name


def _series(
    cell: Cell,
    metric: Metric,
    measured: Past,
    steps: Mapping[str, HistoryStep],
) -> HistorySeries:
    points = []
    for campaign, trials in measured:
        same = _same(cell, campaign.cells)
        values = [] if same is None else list(values_of(trials, same, metric.name).values())
        if values:
            points.append(_point(campaign, values))
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


def _point(campaign: MeasuredCampaign, values: Sequence[float]) -> HistoryPoint:
    return HistoryPoint(
        campaign=campaign.id, created=campaign.created, median=statistics.median(values), n=len(values),
        interval=_span(median_interval(values, coverage=MEDIAN_COVERAGE)),
    )  # fmt: skip


def _span(interval: Any) -> Span | None:
    if interval is None:
        return None
    return Span(low=interval.low, high=interval.high, coverage=interval.coverage)


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
        estimate = compare_ratio(later, earlier)
        before, since = points[change.index - 1].campaign, points[change.index].campaign
        ratio, interval = estimate.ratio, _span(estimate.interval)
        changes.append(
            LevelChange(
                since=since, before=before, ratio=ratio, interval=interval, p_value=change.p_value,
                facts=_changed_between(before, since, campaigns, steps),
                words=change_words(ratio, interval, metric.unit, metric.better),
            )
        )  # fmt: skip
    return changes


def _changed_between(
    before: str, since: str, campaigns: Sequence[MeasuredCampaign], steps: Mapping[str, HistoryStep]
) -> tuple[FactChange, ...]:
    """Return the facts that changed between two points, also at campaigns in between that the series does not have."""
    ids = [campaign.id for campaign in campaigns]
    between = ids[ids.index(before) + 1 : ids.index(since) + 1]
    return tuple(fact for name in between if name in steps for fact in steps[name].facts)


def _steps(
    campaigns: Sequence[MeasuredCampaign], trials: Mapping[str, Sequence[TrialRecord]]
) -> dict[str, HistoryStep]:
    """Return the facts, of any weight, that changed since the previous campaign, by id of the later campaign."""
    found: dict[str, HistoryStep] = {}
    known = {campaign.id: _circumstances(campaign, trials[campaign.id]) for campaign in campaigns}
    for one, two in pairwise(campaigns):
        differing = facts.differing(known[one.id], known[two.id])
        changed = tuple(change_of(each, ()) for each in differing if each.known)
        if changed:
            found[two.id] = HistoryStep(before=one.id, after=two.id, facts=changed)
    return found


def _circumstances(campaign: MeasuredCampaign, trials: Sequence[TrialRecord]) -> Circumstances:
    """Return the facts stored with the campaign's trials. Trials in a guest have the facts of the guest."""
    devices: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        devices.setdefault(_content(trial.cell), []).append(trial.provenance.device)
    return Circumstances(
        machine=without_repeats([trial.provenance.machine for trial in trials]) or [campaign.machine],
        tuning=campaign.cells[0].tuning if campaign.cells else {},
        tools=without_repeats([trial.provenance.tools for trial in trials]),
        devices={name: without_repeats(each) for name, each in devices.items()},
        media=frozenset(cell.stack.medium.type for cell in campaign.cells),
    )
