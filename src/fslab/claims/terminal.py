"""Shows verdicts and tables in a terminal of any width, readable without colour. Computes nothing."""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from math import exp, log

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from fslab.claims.model import (
    ClaimAnswer,
    ClaimVerdict,
    EvaluatedClaim,
    PublishedTable,
    TableCell,
    Verdicts,
)
from fslab.claims.verdict_words import SIGN, VERDICT_NAMES, has_printed, level_words, summaries, verdict_words
from fslab.claims.words import ratio_words

WIDEST = 100
STYLE = {
    ClaimVerdict.HOLDS: "green",
    ClaimVerdict.IN_PART: "green",
    ClaimVerdict.CONTRADICTED: "bold red",
    ClaimVerdict.REPLICATED: "green",
    ClaimVerdict.PARTLY: "green",
    ClaimVerdict.SMALL: "green",
    ClaimVerdict.TIE: "cyan",
    ClaimVerdict.DIFFERS: "magenta",
    ClaimVerdict.OPPOSITE: "bold red",
    ClaimVerdict.REVERSED: "bold red",
    ClaimVerdict.OPEN: "yellow",
    ClaimVerdict.NO_LONGER: "magenta",
    ClaimVerdict.NOT_TESTED: "dim",
    ClaimVerdict.UNKNOWN: "dim",
}
PRINTED, HERE = "printed", "here"
BARE = "?"
WIDE = 50.0  # %; wider intervals are shown as a factor, because ± would be misread


def show(verdicts: Verdicts, console: Console, *, undecided: bool = False) -> None:
    """Print how many claims have which verdict, then the claims with both answers."""
    width = min(console.width, WIDEST)
    _print(console, Text(f"{verdicts.study}: {verdicts.title}", style="bold"))
    for line in (verdicts.source, verdicts.conditions):
        if line:
            _lines(console, line, width, "  ", "dim")
    for one in verdicts.nearness:
        near = {True: "near", False: "not near", None: "unknown"}[one.near]
        _lines(
            console,
            f"{one.name}: {one.theirs} in the publication, {one.here} here ({near})",
            width,
            "  ",
            "dim",
        )
    for line in verdicts.known_limits:
        _lines(console, f"known limit: {line}", width, "  ", "dim")
    if verdicts.claims:
        for line in summaries(verdicts):
            _lines(console, line, width, "  ", "bold")
    shown = [claim for claim in verdicts.claims if not undecided or is_open(claim)]
    told = {PRINTED, HERE} if has_printed(verdicts.claims) or verdicts.campaign is None else {HERE}
    for claim in shown:
        _claim(claim, told, console, width)
    if not shown:
        console.print("\nno claim is open" if verdicts.claims else "\nthis study has no claims")
    if verdicts.claims:
        _legend(verdicts, told, console, width)


def show_tables(verdicts: Verdicts, console: Console) -> None:
    """Print each table: printed multiples of the reference above, measured ones with their intervals below."""
    measured = verdicts.campaign is not None
    _print(console, Text(f"{verdicts.study}: {verdicts.title}", style="bold"))
    for line in (verdicts.source, verdicts.conditions):
        if line:
            _lines(console, line, console.width, "  ", "dim")
    if not verdicts.tables:
        console.print("\nthis publication prints no figures")
    for table in verdicts.tables:
        below = f"{PRINTED} above, {HERE} below" if measured else PRINTED
        console.print()
        _lines(
            console,
            f"Table {table.name}, as multiples of {table.reference}; {below}",
            console.width,
            "  ",
            "bold",
        )
        wide = list(_grids(table, measured=measured))
        fits = all(
            console.measure(grid, options=console.options.update(width=10_000)).maximum <= console.width
            for grid in wide
        )
        for grid in wide if fits else _tall(table, measured=measured):
            console.print(grid)
    if measured and verdicts.tables:
        console.print()
        _lines(
            console,
            f"±, ×÷: half of the 95 % interval; {BARE}: too few trials for one",
            console.width,
            "  ",
            "dim",
        )


def is_open(claim: EvaluatedClaim) -> bool:
    return claim.measured is not None and claim.measured.verdict is ClaimVerdict.OPEN


def _claim(claim: EvaluatedClaim, told: Collection[str], console: Console, width: int) -> None:
    console.print()
    lead = f"{claim.id:>3}  "
    _lines(console, lead + claim.says, width, " " * len(lead), "bold")
    place = f"  on {', '.join(claim.on)}" if claim.on else ""
    _lines(console, " " * len(lead) + " · ".join(claim.that) + place, width, " " * (len(lead) + 2), "dim")
    for name, answer in ((PRINTED, claim.published), (HERE, claim.measured)):
        if answer is not None and name in told:
            _answer(name, answer, console, width, len(lead))
    if claim.note:
        _lines(console, f"{' ' * len(lead)}read as: {claim.note}", width, " " * (len(lead) + 2), "dim")


def _answer(name: str, answer: ClaimAnswer, console: Console, width: int, indent: int) -> None:
    lead = f"{' ' * indent}{name:<8} {SIGN[answer.verdict]} "
    verdict = verdict_words(answer, printed=name == PRINTED) if answer.verdict in VERDICT_NAMES else ""
    body = f"{verdict}: {answer.words}" if verdict else answer.words
    wrapped = textwrap.wrap(body, max(width - len(lead), 20), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(wrapped):
        text = Text(lead if number == 0 else " " * len(lead))
        if number == 0 and verdict and line.startswith(verdict):
            text.append(verdict, style=STYLE[answer.verdict]).append(line.removeprefix(verdict))
        else:
            text.append(line, style=STYLE[answer.verdict] if not verdict else "")
        _print(console, text)


def _legend(verdicts: Verdicts, told: Collection[str], console: Console, width: int) -> None:
    lines = []
    if PRINTED in told and any(claim.published for claim in verdicts.claims):
        lines.append(f"{PRINTED}: the publication's own figures, single numbers judged as they stand")
    if any(claim.measured for claim in verdicts.claims):
        lines.append(
            f"{HERE}: this machine's trials, with intervals at the level of the verdicts (95 % or more, over all "
            f"looks); {level_words(verdicts)}"
        )
    console.print()
    for line in lines:
        _lines(console, line, width, "  ", "dim")


def _grids(table: PublishedTable, *, measured: bool) -> Iterator[Grid]:
    """Yield the table with a column for each stack."""
    yield _grid(
        ["", *table.stacks],
        [(f"{line.workload}\n  {line.metric}", line.cells) for line in table.lines],
        measured=measured,
    )


def _tall(table: PublishedTable, *, measured: bool) -> Iterator[Grid]:
    """Yield one table for each workload, with a row for each stack and a column for each metric."""
    for workload in dict.fromkeys(line.workload for line in table.lines):
        lines = [line for line in table.lines if line.workload == workload]
        rows = [(stack, [line.cells[number] for line in lines]) for number, stack in enumerate(table.stacks)]
        yield _grid([workload, *(line.metric for line in lines)], rows, measured=measured)
        yield Grid(show_header=False, box=None)


def _grid(titles: Sequence[str], rows: Sequence[tuple[str, Sequence[TableCell]]], *, measured: bool) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column(Text(titles[0], style="bold"), overflow="fold")
    for title in titles[1:]:
        grid.add_column(title, justify="right", no_wrap=True)
    for label, cells in rows:
        grid.add_row(Text(label), *(_field(cell, measured=measured) for cell in cells))
    return grid


def _field(cell: TableCell, *, measured: bool) -> Text:
    above = "–" if cell.printed is None else ratio_words(cell.printed)
    if not measured:
        return Text(above)
    return Text("\n").join(
        (Text(above, style="dim"), Text(_measured(cell), style="" if cell.measured else "dim"))
    )


def _measured(cell: TableCell) -> str:
    """Return ``1.12 ±7%`` (half the interval's width on logarithms), ``1.12 ×÷2.3`` (wide), ``1.12 ?`` (none)."""
    if cell.measured is None:
        impossible = bool(cell.why and cell.why.startswith("not possible"))
        return "not possible" if impossible else "–"
    if cell.low is None or cell.high is None:
        reference = cell.measured == 1 and cell.printed in {None, 1} and cell.why is None
        return ratio_words(cell.measured) + ("" if reference else f" {BARE}")
    share = log(cell.high / cell.low) / 2 * 100
    if share > WIDE:
        return f"{ratio_words(cell.measured)} ×÷{exp(share / 100):.1f}"
    return (
        f"{ratio_words(cell.measured)} ±{share:.1f}%"
        if share < 0.995
        else f"{ratio_words(cell.measured)} ±{share:.0f}%"
    )


def _lines(console: Console, line: str, width: int, indent: str, style: str = "") -> None:
    for part in textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ):
        _print(console, Text(part, style=style))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
