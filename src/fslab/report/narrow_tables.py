"""Tables with a row per stack, for narrow terminals: all metrics in one table, or one table per metric.

A value is always on one line with its spread and note numbers: fields do not wrap, note numbers have their own column.
"""

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.report import cells
from fslab.report.model import Report, Row, StackColumn

UNLIMITED = 10_000


def tall_tables(report: Report, console: Console) -> Iterator[tuple[list[Row], list[RenderableType]]]:
    """Yield the rows of each workload with one table of all rows or, if that is too wide, a table per row."""
    for workload in dict.fromkeys(row.workload for row in report.rows):
        rows = [row for row in report.rows if row.workload == workload]
        together = _beside(report.stacks, rows)
        if width_of(together, console) <= console.width:
            yield rows, [together]
        else:
            yield rows, [_alone(report.stacks, row) for row in rows]


def width_of(table: Table, console: Console) -> int:
    """Return the width that a table needs so that nothing folds, in columns."""
    return console.measure(table, options=console.options.update(width=UNLIMITED)).maximum


def _beside(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> Table:
    """Return one table with a column for each metric."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(Text(rows[0].workload, style="bold"), overflow="fold")
    for row in rows:
        widest = max(cells.one_line(row, summary).cell_len for summary in row.summaries)
        title = textwrap.wrap(cells.metric_label(row), max(widest, 12), break_long_words=False)
        table.add_column(Text("\n".join(title)), no_wrap=True)
    for index, label in _by_filesystem(stacks, rows):
        fields = () if index is None else (cells.one_line(row, row.summaries[index]) for row in rows)
        table.add_row(Text(label), *fields)
    return table


def _alone(stacks: Sequence[StackColumn], row: Row) -> Group:
    """Return a heading and the table of one metric. Value, spread and note numbers have their own columns."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    for _ in ("value", "spread"):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for index, label in _by_filesystem(stacks, [row]):
        table.add_row(Text(label), *(() if index is None else cells.three_fields(row, row.summaries[index])))
    return Group(Text(f"{row.workload}, {cells.metric_label(row)}", style="bold"), table)


def _by_filesystem(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> Iterator[tuple[int | None, str]]:
    """Yield the index of a stack and its text, per line. Variants follow a heading, whose index is None."""
    here = [index for index in range(len(stacks)) if any(row.summaries[index].planned for row in rows)]
    for first in dict.fromkeys(stacks[index].lines[0] for index in here):
        own = [index for index in here if stacks[index].lines[0] == first]
        if len(own) == 1:
            yield own[0], stacks[own[0]].label
            continue
        yield None, first
        yield from ((index, f"  {' '.join(stacks[index].lines[1:])}") for index in own)
