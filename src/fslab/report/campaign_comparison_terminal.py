"""Shows a comparison of two sets of results in a terminal. Computes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.campaign_comparison_lines import (
    CampaignComparison,
    ComparisonLine,
    RatioMean,
    SampleSummary,
    Side,
)
from fslab.answers.model import INDEPENDENCE_LEAST, UNPAIRED, Verdict
from fslab.machine.differences import Difference
from fslab.report.notes import SUMMARIES
from fslab.report.row_words import is_far, of_differences
from fslab.report.terminal_width import wrapped
from fslab.units import Direction, Unit, counted, first_of, format_value, metric_text, ratio_text

MOST_NAMED = 3
VERDICT = 20  # least width of the column of verdicts, where they fold
NARROW_VERDICT = 8  # where even this has no room, each line is a sentence
_BELOW = "    "


def show(found: CampaignComparison, console: Console) -> None:
    for part in parts(found, console.width):
        console.print(part, soft_wrap=False)


def parts(found: CampaignComparison, width: int) -> Iterator[RenderableType]:
    """Yield the parts from top to bottom.

    The two sides, their differences, the tables, the means, remarks, cells of one side only, and the legend.
    """
    for letter, side in (("A", found.a), ("B", found.b)):
        yield wrapped(f"{letter}  {_side(side)}", width, style="bold")
        if told := [
            f"{SUMMARIES.get(kind, kind)} ({count} of {side.usable})" for kind, count in side.warnings.items()
        ]:
            yield wrapped(f"   {'; '.join(told)}", width, style="yellow", hang=3)
    if found.same_stack:
        same = f"A and B are the same stack ({found.same_stack}): what they differ by is noise"
        yield wrapped(same, width, style="yellow")
    yield from _differences(found.differences, width)
    yield Text("")
    yield from _tables(found, width)
    yield Text("")
    for mean in found.means:
        yield wrapped(_mean(mean), width)
    for remark in _remarks(found.lines):
        yield wrapped(remark, width)
    for name, cells in (("A", found.only_a), ("B", found.only_b)):
        if cells:
            yield wrapped(f"only in {name}: {'; '.join(cells)}", width, style="yellow")
    yield wrapped(_legend(found), width, style="dim")


def _tables(found: CampaignComparison, width: int) -> Iterator[RenderableType]:
    """Yield a heading and a table of stacks for each workload and metric. All tables have the same column widths."""
    cached = len({line.cache for line in found.lines}) > 1
    by_heading: dict[str, list[ComparisonLine]] = {}
    for line in found.lines:
        by_heading.setdefault(_heading(line, cached=cached), []).append(line)
    header = ("", "A", "B", f"B ÷ A ({found.coverage * 100:g} % CI)", "B is")
    rows = {name: [_fields(line, spread=True) for line in lines] for name, lines in by_heading.items()}
    widths = _widths([header, *(row for each in rows.values() for row in each)])
    if sum(widths) + 2 * len(widths) > width:  # omit the spreads; if that is not enough, verdicts fold
        rows = {name: [_fields(line, spread=False) for line in lines] for name, lines in by_heading.items()}
        widths = _widths([header, *(row for each in rows.values() for row in each)])
    tall = sum(widths[:-1]) + 2 * len(header) + min(widths[-1], VERDICT) > width
    if tall:  # each stack on a line above its figures
        widths[0] = len(_BELOW)
    narrow = sum(widths[1:-1]) + len(_BELOW) + 2 * len(header) + NARROW_VERDICT > width
    if not narrow:
        yield _table([header], widths, style="dim")
    for name, lines in by_heading.items():
        yield wrapped(name, width, style="bold")
        styles = [_style(line) for line in lines]
        if narrow:
            for (stack, a, b, ratio, verdict), style in zip(rows[name], styles, strict=True):
                yield wrapped(f"{stack}: A {a}, B {b}, B ÷ A {ratio}: {verdict}", width, style=style)
            continue
        if not tall:
            yield _table(rows[name], widths, styles=styles)
            continue
        for (stack, *fields), style in zip(rows[name], styles, strict=True):
            yield wrapped(stack, width)
            yield _table([(_BELOW, *fields)], widths, styles=[style])


def _fields(line: ComparisonLine, *, spread: bool) -> tuple[str, ...]:
    a, b = (_sample(sample, line.unit, spread=spread) for sample in (line.a, line.b))
    return (f"  {line.stack}", a, b, _ratio(line), line.verdict)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _table(
    rows: Sequence[Sequence[str]], widths: Sequence[int], *, style: str = "", styles: Sequence[str] = ()
) -> Table:
    """Return a table with columns of the given widths. The last column folds if the terminal is too narrow."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0), style=style)
    for number, wide in enumerate(widths):
        last = number == len(widths) - 1
        justify: Literal["left", "right"] = "left" if last or number == 0 else "right"
        table.add_column(justify=justify, no_wrap=not last, min_width=None if last else wide)
    for row, verdict_style in zip_longest(rows, styles, fillvalue=""):
        table.add_row(*map(Text, row[:-1]), Text(row[-1], style=verdict_style))
    return table


def _style(line: ComparisonLine) -> str:
    """Return the style of a verdict: a colour only if significant after Holm correction, or if a value is missing."""
    answer = line.answer
    if answer.verdict is Verdict.MISSING or (answer.holds and answer.winner is None):
        return "yellow"
    if not answer.holds:
        return "dim"
    return "green" if answer.winner == answer.over else "red"


def _side(side: Side) -> str:
    campaigns = first_of([name for name in side.campaigns if name not in side.name], MOST_NAMED)
    begun = f"{side.begun:%Y-%m-%d %H:%M} UTC" if side.begun else ""
    warned = f", {side.with_warnings} of them with warnings" if side.with_warnings else ""
    told = (
        side.name, campaigns, side.study or "", begun, "kernel " + " or ".join(side.kernels) if side.kernels else "",
        f"{counted(side.trials, 'trial')}: {side.usable} usable{warned}",
    )  # fmt: skip
    return " · ".join(filter(None, told))


def _differences(all_of_them: Iterable[Difference], width: int) -> Iterator[Text]:
    known = [each for each in all_of_them if each.known]
    unknown = [each.fact for each in all_of_them if each.decisive and not each.known]
    decisive = [each for each in known if each.decisive]
    for title, chosen, style in (
        ("differs, but must be equal", [each for each in decisive if not each.allowed], "red"),
        ("differs", [each for each in decisive if each.allowed], "yellow"),
        ("also differs", [each for each in known if not each.decisive], "dim"),
    ):
        for text in dict.fromkeys(map(str, chosen)):  # several workloads can differ alike
            yield wrapped(f"{title}: {text}", width, style=style)
    if unknown:
        yield wrapped(f"known for one side only: {', '.join(unknown)}", width, style="dim")


def _heading(line: ComparisonLine, *, cached: bool) -> str:
    arrow = " ↓" if line.better is Direction.LOWER else ""
    cache = f" ({line.cache})" if cached else ""
    return f"{line.workload}{cache}, {metric_text(line.metric)}{arrow}"


def _sample(sample: SampleSummary, unit: Unit, *, spread: bool) -> str:
    told = f" ± {sample.spread * 100:.0f} %" if spread and sample.spread is not None else ""
    return f"{format_value(sample.median, unit)}{told}"


def _ratio(line: ComparisonLine) -> str:
    answer = line.answer
    if answer.ratio is None:
        return "–"
    if answer.interval is None:
        return ratio_text(answer.ratio)[0]
    ratio, low, high = ratio_text(answer.ratio, answer.interval.low, answer.interval.high)
    return f"{ratio} ({low}–{high})"


def _mean(mean: RatioMean) -> str:
    better = "lower is better" if mean.better is Direction.LOWER else "higher is better"
    size = f", blocks of {mean.block_size}" if mean.block_size else ""
    ratio = f"{mean.ratio:.3f}"
    span = (
        f"{mean.interval.low:.3f}–{mean.interval.high:.3f}"
        if mean.interval
        else "too few trials for an interval"
    )
    return f"geometric mean of {mean.of} workloads on {mean.stack} ({better}{size}): {ratio} ({span})"


def _remarks(lines: Sequence[ComparisonLine]) -> Iterator[str]:
    """Yield remarks: ratios far from the quotient of the medians, differences that require independent trials."""
    differing = [each for each in lines if each.answer.differs]
    far = [each for each in differing if is_far(each.answer.ratio, each.answer.of_medians)]
    if far:
        unpaired = any(each.answer.method in UNPAIRED for each in far)
        how = "from all pairs of trials" if unpaired else "block by block"
        told = [f"{ratio_text(each.answer.of_medians or 1.0)[0]} ({_place(each)})" for each in far]
        yield f"ratios are computed {how}: the quotient of the medians is {first_of(told, MOST_NAMED)}"
    holding = [each for each in differing if each.answer.holds]
    fragile = [each for each in holding if each.answer.fragile]
    if fragile:
        what = of_differences(len(fragile), len(holding), "holds", "hold")
        needed = f"which needs {INDEPENDENCE_LEAST} trials of each to check"
        yield f"{what} only if trials are independent, {needed}: {first_of([*map(_place, fragile)], MOST_NAMED)}"


def _place(line: ComparisonLine) -> str:
    return f"{line.workload} on {line.stack}, {metric_text(line.metric)}"


def _legend(found: CampaignComparison) -> str:
    count = len({(line.stack, line.workload, line.metric, line.cache) for line in found.lines})
    several = any(line.sampled == "campaigns" for line in found.lines)
    what = "the campaigns' medians" if several else "the usable trials"
    said = [f"medians of {what} (± half their range, if the terminal is wide enough)"]
    if any(line.better is Direction.LOWER for line in found.lines):
        said.append("↓ lower is better")
    if any(line.answer.verdict is Verdict.ALIKE for line in found.lines):
        said.append("alike (± x %): the two are shown to differ by less than x %")
    if any(line.verdict.startswith("maybe") for line in found.lines):
        said.append(f"maybe: not significant after Holm correction over {count} comparisons")
    if found.a.campaigns != found.b.campaigns and (found.a.sequential or found.b.sequential):
        said.append(
            "trials of one side were repeated until its ranking was clear: a 95 % CI may cover only 92 % here"
        )
    return " · ".join(said)
