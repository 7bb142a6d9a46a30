"""Shows a report in a terminal: the table, the results in words, the notes, and the provenance.

The table has a column per stack and rows for workloads. If that is too wide, each workload has a table with a row per
stack. Computes nothing: the report has all values.
"""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.analysis.table_rows import Mark
from fslab.report import table_fields
from fslab.report.model import Note, NotePlace, Report, Row, StackColumn
from fslab.report.row_words import ranking_words, slices_words, trials_words
from fslab.report.terminal_width import NARROWEST, tall_tables, width_of, wrapped
from fslab.store.campaign import CampaignStatus
from fslab.units import Direction, counted, first_of, format_size

NAMED = 3  # cells of a note in full


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
        label = Text("\n").join((name, Text(table_fields.metric_label(row), style="dim")))
        table.add_row(label, *(table_fields.two_lines(row, summary) for summary in row.summaries))
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
        metrics = ", ".join(table_fields.metric_label(row) for row in (first, *others))
        name = first.workload if alone else f"{first.workload}, {metrics}"
        yield wrapped(f"{name}: {first.words}", width)
        if len(first.ranking) > 1 and any(len(place.stacks) > 1 for place in first.ranking):
            yield wrapped(f"  ranked: {ranking_words(first.ranking)}", width)


def _unfinished(report: Report) -> str:
    state = report.status.value.replace("_", " ")
    advice = f"; finish it with: fslab run --resume {report.in_commands}"
    counts = report.counts
    if counts.as_needed:
        planned = f"{counts.planned} to {counts.planned_most} (as many as needed)"
        verb = "is" if counts.stored == 1 else "are"
        return f"{state}: {counted(counts.stored, 'trial')} {verb} stored, of {planned}{advice}"
    missing = advice if counts.stored < counts.planned else ""
    verb = "is" if counts.planned == 1 else "are"
    return f"{state}: {counts.stored} of {counted(counts.planned, 'trial')} {verb} stored{missing}"


def _legend(report: Report) -> str:
    percent = f"{report.coverage * 100:g} %"
    meaning = {
        Mark.BEST: f"★ better than all others at {percent}",
        Mark.MAYBE_BEST: "☆ may equal the best",
    }
    used = {summary.mark for row in report.rows for summary in row.summaries}
    said = [text for mark, text in meaning.items() if mark in used]
    counts = sorted({table_fields.usual_count(row) for row in report.rows})
    trials = counted(counts[0], "trial") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} trials"
    if counts[-1] > 0:
        said.append(f"median of {trials} ± half their range" if counts[-1] > 1 else "one trial each")
    if any(row.better is Direction.LOWER for row in report.rows):
        said.append("↓ lower is better")
    if any(row.answers for row in report.rows):
        said.append(f"× with {percent} CI")
    return " · ".join([*said, *filter(None, [slices_words(report)])])


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
    return f"{table_fields.superscripts([note.number])} {what}"


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
    cpus = f"{report.cpus} × " if report.cpus else ""
    memory = f"{format_size(report.memory_bytes)} memory" if report.memory_bytes else "memory unknown"
    machine = (f"kernel {report.kernel or 'unknown'}", f"{cpus}{report.cpu or 'CPU unknown'}", memory)
    for guest in report.guests:
        size = f", {format_size(guest.memory_bytes)} memory" if guest.memory_bytes else ""
        processors = f", {guest.cpus} CPU{'s' * (guest.cpus != 1)}" if guest.cpus else ""
        yield f"in a {guest.machine} guest: kernel {guest.kernel or 'unknown'}{processors}{size}"
    yield " · ".join((*machine, f"on {', '.join(report.media)}"))
    if report.scale != 1:
        yield f"scale {report.scale:g} of the study's sizes, counts and run times (details: fslab plan)"
    yield (
        f"campaign {report.campaign} · {report.created:%Y-%m-%d %H:%M} UTC · {trials_words(report.counts)}"
    )
