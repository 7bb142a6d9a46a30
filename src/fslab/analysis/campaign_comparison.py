"""Compares two sets of results, cell by cell. Pure: reads neither the store nor the machine, prints nothing.

``machine.facts`` defines which facts must not differ and what a difference means. The caller decides whether to refuse
a comparison.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from fslab.analysis import campaign_comparison_lines as lines
from fslab.analysis.campaign_comparison_lines import CampaignComparison, Side
from fslab.analysis.matching_cells import Matched, MatchedBy, Partners, between_cells, match
from fslab.analysis.noise_pools import CampaignNoise
from fslab.analysis.table_rows import looks_of, same_stacks, why_same
from fslab.analysis.usable_trials import has_warnings, is_usable, usable_values, warning_kinds
from fslab.analysis.workload_groups import MetricsOf, all_metrics, by_cell, headline_metrics
from fslab.answers.ratio import COVERAGE, Looks, NoisePrior, Question, answer, read_as_counts
from fslab.cell import Cell, WorkloadSpec, grouped
from fslab.machine import facts
from fslab.machine.differences import Circumstances, Difference
from fslab.stopping_settings import StoppingRule, smallest
from fslab.trial_record import Metric, TrialRecord
from fslab.units import Direction, Unit, first_of


class MeasuredCampaign(Protocol):
    """The interface of a stored campaign. ``machine``: facts of the machine on which it ran."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def study_id(self) -> str: ...
    @property
    def cells(self) -> tuple[Cell, ...]: ...
    @property
    def machine(self) -> dict[str, Any]: ...
    @property
    def created(self) -> datetime: ...
    @property
    def stopping(self) -> StoppingRule: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """One of two sets of results: trials, and the planned cells (those of the trials, if the plan is unknown).

    ``noise``: of the whole campaign, also of cells that are not compared; the same object in all parts of a campaign.
    ``machine``: facts of the campaign, used if there is no trial. ``looks``: schedule of the interim analyses if trials
    were repeated until the ranking was clear. ``several``: the set consists of several campaigns, each counted once.
    """

    name: str
    trials: tuple[TrialRecord, ...]
    cells: tuple[Cell, ...]
    noise: CampaignNoise
    study: str | None = None
    machine: dict[str, Any] | None = None
    looks: Looks | None = None
    several: bool = False

    @classmethod
    def of_campaign(cls, campaign: MeasuredCampaign, trials: Iterable[TrialRecord]) -> Results:
        kept = tuple(trials)
        return cls(
            name=campaign.name or campaign.id, trials=kept, cells=campaign.cells, noise=CampaignNoise(trials=kept),
            study=campaign.study_id, machine=campaign.machine, looks=looks_of(campaign.stopping),
        )  # fmt: skip

    @classmethod
    def of_trials(cls, name: str, trials: Sequence[TrialRecord], looks: Looks | None = None) -> Results:
        """Return results made of trials only, such as those of an export; cells are in the order of the trials."""
        cells = {trial.cell.id: trial.cell for trial in trials}
        return cls(
            name=name, trials=tuple(trials), cells=tuple(cells.values()), noise=CampaignNoise(trials=trials),
            looks=looks,
        )  # fmt: skip

    @classmethod
    def of_several(cls, name: str, parts: Sequence[Results]) -> Results:
        """Return several campaigns as one side. Their variation is then part of every interval."""
        cells = {cell.id: cell for part in parts for cell in part.cells}
        first = {cell.content_id: cell for cell in reversed(cells.values())}
        # Cells get the names of the first part, unless a part has the same content under two names.
        if all(len({cell.content_id for cell in part.cells}) == len(part.cells) for part in parts):
            cells = {cell.id: first[cell.content_id] for cell in cells.values()}
        studies = {part.study for part in parts}
        return cls(
            name=name,
            trials=tuple(
                trial if cells[trial.cell.id] is trial.cell else trial.model_copy(update={"cell": cells[trial.cell.id]})
                for part in parts for trial in part.trials
            ),
            cells=tuple({cell.id: cell for cell in cells.values()}.values()), noise=CampaignNoise(trials=()),
            study=studies.pop() if len(studies) == 1 else None, machine=parts[0].machine, several=True,
        )  # fmt: skip

    def only(self, cells: Collection[Cell], name: str) -> Results:
        """Return the results of these cells only. Two parts of one campaign are compared by blocks."""
        kept = {cell.id for cell in cells}
        return replace(
            self,
            name=name,
            trials=tuple(trial for trial in self.trials if trial.cell.id in kept),
            cells=tuple(cell for cell in self.cells if cell.id in kept),
        )


def compare_results(
    a: Results,
    b: Results,
    *,
    by: MatchedBy = MatchedBy.STACK,
    allowed: Collection[str] = (),
    metrics: Collection[str] = (),
    metrics_of: MetricsOf = headline_metrics,
    margin: float | None = None,
) -> CampaignComparison:
    """Compare B with A: one line for each headline metric (or each of ``metrics``) of each cell that both have.

    ``allowed``: names of facts and of groups of facts that may differ. ``margin``: smallest difference of interest, as
    a share; by default that of studies.
    """
    matched = match(a.cells, b.cells, by)
    own_a, own_b = by_cell(a.trials), by_cell(b.trials)
    figures_a, figures_b = figures_by_workload(a.trials), figures_by_workload(b.trials)
    several = a.several or b.several
    paired = a.noise is b.noise and not several
    asked = []
    for partners in matched.partners:
        trials = (own_a.get(partners.a.id, ()), own_b.get(partners.b.id, ()))
        figures = figures_a.get(work_of(partners.a), {}) | figures_b.get(work_of(partners.b), {})
        for metric in metrics_for(partners.a.workload, figures, metrics, metrics_of):
            prior = (
                a.noise.prior(metric.name, [(partners.b, 1.0), (partners.a, -1.0)])
                if paired
                else a.noise.between(b.noise, metric.name)
            )
            asked.append(
                _line(partners, metric, trials, prior, several=several, paired=paired, margin=margin)
            )
    questions = [each.question for each in asked]
    # Values of two campaigns are not paired: the looks of one of them do not apply.
    looks = a.looks if paired else None
    found = answer(questions, looks=looks)
    same = _same_stack(a, b) if paired else None
    compared = tuple(
        each.answered(own, same=same is not None) for each, own in zip(asked, found, strict=True)
    )
    return CampaignComparison(
        a=_side(a),
        b=_side(b),
        coverage=COVERAGE,
        differences=_differences(a, b, matched, by, allowed),
        lines=compared,
        means=() if same else lines.means(compared, questions, looks=looks),
        only_a=tuple(_alone(matched.only_a, a.cells, by)),
        only_b=tuple(_alone(matched.only_b, b.cells, by)),
        same_stack=same,
    )


def refused(found: CampaignComparison) -> tuple[Difference, ...]:
    """Return the differences that prevent a comparison: decisive, known on both sides, not allowed."""
    return tuple(each for each in found.differences if each.decisive and each.known and not each.allowed)


def metrics_for(
    workload: WorkloadSpec, figures: Mapping[str, Unit], wanted: Collection[str], metrics_of: MetricsOf
) -> list[Metric]:
    """Return the headline metrics, or the wanted ones among the stored ``figures``.

    For a workload that this version of fslab does not know, it is the first stored figure.
    """
    headline = list(metrics_of(workload))
    if headline and not wanted:
        return headline
    declared = {metric.name: metric for metric in all_metrics(workload)}
    names = [name for name in wanted if name in figures] if wanted else list(figures)[:1]
    return [
        declared.get(name) or Metric(name=name, unit=figures[name], better=Direction.NEITHER)
        for name in names
    ]


def work_of(cell: Cell) -> Hashable:
    """Return what identifies a cell's workload, independent of its name."""
    return cell.workload.tool, frozenset(cell.workload.parameters.items())


def figures_by_workload(trials: Iterable[TrialRecord]) -> dict[Hashable, dict[str, Unit]]:
    """Return workload (``work_of``) → names and units of all its metrics and probes."""
    found: dict[Hashable, dict[str, Unit]] = {}
    for trial in trials:
        known = found.setdefault(work_of(trial.cell), {})
        known |= {name: value.unit for name, value in (trial.metrics | trial.probes).items()}
    return found


def _line(
    partners: Partners, metric: Metric, trials: tuple[Sequence[TrialRecord], Sequence[TrialRecord]],
    prior: NoisePrior | None, *, several: bool, paired: bool, margin: float | None,
) -> lines.Line:  # fmt: skip
    left, right = (
        lines.values_by_campaign(own, metric) if several else usable_values(own, metric.name)
        for own in trials
    )
    question = Question(
        over=right,
        under=left,
        names=("B", "A"),
        better=metric.better,
        margin=margin or smallest(tail=metric.is_tail),
        paired=paired,
        unit=metric.unit,
        prior=prior,
        counts=read_as_counts(metric.unit, metric.better, [*left.values(), *right.values()]),
    )
    return lines.Line(
        cells=(partners.a, partners.b), trials=trials, metric=metric, question=question,
        sampled="campaigns" if several else "trials",
    )  # fmt: skip


def _side(results: Results) -> Side:
    told = [trial.provenance.machine for trial in results.trials] or [results.machine or {}]
    warned = list(filter(has_warnings, results.trials))
    kinds = Counter(kind for trial in warned for kind in warning_kinds(trial))
    return Side(
        name=results.name,
        campaigns=tuple(dict.fromkeys(trial.key.campaign for trial in results.trials)),
        study=results.study,
        begun=min((trial.started for trial in results.trials), default=None),
        trials=len(results.trials),
        usable=sum(map(is_usable, results.trials)),
        with_warnings=len(warned),
        warnings=dict(sorted(kinds.items(), key=lambda one: (-one[1], one[0]))),
        kernels=_distinct(told, "kernel"),
        machines=_distinct(told, "hostname"),
        sequential=results.looks is not None,
    )


def _same_stack(a: Results, b: Results) -> str | None:
    """Return why the two stacks of a campaign are the same one; None if they are not."""
    stacks = {cell.stack_id: cell.stack for cell in (*a.cells, *b.cells)}
    same = same_stacks(stacks, (*a.trials, *b.trials))
    return next((why_same(each.changed) for each in same.values()), None) if len(stacks) == 2 else None


def _distinct(told: Iterable[dict[str, Any]], name: str) -> tuple[str, ...]:
    return tuple(sorted({str(facts[name]) for facts in told if facts.get(name) is not None}))


def _differences(
    a: Results, b: Results, matched: Matched, by: MatchedBy, allowed: Collection[str]
) -> tuple[Difference, ...]:
    """Return the differences of the cells, then those of the circumstances, each once."""
    found = [each for partners in matched.partners for each in partners.differences]
    sides = (_circumstances(a, matched, by, 0), _circumstances(b, matched, by, 1))
    # Two stacks need different programs: a fact that only one of them has is not an unknown difference.
    found += [each for each in facts.differing(*sides) if each.known or by is not MatchedBy.WORKLOAD]
    distinct = {(each.fact, each.a, each.b): each for each in found}
    return tuple(each.allowed_by(allowed) for each in distinct.values())


def _circumstances(results: Results, matched: Matched, by: MatchedBy, side: int) -> Circumstances:
    cells = [(partners.a, partners.b)[side] for partners in matched.partners]
    kept = {cell.id: partners.a.id for cell, partners in zip(cells, matched.partners, strict=True)}
    trials = [trial for trial in results.trials if trial.cell.id in kept]
    return circumstances_of(
        trials, cells, results.machine or {}, lambda trial: kept[trial.cell.id],
        devices=by is not MatchedBy.WORKLOAD,
    )  # fmt: skip


def circumstances_of(
    trials: Sequence[TrialRecord],
    cells: Sequence[Cell],
    machine: dict[str, Any],
    name_of: Callable[[TrialRecord], str],
    *,
    devices: bool = True,
) -> Circumstances:
    """Return the facts stored with trials; those of trials in a guest are of the guest.

    ``machine``: used if there is no trial. ``name_of``: what a trial measured, of which its device is a fact.
    ``devices``: whether devices may differ is of interest.
    """
    by_name = grouped(trials, name_of)
    return Circumstances(
        machine=_without_repeats([trial.provenance.machine for trial in trials]) or [machine],
        tuning=cells[0].tuning if cells else {},
        tools=_without_repeats([trial.provenance.tools for trial in trials]),
        devices={
            name: _without_repeats([trial.provenance.device for trial in own])
            for name, own in by_name.items()
            if devices
        },
        media=frozenset(cell.stack.medium.type for cell in cells),
        sliced={
            name: {trial.provenance.slices is not None for trial in own} for name, own in by_name.items()
        },
    )


def _without_repeats(dicts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct, non-empty dicts. Nearly all trials repeat the same one, and comparing all would be slow."""
    return list({json.dumps(each, sort_keys=True, default=str): each for each in dicts if each}.values())


def _alone(cells: Sequence[Cell], every: Sequence[Cell], by: MatchedBy) -> Iterator[str]:
    """Yield what cells without a partner are called, each name once. Of several with one name, which other campaigns of
    the same side have, none is compared: say in what they differ."""
    named = grouped({cell.id: cell for cell in every}.values(), _called)
    for name in dict.fromkeys(map(_called, cells)):
        first, *others = named[name]
        differing = [each.fact for other in others for each in between_cells(first, other, by)]
        told = first_of(list(dict.fromkeys(differing)), 3) or "settings"
        yield f"{name} (not compared: its campaigns differ in {told})" if others else name


def _called(cell: Cell) -> str:
    return f"{cell.workload.name} on {cell.stack.name}, {cell.cache.value}"
