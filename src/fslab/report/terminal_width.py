"""Fits a report into a terminal: shortens sentences by clauses and words, makes tables that are not too wide. Pure."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.report import table_fields
from fslab.report.model import Report, Row, StackColumn
from fslab.units import counted

INDENT = 2
NARROWEST = 20

_CLAUSE = re.compile(
    r"(?:, or|, so that|[;:])(?= )"
)  # not a comma: what follows "; without it," is not a statement
STATEMENT = 4  # words; fewer before a colon, such as "unsupported: fill", only say what the rest is about

UNLIMITED = 10_000


def lines_of(text: str, width: int, hang: int | None = None) -> list[str]:
    """Wrap a text to ``width`` columns. All lines but the first are indented by ``hang``, or further than the first."""
    indent = " " * (len(text) - len(text.lstrip(" ")) + INDENT if hang is None else hang)
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def wrapped(text: str, width: int, *, style: str = "", hang: int | None = None) -> Text:
    return Text("\n".join(lines_of(text, max(width, NARROWEST), hang)), style=style)


def with_hint(what: str, hint: str | None, width: int, *, most: int = 2) -> str:
    """Return ``what → hint``, with as many clauses of the hint as fit on ``most`` lines.

    If not even one clause fits on ``most`` lines, the hint is omitted.
    """
    what, hint = _that_may_fit(what, width, most), _that_may_fit(hint or "", width, most)
    told = [f"{what} → {clauses}" for clauses in _shorter(hint)] if hint else []
    return _first(told, width, most) or fitted(what, width, most=most)


def fitted(text: str, width: int, *, most: int = 2) -> str:
    """Return a text, with as many clauses as fit on ``most`` lines.

    If not even one clause fits on ``most`` lines, as many words as fit.
    """
    text = _that_may_fit(text, width, most)
    if found := _first(_shorter(text), width, most):
        return found
    words = text.split()
    while len(words) > 1 and len(lines_of(" ".join(words) + " …", width)) > most:
        words.pop()
    return f"{' '.join(words)} …"


def joined(texts: Sequence[str], width: int, *, what: str, before: str = "", most: int = 2) -> str:
    """Return as many of the texts as fit on ``most`` lines, and how many more there are; of the first at least its
    beginning. ``what``: what one of those left out is."""
    for shown in range(len(texts), 0, -1):
        left = [counted(len(texts) - shown, what)] if shown < len(texts) else []
        told = _that_may_fit(before + "; ".join([*texts[:shown], *left]), width, most)
        if len(lines_of(told, width)) <= most:
            return told
    return fitted(before + "".join(texts[:1]), width, most=most)


def _that_may_fit(text: str, width: int, most: int) -> str:
    """Return the beginning of a text, longer than what fits on ``most`` lines: a stored text can have megabytes."""
    return text[: (most + 2) * width]


def _first(candidates: Sequence[str], width: int, most: int) -> str | None:
    """Return the first candidate that fits on ``most`` lines; None if all need more."""
    return next((each for each in candidates if len(lines_of(each, width)) <= most), None)


def _shorter(text: str) -> list[str]:
    """Return the text, then the text without its last clause, and so on, down to its first clause."""
    found = ((text[: match.start()], match[0]) for match in _CLAUSE.finditer(text))
    before = [each for each, end in found if end != ":" or len(each.split()) >= STATEMENT]
    return [text, *(each for each in reversed(before) if each.count("(") <= each.count(")"))]


def tall_tables(report: Report, console: Console) -> Iterator[tuple[list[Row], list[RenderableType]]]:
    """Yield the rows of each workload with one table of all rows or, if that is too wide, a table per row."""
    for workload in dict.fromkeys(row.workload for row in report.rows):
        rows = [row for row in report.rows if row.workload == workload]
        together = _beside(report.stacks, rows)
        if width_of(together, console) <= console.width:
            yield rows, [together]
        else:
            yield rows, [_alone(report.stacks, row, console) for row in rows]


def width_of(table: Table, console: Console) -> int:
    """Return the width that a table needs so that nothing folds, in columns."""
    return console.measure(table, options=console.options.update(width=UNLIMITED)).maximum


def _beside(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> Table:
    """Return one table with a column for each metric."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(Text(rows[0].workload, style="bold"), overflow="fold")
    for row in rows:
        widest = max(table_fields.one_line(row, summary).cell_len for summary in row.summaries)
        title = textwrap.wrap(table_fields.metric_label(row), max(widest, 12), break_long_words=False)
        table.add_column(Text("\n".join(title)), no_wrap=True)
    for index, label in _by_filesystem(stacks, rows):
        fields = () if index is None else (table_fields.one_line(row, row.summaries[index]) for row in rows)
        table.add_row(Text(label), *fields)
    return table


def _alone(stacks: Sequence[StackColumn], row: Row, console: Console) -> Group:
    """Return a heading and the table of one metric. Value, spread and note numbers have their own columns.

    Labels that are too long wrap, so that their other lines are indented further than a label.
    """
    named = _by_filesystem(stacks, [row])
    labels = [label for _, label in named]
    excess = width_of(_fields(row, named), console) - console.width
    room = max(map(len, labels), default=0) - max(excess, 0)
    return Group(
        Text(f"{row.workload}, {table_fields.metric_label(row)}", style="bold"),
        _fields(
            row,
            [(index, "\n".join(lines_of(label, max(room, NARROWEST)) or [""])) for index, label in named],
        ),
    )


def _fields(row: Row, named: Sequence[tuple[int | None, str]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    for _ in ("value", "spread"):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for index, label in named:
        table.add_row(
            Text(label), *(() if index is None else table_fields.three_fields(row, row.summaries[index]))
        )
    return table


def _by_filesystem(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> list[tuple[int | None, str]]:
    """Return the index of a stack and its text, per line. Variants follow a heading, whose index is None."""
    here = [index for index in range(len(stacks)) if any(row.summaries[index].planned for row in rows)]
    named: list[tuple[int | None, str]] = []
    for first in dict.fromkeys(stacks[index].lines[0] for index in here):
        own = [index for index in here if stacks[index].lines[0] == first]
        if len(own) == 1:
            named.append((own[0], stacks[own[0]].label))
            continue
        named.append((None, first))
        named.extend((index, f"  {' '.join(stacks[index].lines[1:])}") for index in own)
    return named
