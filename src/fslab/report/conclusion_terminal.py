"""Shows the conclusion of a report on one screen: the metrics, how far to trust them, what shows more, and the verdict
last, where a reader looks when a command has ended."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.standings import Standing, StandingCertainty
from fslab.answers.verdict_words import difference_words, needs_text
from fslab.report.conclusion import Conclusion, ConclusionWarning, finish
from fslab.report.model import Report
from fslab.report.row_words import (
    alike_margins,
    behind,
    kernels_words,
    margin,
    not_compared,
    row_name,
    slices_words,
    trials_words,
)
from fslab.report.terminal_width import NARROWEST, joined, lines_of, with_hint, wrapped
from fslab.store.campaign import CampaignStatus
from fslab.units import (
    Direction,
    counted,
    first_of,
    format_duration,
    format_size,
    format_value,
    metric_text,
    ratio_text,
)

SCREEN = 22  # lines; a usual terminal has 24, of which the prompt and what was said before take two
WIDEST = 110
COLUMNS = 4  # of the table
TABLE_FROM = 72  # columns; on a narrower terminal, each metric is a sentence
MANY = 12  # metrics there; if there are more, those with the same best stacks share a line
MOST_LINES = 3  # of those
TRUST_LINES = 3
NAMED = 3
BEST_NAMED = 3  # of the stacks that may be the best
MARGIN_LEAST = 12  # width of the last column, which gives room to words of names that a line end would cut
SIGN = {
    StandingCertainty.BEST: "★",
    StandingCertainty.ALIKE: "≈",
    StandingCertainty.OPEN: "?",
    StandingCertainty.COUNTED: "·",
    StandingCertainty.NOT_COMPARABLE: "–",
    StandingCertainty.SINGLE: " ",
}
STYLE = {StandingCertainty.BEST: "bold green", StandingCertainty.ALIKE: "green"}
_FIRM = "\N{NO-BREAK SPACE}"


def show(report: Report, conclusion: Conclusion, console: Console) -> None:
    for part in parts(report, conclusion, console):
        console.print(part, soft_wrap=True)


def parts(report: Report, conclusion: Conclusion, console: Console) -> Iterator[RenderableType]:
    """Yield the parts from top to bottom, at 80 columns on ``SCREEN`` lines, if the study's names are not too long."""
    width = min(max(console.width, NARROWEST), WIDEST)
    standings = conclusion.standings
    head = wrapped(_about(report), width, style="dim")
    legend = [wrapped(_legend(report, standings), width, style="dim")] if standings else []
    verdict = [
        _commands(_more(report, conclusion), width, style="dim"),
        Text(""),
        wrapped(conclusion.sentence, width, style="" if conclusion.claims else "bold"),
        *(_commands(line, width) for line in _to_do(report, conclusion)),
        *([wrapped(conclusion.claims, width, style="bold")] if conclusion.claims else []),
    ]
    room = SCREEN - sum(text.plain.count("\n") + 1 for text in (head, *legend, *verdict))
    shown = list(_standings(standings, width, console, room - bool(conclusion.warnings))) if standings else []
    room -= sum(len(console.render_lines(part, pad=False)) for part in shown)
    yield head
    yield from shown
    yield from legend
    # A narrower terminal has to be scrolled anyway.
    most = max(1, min(room, TRUST_LINES)) if width >= TABLE_FROM else TRUST_LINES * TABLE_FROM // width
    yield from _trust(conclusion.warnings, width, most, finish(report))
    yield from verdict


def _trust(warnings: Sequence[ConclusionWarning], width: int, most: int, below: str) -> Iterator[Text]:
    """Yield one sentence: as many warnings as fit on ``most`` lines, a single one with its hint, unless that is the
    command ``below``."""
    if len(warnings) == 1:
        hint = None if warnings[0].hint == below else warnings[0].hint
        told = with_hint(f"! {warnings[0].what}", hint, width, most=most)
    else:
        told = joined([each.what for each in warnings], width, before="! ", what="more warning", most=most)
    if warnings:
        yield wrapped(told, width, style="yellow")


def _standings(
    standings: Sequence[Standing], width: int, console: Console, room: int
) -> Iterator[RenderableType]:
    """Yield the metrics, one by one if they have room on so many lines, otherwise together."""
    if (
        width >= TABLE_FROM
        and len(console.render_lines(table := _table(standings, width), pad=False)) <= room
    ):
        yield table
    elif width >= TABLE_FROM or len(standings) > MANY:
        yield from _together(standings, width)
    else:
        yield from _sentences(standings, width)


def _table(standings: Sequence[Standing], width: int) -> Table:
    labels, values = [], []
    longest = 0
    for each in standings:
        labels.append(_label(each, standings))
        values.append(format_value(each.value, each.unit))
        longest = max(longest, *map(len, _best(each).split()))
    room = width - longest - max(map(len, labels)) - max(map(len, values)) - 2 * COLUMNS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("workload", overflow="fold")
    table.add_column("best", overflow="fold")
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("how much better", overflow="fold", max_width=max(room, MARGIN_LEAST))
    for each, label, value in zip(standings, labels, values, strict=True):
        named = f"{SIGN[each.certainty]} {_best(each)}"
        best = Text(named, style=STYLE.get(each.certainty, ""))
        table.add_row(Text(label), best, value, Text(_last_column(each)))
    return table


def _best(one: Standing) -> str:
    few = len(one.labels) <= BEST_NAMED  # such as three file systems that tie
    return first_of(one.labels, BEST_NAMED if few else 1)


def _last_column(one: Standing) -> str:
    """Return what fits beside the sign, which says that the best are alike, or that more trials are needed."""
    if one.certainty is StandingCertainty.ALIKE and behind(one):
        return "; ".join(filter(None, (behind(one), not_compared(one))))
    if one.certainty is StandingCertainty.OPEN and one.n >= one.needed:
        needed = needs_text(one.further, one.further_s).removeprefix("needs ")
        return "; ".join(filter(None, (needed, not_compared(one))))
    return margin(one)


def _sentences(standings: Sequence[Standing], width: int) -> Iterator[Text]:
    for each in standings:
        name, value = _label(each, standings).strip(), format_value(each.value, each.unit)
        first = f"{SIGN[each.certainty]} {name}: {_best(each)} {value}"
        yield wrapped(first, width, style=STYLE.get(each.certainty, ""))
        if told := margin(each):
            yield wrapped(f"  {told}", width)


def _together(standings: Sequence[Standing], width: int) -> Iterator[Text]:
    """Yield a line for the most frequent sets of best stacks: how certain that is, in how many metrics, and the largest
    factors."""
    groups: dict[tuple[StandingCertainty, frozenset[str]], list[Standing]] = {}
    for each in standings:
        compared = () if each.better is Direction.NEITHER else each.labels
        groups.setdefault((each.certainty, frozenset(compared)), []).append(each)
    ordered = sorted(groups.items(), key=lambda item: (not item[0][1], -len(item[1])))
    for (certainty, among), alike in ordered[:MOST_LINES]:
        best = first_of(alike[0].labels, NAMED) if among else ""
        ranked = sorted(alike, key=lambda one: -((one.next and (one.next.ratio or one.next.more)) or 0.0))
        named = first_of([f"{_name(one, standings)}{_factor(one)}" for one in ranked], NAMED)
        yield wrapped(
            f"{SIGN[certainty]} {best}{_word(certainty, alike)}, {counted(len(alike), 'metric')}: {named}",
            width,
            style=STYLE.get(certainty, ""),
        )
    if rest := sum(len(alike) for _, alike in ordered[MOST_LINES:]):
        yield wrapped(f"and {rest} more: --all", width, style="dim")


def _word(certainty: StandingCertainty, together: Sequence[Standing]) -> str:
    words = {
        StandingCertainty.BEST: " best",
        StandingCertainty.ALIKE: f" alike ({alike_margins(together)})",
        StandingCertainty.OPEN: ": more trials needed",
        StandingCertainty.COUNTED: ": no difference shown by counts",
        StandingCertainty.NOT_COMPARABLE: ": not all values are positive",
        StandingCertainty.SINGLE: " alone",
    }
    if certainty is StandingCertainty.SINGLE and together[0].better is Direction.NEITHER:
        return "no preferred direction"
    return words[certainty]


def _factor(one: Standing) -> str:
    if one.next is not None and one.next.more is not None:
        behind_by = abs(one.next.more) * (1 if one.better is Direction.LOWER else -1)
        return f" ({one.next_stack} {difference_words(behind_by, one.unit)})"
    if one.next is None or not one.next.ratio:
        return ""
    ratio = ratio_text(one.next.ratio)[0]
    # Where lower is better, the ratio is that of the other to the best.
    told = f"{one.next_stack} {ratio} ×" if one.better is Direction.LOWER else f"{ratio} × {one.next_stack}"
    return f" ({told})"


def _name(one: Standing, among: Sequence[Standing]) -> str:
    alone = sum(other.workload == one.workload for other in among) == 1
    return one.workload if alone else f"{one.workload} {metric_text(one.metric)}"


def _label(one: Standing, among: Sequence[Standing]) -> str:
    """Return the workload for its first metric, and the indented name of the metric for its other metrics."""
    first = next(other for other in among if other.workload == one.workload)
    return row_name(one, among) if one is first else f"  {metric_text(one.metric)}"


def _legend(report: Report, standings: Sequence[Standing]) -> str:
    used = {each.certainty for each in standings}
    alike = [each for each in standings if each.certainty is StandingCertainty.ALIKE]
    apart = any(each.not_compared for each in standings if each.certainty is StandingCertainty.BEST)
    told = (
        f"★ better than all {'compared' if apart else 'others'}" if StandingCertainty.BEST in used else "",
        f"≈ alike ({alike_margins(alike)})" if alike else "",
        "? open" if StandingCertainty.OPEN in used else "",
        "· counts of events: no difference shown" if StandingCertainty.COUNTED in used else "",
        f"× next clearly worse ({report.coverage * 100:g} % CI)"
        if any(each.next for each in standings)
        else "",
        slices_words(report),
    )
    return "; ".join(filter(None, told))


def _about(report: Report) -> str:
    """Return the title, the numbers of trials, and where they ran."""
    memory = f", {format_size(report.memory_bytes)}" if report.memory_bytes and not report.guests else ""
    scale = [f"scale {report.scale:g}"] if report.scale != 1 else []
    where = [f"kernel {kernels_words(report)}{memory}", f"on {', '.join(report.media)}"]
    return " · ".join([report.title, trials_words(report.counts), *scale, *where])


def _commands(text: str, width: int, *, style: str = "") -> Text:
    """Return a text on lines of which none ends within a command, whose blanks are ``_FIRM``, if all of them fit."""
    whole = lines_of(text, width)
    lines = whole if max(map(len, whole)) <= width else lines_of(text.replace(_FIRM, " "), width)
    return Text("\n".join(lines).replace(_FIRM, " "), style=style)


def _more(report: Report, conclusion: Conclusion) -> str:
    """Return the commands that show more."""
    notes = [f"--notes ({len(report.notes)})"] if report.notes else []
    claims = [f"fslab claims {report.in_commands}"] if conclusion.claims else []
    told = [
        f"fslab results {report.in_commands} --all",
        *notes,
        f"fslab explain {report.in_commands}",
        *claims,
    ]
    return "more: " + " · ".join(each.replace(" ", _FIRM) for each in told)


def _to_do(report: Report, conclusion: Conclusion) -> Iterator[str]:
    """Yield the command that finishes the campaign, or that decides what is open, if trials can be added."""
    undecided = [each for each in conclusion.standings if each.certainty is StandingCertainty.OPEN]
    if report.status is CampaignStatus.RUNNING or not report.resumable:
        return  # another process adds them, or none
    if report.status is not CampaignStatus.FINISHED:
        yield f"to finish it: {finish(report).replace(' ', _FIRM)}"
    elif undecided and not report.counts.as_needed:
        needed = max(max(each.n + (each.further or each.n), each.needed) for each in undecided)
        further_s = (needed - min(each.n for each in undecided)) * report.block_s
        command = f"{finish(report)} --trials {needed}".replace(" ", _FIRM)
        yield f"to decide the open ones, with all cells in about {format_duration(further_s)}: {command}"
