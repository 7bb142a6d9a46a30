"""Tables with stacks down, for terminals too narrow for stacks across: metrics beside each other, or a table for each.

No figure and no note number is ever on a line without its value: cells do not wrap, numbers of notes have a column.
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
    """For each workload its rows and one table of all of them, or where that is too wide a table for each."""
    for workload in dict.fromkeys(row.workload for row in report.rows):
        rows = [row for row in report.rows if row.workload == workload]
        together = _beside(report.stacks, rows)
        if width_of(together, console) <= console.width:
            yield rows, [together]
        else:
            yield rows, [_alone(report.stacks, row) for row in rows]


def width_of(table: Table, console: Console) -> int:
    """How wide a table is where nothing is folded."""
    return console.measure(table, options=console.options.update(width=UNLIMITED)).maximum


def _beside(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> Table:
    """A column for each metric."""
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
    """One metric: value, spread and note numbers in columns of their own, below a heading."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    for _ in ("value", "spread"):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for index, label in _by_filesystem(stacks, [row]):
        table.add_row(Text(label), *(() if index is None else cells.three_fields(row, row.summaries[index])))
    return Group(Text(f"{row.workload}, {cells.metric_label(row)}", style="bold"), table)


def _by_filesystem(stacks: Sequence[StackColumn], rows: Sequence[Row]) -> Iterator[tuple[int | None, str]]:
    """Lines of a table: variants stand under their file system; the index is that of the stack, None for a heading."""
    here = [index for index in range(len(stacks)) if any(row.summaries[index].planned for row in rows)]
    for first in dict.fromkeys(stacks[index].lines[0] for index in here):
        own = [index for index in here if stacks[index].lines[0] == first]
        if len(own) == 1:
            yield own[0], stacks[own[0]].label
            continue
        yield None, first
        yield from ((index, f"  {' '.join(stacks[index].lines[1:])}") for index in own)
