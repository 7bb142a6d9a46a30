"""Builds a page from campaigns, their trials, and statements and claims about them. Pure.

Statements and claims are arguments. This module must not search for any.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from fslab import __version__
from fslab.analysis.usable_trials import is_usable
from fslab.analysis.workload_groups import Group, MetricsOf, groups, headline_metrics, metrics_of
from fslab.claims.model import Verdicts
from fslab.explain import settings
from fslab.explain.evidence import Explanation
from fslab.report import crash_safety
from fslab.report.build import build
from fslab.report.conclusion import conclude
from fslab.report.figures import Figure, over_time, paper, ratios, slug
from fslab.report.figures.styles import StackStyles
from fslab.report.model import Report
from fslab.report.page import heat, method, sections, sweeps
from fslab.report.page.model import Page, PageComparison, Part, Section
from fslab.report.row_words import line, machine_words, slices_words, spread_of_counts
from fslab.store.campaign import Campaign
from fslab.trial_record import TrialRecord
from fslab.units import counted, first_of, listed

FEW = 3  # metrics that the first screen has room for in words
BRIEF_FROM = 2_000  # trials, or metrics; with more, a page omits details of each trial that few readers need
BRIEF_FROM_FIGURES = 100 * BRIEF_FROM  # a usual trial has fewer than 100 figures, with those of the kernel
MOMENTS = 2_000  # approximate maximum number of points in the figure of all trials over time


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignSource:
    """One campaign with its trials (with raw output if the page shows it), its statements, and the verdicts on its
    study's claims. ``statements``: about the mechanisms that can explain a difference. ``large``: how many trials or
    figures it has, if they are too many for the details of each trial."""

    campaign: Campaign
    trials: Sequence[TrialRecord]
    large: str | None = None
    statements: tuple[Explanation, ...] = ()
    other_statements: tuple[Explanation, ...] = ()
    verdicts: Verdicts | None = None


def page(
    sources: Sequence[CampaignSource],
    comparisons: Iterable[PageComparison] = (),
    *,
    known: MetricsOf = headline_metrics,
) -> Page:
    """Return the page: one part per campaign, in the given order."""
    parts = tuple(
        part(source, known=known, prefix=f"{number}-" if number else "")
        for number, source in enumerate(sources)
    )
    title = " and ".join(dict.fromkeys(each.report.title for each in parts))
    return Page(title=title, made=f"fslab {__version__}", parts=parts, comparisons=tuple(comparisons))


def part(source: CampaignSource, *, known: MetricsOf = headline_metrics, prefix: str = "") -> Part:
    """Return the part of one campaign. ``prefix`` makes its anchors unique on a page with several campaigns."""
    campaign, trials = source.campaign, source.trials
    together = list(groups(campaign.cells, trials))
    report = build(campaign, trials, known=known, together=together)
    claims, tables = (source.verdicts.claims, source.verdicts.tables) if source.verdicts else ((), ())
    concluded = conclude(report, claims)
    lines = [line(each, concluded.standings) for each in concluded.standings]
    ids, names = _Names(), _Names()
    anchors = {
        each.label: names.free(f"{prefix}w-{slug(each.label).strip('-') or 'workload'}") for each in together
    }
    maker = sections.SectionBuilder(report=report, brief=source.large is not None)
    made: tuple[Section, ...] = tuple(maker.section(group, anchors[group.label]) for group in together)
    return Part(
        report=report,
        status=report.status.value.replace("_", " "),
        asked=_asked(report),
        machine=_machine(report),
        conclusion=concluded,
        lines=tuple(lines) if len(lines) <= FEW else (),  # else the table is clearer
        sure=_confidence(report),
        heat=heat.rows(report, concluded.standings, anchors),
        tradeoffs=ids.given_to(crash_safety.tradeoffs(report, prefix)),
        sweeps=() if _too_many(report) else ids.given_to(sweeps.figures(report, together, prefix)),
        sections=tuple(replace(each, figures=ids.given_to(each.figures)) for each in made),
        order=ids.given_to(_order(together, report, f"{prefix}order", known)),
        method=tuple(method.tables(campaign, trials, report)),
        study=campaign.study_source,
        statements=source.statements,
        other_statements=source.other_statements,
        differing_settings=None if source.large else settings.in_words(campaign.cells),
        claims=claims,
        conditions=method.publication_conditions(source.verdicts.nearness) if source.verdicts else None,
        published_values=tuple(method.published_values(tables)),
        published=ids.given_to(ratios.published_figures(f"{prefix}published-", tables)),
        left_out=dict(_left_out(source, report)),
    )


def _confidence(report: Report) -> str:
    """Return the number of trials, and what the intervals mean."""
    counts = {len(item.values) for row in report.rows for item in row.summaries if item.values}
    if not counts:
        return "No trial is stored yet."
    share = f"{report.coverage * 100:g} %"
    meaning = f"A {share} CI contains the true value in {share} of repeated campaigns."
    sliced = slices_words(report)
    told = f"{spread_of_counts(counts)} of each cell, in random order. {meaning}"
    return f"{told} {sliced[0].upper()}{sliced[1:]}." if sliced else told


def _too_many(report: Report) -> bool:
    return len(report.rows) > BRIEF_FROM


def _left_out(source: CampaignSource, report: Report) -> Iterator[tuple[str, str]]:
    """Yield the heading of each omitted part of a large page, and the text in its place."""
    number = len(report.rows)
    if source.large is not None:
        told = f"fslab explain {report.campaign}"
        yield "Why", f"Omitted, because the campaign has {source.large}. To see mechanisms: {told}"
    if _too_many(report):
        told = f"Omitted, because there are {number:,} metrics; the tables below have them."
        yield "By threads, sizes and disks", told


def figures(found: Page) -> Iterator[Figure]:
    """Yield all figures of a page, and the heat map, which a page shows as a table."""
    for number, each in enumerate(found.parts):
        labels = [stack.label for stack in each.report.stacks]
        if shares := paper.figure(f"{number}-heat" if number else "heat", each.heat, labels):
            yield shares
        yield from each.published
        yield from each.tradeoffs
        yield from each.sweeps
        yield from (figure for section in each.sections for figure in section.figures)
        yield from each.order
    yield from (figure for comparison in found.comparisons for figure in comparison.figures)


class _Names:
    """Makes names unique. What they are made of, such as a workload and a metric, can make the same text in two ways:
    ``a`` and ``b-rate``, ``a-b`` and ``rate``."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, wanted: str) -> str:
        """Return the name, with a number if it is taken."""
        numbered = (f"{wanted}--{number}" for number in count(2))
        found = next(each for each in chain((wanted,), numbered) if each not in self._taken)
        self._taken.add(found)
        return found

    def given_to(self, figures: Iterable[Figure]) -> tuple[Figure, ...]:
        """Return the figures, each with an id that no other one has."""
        return tuple(replace(each, id=self.free(each.id)) for each in figures)


def _asked(report: Report) -> str:
    kinds = list(dict.fromkeys(stack.filesystem or stack.name for stack in report.stacks))
    stacks = ", ".join(stack.label for stack in report.stacks[:6])
    if len(report.stacks) > 6:
        stacks = f"{listed(kinds)} in {len(report.stacks)} variants"
        if len(kinds) > 6:
            stacks = f"{', '.join(kinds[:6])} and {len(kinds) - 6} more file systems"
    names = list(dict.fromkeys(row.workload for row in report.rows))
    return f"{stacks} at {first_of(names, 5) or 'nothing yet'}; on {', '.join(report.media)}."


def _machine(report: Report) -> str:
    told = [f"Linux {report.kernel or 'of unknown version'}", *machine_words(report)]
    told += (
        f"in a {each.machine} guest with Linux {each.kernel or 'of unknown version'}"
        for each in report.guests
    )
    return ", ".join(told) + "."


def _order(together: Sequence[Group], report: Report, key: str, known: MetricsOf) -> Iterator[Figure]:
    """Yield the figure of all trials over time, each relative to the median of its cell; of very many, a summary."""
    labels = report.labels
    moments: list[over_time.OrderPoint] = []
    started = (one.started for group in together for each in group.trials.values() for one in each)
    if (begun := min(started, default=None)) is None:
        return
    for group in together:
        for metric in metrics_of(group, known)[:1]:
            for stack, trials in group.trials.items():
                values = list(group.by_block(metric.name, stack).values())
                middle = statistics.median(values) if values else 0.0
                for trial in trials if middle > 0 else ():
                    figure = trial.metrics.get(metric.name)
                    if figure is not None and figure.value is not None:
                        moments.append(
                            over_time.OrderPoint(
                                stack=labels[stack], workload=group.label, usable=is_usable(trial),
                                minutes=(trial.started - begun).total_seconds() / 60, ratio=figure.value / middle,
                            )
                        )  # fmt: skip
    if moments:
        yield over_time.order_figure(key, _thinned(moments), StackStyles.of(report.stacks))


def _thinned(moments: list[over_time.OrderPoint]) -> list[over_time.OrderPoint]:
    """Return the points unchanged or, if there are too many, medians of consecutive points of the same stack.

    Invalid trials are never mixed with usable ones.
    """
    if len(moments) <= MOMENTS:
        return moments
    size = -(-len(moments) // MOMENTS)
    alike: dict[tuple[str, bool], list[over_time.OrderPoint]] = {}
    for moment in sorted(moments, key=lambda each: each.minutes):
        alike.setdefault((moment.stack, moment.usable), []).append(moment)
    return [
        over_time.OrderPoint(
            stack=stack, workload=counted(len(chunk), "trial"), usable=usable, trials=len(chunk),
            minutes=statistics.median(each.minutes for each in chunk),
            ratio=statistics.median(each.ratio for each in chunk),
        )
        for (stack, usable), each_of in alike.items()
        for chunk in (each_of[start : start + size] for start in range(0, len(each_of), size))
    ]  # fmt: skip
