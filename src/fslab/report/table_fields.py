"""Formats one field of a table: value, spread, mark and note numbers. Readable without colour. Pure."""

from collections.abc import Sequence

from rich.text import Text

from fslab.analysis.table_rows import Mark
from fslab.answers.model import percent
from fslab.report.model import Row, Summary
from fslab.units import Direction, Unit, counted, format_value, metric_text

SIGN = {Mark.BEST: "★", Mark.MAYBE_BEST: "☆", Mark.NONE: " "}
STYLE = {Mark.BEST: "bold green", Mark.MAYBE_BEST: "green", Mark.NONE: ""}
# The label names the counted unit once; each value then has only "/s".
COUNTED = frozenset({Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND})
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def two_lines(row: Row, summary: Summary) -> Text:
    """Return mark and value on the first line, spread and note numbers on the second."""
    if not summary.planned:
        return Text("")
    first = Text(f"{SIGN[summary.mark]} {_value(row, summary)}", style=STYLE[summary.mark])
    second = f"{_spread(row, summary)} {superscripts(summary.notes)}"
    return Text("\n").join((first, Text(second, style="dim")))


def one_line(row: Row, summary: Summary) -> Text:
    """Return mark, value, spread and note numbers on one line, padded so that the values of a column align."""
    width = 2 + max(len(_value(row, other)) for other in row.summaries)
    value = f"{SIGN[summary.mark]} {_value(row, summary)}".rjust(width)
    spread = _spread(row, summary).rjust(max(len(_spread(row, other)) for other in row.summaries))
    head = Text(f"{value} ", style=STYLE[summary.mark])
    return head.append_text(Text(f"{spread} {superscripts(summary.notes)}".rstrip(), style="dim not bold"))


def three_fields(row: Row, summary: Summary) -> tuple[Text, Text, Text]:
    """Return mark and value, spread, and note numbers, for three columns."""
    if not summary.planned:
        return Text(""), Text(""), Text("")
    return (
        Text(f"{SIGN[summary.mark]} {_value(row, summary)}", style=STYLE[summary.mark]),
        Text(_spread(row, summary), style="dim"),
        Text(superscripts(summary.notes), style="dim"),
    )


def metric_label(row: Row) -> str:
    """Return a label such as ``write iops``, ``create rate, files/s``, or ``fsync mean ↓`` if lower is better."""
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
        return absence(summary)
    count = len(summary.values)
    few = f" of {count}" if count < usual_count(row) else ""
    if summary.spread is None:
        return counted(count, "trial")
    return f"± {percent(summary.spread)}{few}"


def absence(summary: Summary) -> str:
    """Return why a field has no value."""
    if summary.is_impossible:
        return "not possible here"
    if summary.n_failed:
        return "failed"
    if summary.n_invalid:
        return "invalid"
    return "unknown" if summary.n_unknown else "no trial"
