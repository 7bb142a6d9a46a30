"""Shows the results of a study on several machines in a terminal. Computes nothing: ``Fleet`` has all values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.fleet import FactSplit, Fleet, FleetRow, FleetVerdict
from fslab.analysis.history import History
from fslab.report.terminal_width import wrapped
from fslab.stats import Interval
from fslab.units import Direction, counted, listed, metric_text, ratio_text

NAMED = 6  # machines named in the first line; if there are more, only their number
STYLE = {FleetVerdict.EVERYWHERE: "bold", FleetVerdict.UNDECIDED: "dim"}


def show(found: Fleet, console: Console, *, each: bool = False) -> None:
    for part in parts(found, console.width, each=each):
        console.print(part, soft_wrap=False)


def parts(found: Fleet, width: int, *, each: bool) -> Iterator[RenderableType]:
    """Yield the machines, then each workload and metric with its stacks, then the legend."""
    names = [machine.name for machine in found.machines]
    told = f": {', '.join(names)}" if len(names) <= NAMED else ""
    yield wrapped(f"{found.study} on {counted(len(names), 'machine')}{told}", width, style="bold")
    headings: dict[str, list[FleetRow]] = {}
    for row in found.rows:
        headings.setdefault(f"{row.workload}, {metric_text(row.metric)}", []).append(row)
    for heading, rows in headings.items():
        yield Text("")
        yield wrapped(heading, width, style="bold")
        for row in rows:
            yield wrapped(f"  {sentence(row)}", width, style=STYLE.get(row.verdict, ""))
            if each or row.verdict is FleetVerdict.FEW_MACHINES:
                yield _machines(row)
            for split in row.coincides:
                yield wrapped(f"    {_split(split)}", width, style="yellow")
    yield Text("")
    yield wrapped(_legend(found), width, style="dim")


def sentence(row: FleetRow) -> str:
    """Return ``xfs 1.42 × ext4 (1.30–1.55) on average, 1.12–1.80 predicted on another machine: better there too``."""
    if row.average is None or row.interval is None or row.prediction is None:
        return f"{row.stack} ÷ {row.reference}{_left_out(row)}"
    (average,) = ratio_text(row.average)
    return (
        f"{row.stack} {average} × {row.reference} ({_interval(row.interval)}) on average, {_interval(row.prediction)} "
        f"predicted on another machine: {_verdict(row)}{_spread(row)}{_left_out(row)}"
    )


def _left_out(row: FleetRow) -> str:
    if not row.left_out:
        return ""
    names = ", ".join(row.left_out) if len(row.left_out) <= NAMED else f"{len(row.left_out):,}"
    return f"; without {names}"


def _verdict(row: FleetRow) -> str:
    above = (row.average or 1.0) > 1
    better = above is (row.better is Direction.HIGHER)
    directed = row.better is not Direction.NEITHER
    words = ("better" if better else "worse") if directed else ("more" if above else "less")
    told = {
        FleetVerdict.EVERYWHERE: f"{words} there too",
        FleetVerdict.ON_AVERAGE: f"{words} on average; another machine may differ",
    }
    return told.get(row.verdict, "no difference shown on average")


def _spread(row: FleetRow) -> str:
    if not row.spread or row.share is None:
        return "; no difference between machines detected"
    return f"; machines differ by ± {row.spread * 100:.2g} % ({row.share * 100:.0f} % of the variance)"


def _machines(row: FleetRow) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for number in range(4):
        table.add_column(justify="right" if number == 1 else "left", no_wrap=True)
    for one in sorted(row.machines, key=lambda one: one.ratio):
        interval = f"({_interval(one.interval)})"
        table.add_row(f"    {one.machine}", *ratio_text(one.ratio), interval, counted(one.n, "block"))
    return table


def _split(split: FactSplit) -> str:
    ratios = " and ".join(ratio_text(*split.ratios))
    return (
        f"coincides with {listed(split.facts)}: {ratios} on {len(split.machines[0])} and {len(split.machines[1])} "
        f"machines (p = {split.p_value:.2g}); this need not be the cause"
    )


def _interval(span: Interval) -> str:
    return "–".join(ratio_text(span.low, span.high))


def _legend(found: Fleet) -> str:
    few = any(row.verdict is FleetVerdict.FEW_MACHINES for row in found.rows)
    intervals = "" if few else ": confidence of the average, prediction for another machine like these"
    said = (
        f"combining needs {found.needed} machines" if few else "",
        "a ratio divides the figures: of a latency, below 1 is better",
        f"95 % intervals{intervals}",
        f"{counted(found.uncommon, 'cell')} that not all machines have" if found.uncommon else "",
        f"too few blocks on every machine: {'; '.join(found.partial)}" if found.partial else "",
    )
    return " · ".join(filter(None, said))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownChange:
    """A change of level on a machine.

    ``figure``: the metric that changed. ``words``: by how much. ``facts``: facts that changed at the same time.
    """

    machine: str
    figure: str
    before: str
    since: str
    words: str
    facts: str


def fleet_changes(histories: Sequence[History]) -> list[ShownChange]:
    """Return the changes of all machines, newest first."""
    found = [
        ShownChange(
            machine=history.machine or "this machine",
            figure=f"{series.workload} on {series.stack}, {metric_text(series.metric)}",
            before=change.before,
            since=change.since,
            words=change.words,
            facts=", ".join(map(str, change.facts)),
        )
        for history in histories
        for series in history.series
        for change in series.changes
    ]
    return sorted(found, key=lambda each: (each.since, each.machine, each.figure), reverse=True)


def changes_summary(histories: Sequence[History]) -> str:
    """Return a summary such as ``12 changes of level on 3 of 4 machines``.

    If machines have too few campaigns to detect a change, it also gives their number and the number that is needed.
    """
    found = fleet_changes(histories)
    with_some = len({each.machine for each in found})
    few = sum(len(each.campaigns) < each.enough for each in histories)
    enough = max((each.enough for each in histories), default=0)
    said = f"{counted(len(found), 'change')} of level on {with_some} of {counted(len(histories), 'machine')}"
    where = f"on {counted(few, 'machine')}, a change cannot be detected yet"
    return f"{said}; {where}: fewer than {enough} campaigns" if few else said
