"""Shows a report in a terminal: the table, the results in words, the notes, and the provenance.

The table has a column per stack and rows for workloads. If that is too wide, each workload has a table with a row per
stack. Computes nothing: the report has all values.
"""

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.table_rows import Mark
from fslab.answers.verdict_words import percent
from fslab.report.model import Note, NotePlace, Report, Row, StackColumn, Summary
from fslab.report.row_words import (
    machine_words,
    ranking_words,
    signs_words,
    slices_words,
    spread_of_counts,
    trials_words,
)
from fslab.report.terminal_width import NARROWEST, lines_of, wrapped
from fslab.store.campaign import CampaignStatus
from fslab.units import Direction, Unit, counted, first_of, format_size, format_value, metric_text

NAMED = 3  # cells of a note in full
UNLIMITED = 10_000  # columns
STYLE = {Mark.BEST: "bold green", Mark.MAYBE_BEST: "green", Mark.NONE: ""}
# The label names the counted unit once; each value then has only "/s".
COUNTED = frozenset({Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND})
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def show(report: Report, console: Console, *, notes: bool = False) -> None:
    """Print a report. ``notes``: print each note in full."""
    for part in parts(report, console, notes=notes):
        console.print(part, soft_wrap=False)


def parts(report: Report, console: Console, *, notes: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of a report from top to bottom, fitted to the console's width."""
    width = max(console.width, NARROWEST)
    yield Text(report.title, style="bold")
    if report.status is not CampaignStatus.FINISHED:
        yield wrapped(_unfinished(report), width, style="yellow")
    if report.counts.stored:
        yield from _tables(report, console, width)
        yield wrapped(_legend(report), width, style="dim")
        yield Text("")
    for line in (*_notes(report, in_full=notes), *_options(report), *_provenance(report)):
        yield wrapped(line, width, style="dim")


def wide_table(report: Report) -> Table:
    """Return a table with a column per stack and rows for workloads."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for stack in report.stacks:
        table.add_column(Text("\n".join(stack.lines)), justify="right", vertical="top", no_wrap=True)
    previous = None
    for row in report.rows:
        name = Text(row.workload if row.workload != previous else "")
        label = Text("\n").join((name, Text(metric_label(row), style="dim")))
        table.add_row(label, *(two_lines(row, summary) for summary in row.summaries))
        previous = row.workload
    return table


def _tables(report: Report, console: Console, width: int) -> Iterator[RenderableType]:
    table = wide_table(report)
    if width_of(table, console) <= console.width:
        yield table
        yield Text("")
        if len(report.stacks) > 1:
            yield from _words(report.rows, width)
        return
    for rows, talls in tall_tables(report, console):
        for tall in talls:
            yield tall
            yield Text("")
        yield from _words(rows, width)
        yield Text("")


def _words(rows: Sequence[Row], width: int) -> Iterator[RenderableType]:
    """Yield the results in words. Metrics of a workload with the same words share a line, in the place of the first."""
    alike: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.workload, row.words, row.ranking), []).append(row)
    for first, *others in alike.values():
        alone = sum(other.workload == first.workload for other in rows) == 1
        metrics = ", ".join(metric_label(row) for row in (first, *others))
        name = first.workload if alone else f"{first.workload}, {metrics}"
        yield wrapped(f"{name}: {first.words}", width)
        shared = any(len(place.stacks) > 1 for place in first.ranking)
        if shared and (len(first.ranking) > 1 or first.ranking[0].ahead):
            yield wrapped(f"  ranked: {ranking_words(first.ranking)}", width)


def _unfinished(report: Report) -> str:
    state = report.status.value.replace("_", " ")
    advice = f"; finish it with: fslab run --resume {report.in_commands}" if report.resumable else ""
    counts = report.counts
    if counts.as_needed:
        planned = f"{counts.planned} to {counts.planned_most} (as many as needed)"
        verb = "is" if counts.stored == 1 else "are"
        return f"{state}: {counted(counts.stored, 'trial')} {verb} stored, of {planned}{advice}"
    missing = advice if counts.stored < counts.planned else ""
    verb = "is" if counts.planned == 1 else "are"
    return f"{state}: {counts.stored} of {counted(counts.planned, 'trial')} {verb} stored{missing}"


def _legend(report: Report) -> str:
    counts = [usual_count(row) for row in report.rows]
    trials = (
        f"median of {spread_of_counts(counts)} ± half their range" if max(counts) > 1 else "one trial each"
    )
    said = (
        *signs_words(report),
        trials if max(counts) > 0 else "",
        f"× with {report.coverage * 100:g} % CI" if any(row.answers for row in report.rows) else "",
        slices_words(report),
    )
    return " · ".join(filter(None, said))


def _notes(report: Report, *, in_full: bool) -> Iterator[str]:
    """Yield a line per note. If details are omitted, also yield how to see them."""
    form = _in_full if in_full else _in_short
    yield from (form(note, report.counts.stored) for note in report.notes)
    if not in_full and any(note.summary for note in report.notes):
        yield f"Details and remedies: fslab results {report.in_commands} --notes"


def _in_short(note: Note, stored: int) -> str:
    """Return the note's summary and trials. Failures, and notes about the whole campaign, are returned in full."""
    if note.summary is None or not note.places:
        return _in_full(note, stored)
    return f"{_head(note)}: {note.summary} ({_where(note, stored)})"


def _in_full(note: Note, stored: int) -> str:
    message = " ".join(note.message.split())
    hint = f" → {note.hint}" if note.hint else ""
    where = f" ({_where(note, stored, named=NAMED)})" if note.places else ""
    return f"{_head(note)}: {message}{where}{hint}"


def _where(note: Note, stored: int, *, named: int = 1) -> str:
    """Return a note's trials, with its cells if there are at most ``named``, else with so many of several."""
    if len(note.places) > 1 and note.trials == stored:
        return f"all {stored} trials"
    places = first_of([*map(_place, note.places)], named, ";")
    if len(note.places) <= named:
        return places
    number = f"{counted(note.trials, 'trial')} of {counted(len(note.places), 'cell')}"
    return f"{number}: {places}" if named > 1 else number


def _place(place: NotePlace) -> str:
    return f"{place.count} of {place.of} on {place.stack}, {place.workload}"


def _head(note: Note) -> str:
    kind = note.kind.replace(":", ", ").replace("_", " ")
    what = kind if kind.startswith(note.severity) else f"{note.severity}, {kind}"
    return f"{superscripts([note.number])} {what}"


def _options(report: Report) -> Iterator[str]:
    """Yield the options that the column labels omit because they do not distinguish the stacks."""
    for stack in report.stacks:
        told = [text for text in _nondefault(stack) if text not in stack.lines]
        if told:
            yield f"{stack.label}: {', '.join(told)}"


def _nondefault(stack: StackColumn) -> Iterator[str]:
    if stack.mkfs_options:
        yield f"mkfs {stack.mkfs_options}"
    if stack.mount_options != "defaults":
        yield stack.mount_options
    if stack.settings:
        yield stack.settings


def _provenance(report: Report) -> Iterator[str]:
    machine = (f"kernel {report.kernel or 'unknown'}", *machine_words(report))
    for guest in report.guests:
        size = f", {format_size(guest.memory_bytes)} memory" if guest.memory_bytes else ""
        processors = f", {guest.cpus} CPU{'s' * (guest.cpus != 1)}" if guest.cpus else ""
        yield f"in a {guest.machine} guest: kernel {guest.kernel or 'unknown'}{processors}{size}"
    yield " · ".join((*machine, f"on {', '.join(report.media)}"))
    if report.scale != 1:
        yield f"scale {report.scale:g} of the study's sizes, counts and run times (details: fslab plan)"
    begun = f"{report.created:%Y-%m-%d %H:%M} UTC"
    yield f"campaign {report.campaign} · {begun} · {trials_words(report.counts)}"


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
        widest = max(one_line(row, summary).cell_len for summary in row.summaries)
        title = textwrap.wrap(metric_label(row), max(widest, 12), break_long_words=False)
        table.add_column(Text("\n".join(title)), no_wrap=True)
    for index, label in _by_filesystem(stacks, rows):
        fields = () if index is None else (one_line(row, row.summaries[index]) for row in rows)
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
        Text(f"{row.workload}, {metric_label(row)}", style="bold"),
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
        table.add_row(Text(label), *(() if index is None else three_fields(row, row.summaries[index])))
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


def two_lines(row: Row, summary: Summary) -> Text:
    """Return mark and value on the first line, spread and note numbers on the second."""
    if not summary.planned:
        return Text("")
    first = Text(f"{summary.sign} {_value(row, summary)}", style=STYLE[summary.mark])
    second = f"{_spread(row, summary)} {superscripts(summary.notes)}"
    return Text("\n").join((first, Text(second, style="dim")))


def one_line(row: Row, summary: Summary) -> Text:
    """Return mark, value, spread and note numbers on one line, padded so that the values of a column align."""
    width = 2 + max(len(_value(row, other)) for other in row.summaries)
    value = f"{summary.sign} {_value(row, summary)}".rjust(width)
    spread = _spread(row, summary).rjust(max(len(_spread(row, other)) for other in row.summaries))
    head = Text(f"{value} ", style=STYLE[summary.mark])
    return head.append_text(Text(f"{spread} {superscripts(summary.notes)}".rstrip(), style="dim not bold"))


def three_fields(row: Row, summary: Summary) -> tuple[Text, Text, Text]:
    """Return mark and value, spread, and note numbers, for three columns."""
    if not summary.planned:
        return Text(""), Text(""), Text("")
    return (
        Text(f"{summary.sign} {_value(row, summary)}", style=STYLE[summary.mark]),
        Text(_spread(row, summary), style="dim"),
        Text(superscripts(summary.notes), style="dim"),
    )


def metric_label(row: Row) -> str:
    """Return a label such as ``write IOPS``, ``create rate, files/s``, or ``fsync mean ↓`` if lower is better."""
    name = metric_text(row.metric)
    if row.unit in COUNTED:
        name += f", {row.unit.value}"
    return f"{name} ↓" if row.better is Direction.LOWER else name


def superscripts(numbers: Sequence[int]) -> str:
    """Return note numbers as superscripts: ``¹ ¹²``."""
    return " ".join(str(number).translate(_SUPERSCRIPT) for number in numbers)


def usual_count(row: Row) -> int:
    """Return the largest number of values in a field of the row. Fields with fewer values show their number."""
    return max(len(summary.values) for summary in row.summaries)


def _value(row: Row, summary: Summary) -> str:
    text = format_value(summary.median, row.unit)
    return text.replace(f" {row.unit.value}", "/s") if row.unit in COUNTED else text


def _spread(row: Row, summary: Summary) -> str:
    if not summary.values:
        return summary.absence
    count = len(summary.values)
    few = f" of {count}" if count < usual_count(row) else ""
    if summary.spread is None:
        return counted(count, "trial")
    return f"± {percent(summary.spread)}{few}"
