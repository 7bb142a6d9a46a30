"""Shows the history of a study in a terminal. Computes nothing: ``History`` has all values."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.history import History, HistoryPoint, HistorySeries, LevelChange
from fslab.report.terminal_width import wrapped
from fslab.stats.median import MEDIAN_CI
from fslab.units import Direction, counted, format_value, metric_text

BARS = "▁▂▃▄▅▆▇█"
LISTED = 3  # series; up to this number, each campaign has a line, otherwise there is only a curve


def show(found: History, console: Console) -> None:
    for part in parts(found, console.width):
        console.print(part, soft_wrap=False)


def parts(found: History, width: int) -> Iterator[RenderableType]:
    """Yield the title, what changed on the machine, then each series with its changes, then the legend."""
    span = f"{found.campaigns[0]} … {found.campaigns[-1]}" if found.campaigns else "none"
    title = f"{found.study} on {found.machine or 'this machine'}: {counted(len(found.campaigns), 'campaign')}, {span}"
    yield wrapped(title, width, style="bold")
    for step in found.steps:
        for each in step.facts:
            yield wrapped(f"{step.before} → {step.after}: {each}", width, style="yellow")
    for series in found.series:
        yield Text("")
        yield from _series(series, found.enough, listed=len(found.series) <= LISTED, width=width)
    yield Text("")
    yield wrapped(_legend(found), width, style="dim")


def curve(values: Sequence[float]) -> str:
    """Return one bar per value. The smallest value has the lowest bar, the largest value the highest."""
    low, high = min(values), max(values)
    if high == low:
        return BARS[len(BARS) // 2] * len(values)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in values)


def _series(series: HistorySeries, enough: int, *, listed: bool, width: int) -> Iterator[RenderableType]:
    arrow = " ↓" if series.better is Direction.LOWER else ""
    name = f"{series.workload} on {series.stack} ({series.cache}), {metric_text(series.metric)}{arrow}"
    yield wrapped(name, width, style="bold")
    if listed:
        yield _points(series)
    medians = [point.median for point in series.points]
    first, last = (format_value(value, series.unit) for value in (medians[0], medians[-1]))
    yield wrapped(f"  {curve(medians)}  first {first}, last {last}", max(width, len(medians) + 40))
    for change in series.changes:
        yield wrapped(f"  {_change(change)}", width)
    if not series.changes:
        few = f"too few to detect a change of level ({enough} needed)"
        words = few if len(medians) < enough else "no change of level detected"
        yield wrapped(f"  {counted(len(medians), 'campaign')}: {words}", width, style="dim")


def _points(series: HistorySeries) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    since = {change.since for change in series.changes}
    for number in range(4):
        table.add_column(justify="right" if number in {1, 2} else "left", no_wrap=True)
    for point in series.points:
        mark, median = "←" if point.campaign in since else "", format_value(point.median, series.unit)
        table.add_row(f"  {point.campaign}", median, _interval(point, series), mark)
    return table


def _interval(point: HistoryPoint, series: HistorySeries) -> str:
    trials = counted(point.n, "trial")
    if point.interval is None:
        return trials
    low, high = (format_value(value, series.unit) for value in (point.interval.low, point.interval.high))
    return f"{low} – {high}, {trials}"


def _change(change: LevelChange) -> str:
    changed = ", ".join(map(str, change.facts))
    with_it = f"changed at the same time: {changed}" if changed else "no known fact of the machine changed"
    return f"since {change.since}: {change.words}; {with_it}"


def _legend(found: History) -> str:
    drawn = any(point.interval for series in found.series for point in series.points)
    said = [f"medians of each campaign's usable trials{f' with {MEDIAN_CI}' if drawn else ''}"]
    if len(found.campaigns) < found.enough:
        said.append(
            f"a change can be detected from {found.enough} campaigns on; to compare two: fslab compare"
        )
    if found.elsewhere:
        said.append(f"left out: {counted(found.elsewhere, 'campaign')} of other machines")
    if found.former:
        said.append(f"left out: {counted(found.former, 'cell')} that the last campaign does not have")
    return " · ".join(said)
