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
from fslab.units import Direction, metric_text, ratio_text

MOST = 60  # maximum number of lines in one figure
_YES = {True: "yes", False: "no"}
_READING = {
    Direction.HIGHER: "right of 1: B is better",
    Direction.LOWER: "left of 1: B is better",
    Direction.NEITHER: "no preferred direction",
}


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
            title = "B ÷ A" if better is Direction.NEITHER else f"B ÷ A where {better.value} is better"
            yield forest_figure(f"{key}-{better.value}", title, f"B ÷ A ({_READING[better]})", ratios)


def _tables(found: CampaignComparison) -> Iterator[PageTable]:
    if found.means:
        columns = ("block size", "better", "workloads", "mean", "95 % CI")
        means = (
            (
                mean.stack,
                (
                    mean.block_size or "–", mean.better.value, PageCell(text=str(mean.of), sort=mean.of),
                    PageCell.ratio(mean.ratio), _span(mean.interval),
                ),
            )
            for mean in found.means
        )  # fmt: skip
        yield PageTable.of("Geometric means of the ratios B ÷ A", columns, means)
    caption = f"Every figure: A is {found.a.name}, B is {found.b.name}"
    lines = ((_name(line), _fields(line)) for line in found.lines)
    yield PageTable.of(caption, ("A", "B", "B ÷ A", "95 % CI", "B is"), lines)


def _fields(line: ComparisonLine) -> tuple[PageCell | str, ...]:
    sides = (PageCell.of(side.median, line.unit) for side in (line.a, line.b))
    return (*sides, PageCell.ratio(line.answer.ratio), _span(line.answer.interval), line.verdict)


def _span(interval: Interval | None) -> str:
    return "–" if interval is None else "–".join(ratio_text(interval.low, interval.high))


def _differing(found: CampaignComparison) -> Iterator[PageTable]:
    if found.differences:
        rows = (
            (each.fact, (*(", ".join(side) or "unknown" for side in (each.a, each.b)), _YES[each.decisive]))
            for each in found.differences
        )
        yield PageTable.of("Facts that differ between A and B", ("A", "B", "decisive"), rows)
