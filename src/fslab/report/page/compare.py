"""Two campaigns side by side, from a ``CampaignComparison``: differing facts, ratios, means. Pure."""

from collections.abc import Iterator, Sequence

from fslab.analysis import campaign_comparison
from fslab.analysis.campaign_comparison_lines import CampaignComparison, ComparisonLine
from fslab.machine.differences import ALL
from fslab.report.figures import Figure
from fslab.report.figures.ratios import ForestRatio, forest_figure
from fslab.report.page.assemble import CampaignSource
from fslab.report.page.model import PageCell, PageComparison, PageTable
from fslab.stats import Interval
from fslab.units import Direction, format_value, metric_text, ratio_text

MOST = 60  # maximum number of lines in one figure


def comparisons(sources: Sequence[CampaignSource]) -> list[PageComparison]:
    """Compare each campaign with the first. Differing facts are shown and do not prevent the comparison."""
    if len(sources) < 2:
        return []
    sides = [campaign_comparison.Results.of_campaign(each.campaign, each.trials) for each in sources]
    found = [campaign_comparison.compare_results(sides[0], other, allowed=[ALL]) for other in sides[1:]]
    return [comparison(each, f"compare-{number}") for number, each in enumerate(found, start=1) if each.lines]


def comparison(found: CampaignComparison, key: str) -> PageComparison:
    """Return the comparison, of B relative to A as everywhere. ``key``: prefix of the figures' ids."""
    title = f"{_side(found.b.name, found.b.kernels)} against {_side(found.a.name, found.a.kernels)}"
    return PageComparison(
        title=title,
        differing=tuple(_differing(found)),
        tables=tuple(_tables(found)),
        figures=tuple(_figures(found, key)),
        alone=(
            *(f"only in A: {each}" for each in found.only_a),
            *(f"only in B: {each}" for each in found.only_b),
        ),
    )


def _side(name: str, kernels: tuple[str, ...]) -> str:
    return f"{name} (Linux {', '.join(kernels)})" if kernels else name


def _name(line: ComparisonLine) -> str:
    return f"{line.workload}, {line.stack}, {metric_text(line.metric)}"


def _figures(found: CampaignComparison, key: str) -> Iterator[Figure]:
    for better in Direction:
        ratios = [
            ForestRatio(
                label=_name(line),
                ratio=ratio,
                low=interval.low,
                high=interval.high,
                sure=bool(line.answer.holds),
            )
            for line in found.lines
            if line.better is better
            and (ratio := line.answer.ratio) is not None
            and (interval := line.answer.interval) is not None
        ][:MOST]
        if ratios:
            reading = {
                Direction.HIGHER: "right of 1: B is better",
                Direction.LOWER: "left of 1: B is better",
                Direction.NEITHER: "no preferred direction",
            }[better]
            title = "B ÷ A" if better is Direction.NEITHER else f"B ÷ A where {better.value} is better"
            yield forest_figure(f"{key}-{better.value}", title, f"B ÷ A ({reading})", ratios)


def _tables(found: CampaignComparison) -> Iterator[PageTable]:
    if found.means:
        yield PageTable(
            caption="Geometric means of the ratios B ÷ A",
            columns=("block size", "better", "workloads", "mean", "95 % CI"),
            rows=tuple(
                (
                    mean.stack,
                    (
                        PageCell(text=mean.block_size or "–"),
                        PageCell(text=mean.better.value),
                        PageCell(text=str(mean.of), sort=mean.of),
                        PageCell(text=ratio_text(mean.ratio)[0], sort=mean.ratio),
                        PageCell(text=_span(mean.interval)),
                    ),
                )
                for mean in found.means
            ),
        )
    yield PageTable(
        caption=f"Every figure: A is {found.a.name}, B is {found.b.name}",
        columns=("A", "B", "B ÷ A", "95 % CI", "B is"),
        rows=tuple((_name(line), _fields(line)) for line in found.lines),
    )


def _fields(line: ComparisonLine) -> tuple[PageCell, ...]:
    answer = line.answer
    return (
        PageCell(text=format_value(line.a.median, line.unit), sort=line.a.median, unit=line.unit.value),
        PageCell(text=format_value(line.b.median, line.unit), sort=line.b.median, unit=line.unit.value),
        PageCell(text="–" if answer.ratio is None else ratio_text(answer.ratio)[0], sort=answer.ratio),
        PageCell(text=_span(answer.interval)),
        PageCell(text=line.verdict),
    )


def _span(interval: Interval | None) -> str:
    return "–" if interval is None else "–".join(ratio_text(interval.low, interval.high))


def _differing(found: CampaignComparison) -> Iterator[PageTable]:
    if found.differences:
        yield PageTable(
            caption="Facts that differ between A and B",
            columns=("A", "B", "decisive"),
            rows=tuple(
                (
                    each.fact,
                    (
                        PageCell(text=", ".join(each.a) or "unknown"),
                        PageCell(text=", ".join(each.b) or "unknown"),
                        PageCell(text="yes" if each.decisive else "no"),
                    ),
                )
                for each in found.differences
            ),
        )
