"""The tables of a publication on a page: its figures and conditions beside those of the campaign. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from fslab.claims.model import PublishedTable, TableCell
from fslab.claims.publication_likeness import Condition
from fslab.report.page.model import PageCell, PageTable
from fslab.units import Unit, format_value, metric_text, ratio_text

NEAR = {True: "near", False: "not near", None: "unknown"}


def conditions(found: Sequence[Condition]) -> PageTable | None:
    """Return the table of the conditions; None if the publication states none."""
    if not found:
        return None
    rows = tuple(
        (one.name, tuple(PageCell(text=text) for text in (one.theirs, one.here, NEAR[one.near])))
        for one in found
    )
    return PageTable(caption="Conditions", columns=("publication", "here", "alike"), rows=rows)


def values(tables: Iterable[PublishedTable]) -> Iterator[PageTable]:
    """Yield a table with the values, in their units, of each published table of which some were measured."""
    for table in tables:
        rows = tuple(
            (f"{line.workload}, {metric_text(line.metric)}: {stack}", _fields(cell, line.unit))
            for line in table.lines
            if line.unit is not None
            for stack, cell in zip(table.stacks, line.cells, strict=True)
            if cell.printed_value is not None
        )
        if any(cell.measured_median is not None for line in table.lines for cell in line.cells):
            columns = ("published", "median here", "here ÷ published")
            yield PageTable(caption=f"Values of table {table.name}", columns=columns, rows=rows)


def _fields(cell: TableCell, unit: Unit) -> tuple[PageCell, ...]:
    printed, here = cell.printed_value, cell.measured_median
    ratio = here / printed if here is not None and printed else None
    return (
        *(PageCell(text=format_value(each, unit), sort=each, unit=unit.value) for each in (printed, here)),
        PageCell(text="–" if ratio is None else ratio_text(ratio)[0], sort=ratio),
    )
