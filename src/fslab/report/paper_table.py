"""Formats a report's table for a paper, in Markdown or LaTeX (booktabs). The terminal shows the same table. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fslab.answers.verdict_words import percent
from fslab.report.model import Report, Row, Summary
from fslab.report.row_words import kernels_words, signs_words, slices_words, spread_of_counts
from fslab.units import Direction, format_value, in_one_scale, metric_text

_TEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$",
    "★": r"$\star$", "☆": r"$\circ$", "↓": r"$\downarrow$", "µ": r"$\mu$", "–": "--", "·": r"$\cdot$", "→": r"$\to$",
    "α": r"$\alpha$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    # After the end of a line, or a rule, they would be its argument.
    "[": "{[}", "*": "{*}",
}  # fmt: skip
_MD: dict[str, str | int | None] = {character: f"\\{character}" for character in "\\`*_{}[]<>|#"}
# Of one table in \\small on a page of A4 with text 16 cm wide and 21 cm high. A column also takes the space beside it.
TEX_CHARACTERS, TEX_GAP, TEX_HEIGHT = 100, 3, 44
TEX_NAMES, TEX_HEAD = (60, 45, 30), 14  # characters of a line: in the name of a row, in the head of a column
_MAY_BREAK = re.compile(r"(?<=[ ,;:=/_\-\]])|(?=\[)")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Grid:
    """A table before it is divided. ``names`` of rows and ``heads`` of columns: in lines.

    ``fields``: by row and column, each a text and the marks of its notes.
    """

    names: Sequence[Sequence[str]]
    heads: Sequence[Sequence[str]]
    fields: Sequence[Sequence[tuple[str, str]]]

    def pages(self) -> list[tuple[range, range]]:
        """Return the rows and the columns of each page: as many as it has room for, at least one."""
        room = TEX_CHARACTERS - max(len(line) for name in self.names for line in name)
        widths = [
            TEX_GAP + max(*map(len, head), *(_width(row[number]) for row in self.fields))
            for number, head in enumerate(self.heads)
        ]
        lines = TEX_HEIGHT - max(map(len, self.heads))
        return [
            (rows, columns)
            for rows in _shared_out([len(name) for name in self.names], lines)
            for columns in _shared_out(widths, room)
        ]


def markdown(report: Report) -> str:
    """Return a table of all metrics, the results in words, and the notes, in Markdown."""
    escaped = _escaping(_MD)
    header = ["workload", *(stack.label for stack in report.stacks)]
    lines = [
        f"## {escaped(report.title)}",
        "",
        _md_row(map(escaped, header)),
        _md_row(["---", *["---:"] * (len(header) - 1)]),
    ]
    for row in report.rows:
        values = (_value(row, summary) for summary in row.summaries)
        lines.append(_md_row(map(escaped, [_name(row), *values])))
    lines += ["", escaped(_legend(report, "half their range", "numbers in brackets")), ""]
    lines += [f"- {escaped(f'{_name(row)}: {row.words}')}" for row in report.rows]
    notes = ((note.number, f"{note.kind} ({note.severity}): {note.message}") for note in report.notes)
    lines += ["", *(f"{number}. {escaped(text)}" for number, text in notes)]
    return "\n".join([*lines, "", escaped(_origin(report))]) + "\n"


def latex(report: Report) -> str:
    """Return tables in LaTeX, each small enough for a page, then their notes. They need the package booktabs only.

    A table has the workloads that were measured on the same stacks. Its rows are stacks if it then has fewer pages.
    """
    alike: dict[tuple[int, ...], list[Row]] = {}
    for row in report.rows:
        planned = tuple(number for number, summary in enumerate(row.summaries) if summary.planned)
        alike.setdefault(planned, []).append(row)
    pages = [
        (grid, *page)
        for planned, rows in alike.items()
        for grid in [min(_grids(report, rows, planned), key=lambda grid: len(grid.pages()))]
        for page in grid.pages()
    ]
    made: list[str] = []
    for number, (grid, rows, columns) in enumerate(pages, start=1):
        part = f" ({number} of {len(pages)})" if len(pages) > 1 else ""
        made += _tex_table(report, grid, rows, columns, part=part)
    needs = r"% needs \usepackage{booktabs}"
    return "\n".join([f"% {_origin(report)}", needs, *made, *_tex_notes(report)]) + "\n"


def _grids(report: Report, rows: Sequence[Row], planned: Sequence[int]) -> Iterator[_Grid]:
    """Yield the table of these rows and stacks with a column per stack, and with a row per stack; with names in few
    lines before those in many."""
    fields, metrics = [], []
    for row in rows:
        summaries = [row.summaries[number] for number in planned]
        medians = [summary.median for summary in summaries if summary.median is not None]
        texts, unit = in_one_scale(medians, row.unit)
        left = iter(texts)
        fields.append([_tex_field(summary, left) for summary in summaries])
        if row.unit.value.lower() in row.metric:  # 75.7 (thousand) read IOPS
            unit = unit.removesuffix(row.unit.value).strip()
        metrics.append(_name(row, f" ({unit})" if unit else ""))
    labels = [report.stacks[number].label for number in planned]
    by_stack = [[row[number] for row in fields] for number in range(len(planned))]
    for width in TEX_NAMES:
        for names, heads, body in ((metrics, labels, fields), (labels, metrics, by_stack)):
            named = [_broken(name, width) for name in names]
            yield _Grid(names=named, heads=[_broken(head, TEX_HEAD) for head in heads], fields=body)


def _tex_field(summary: Summary, numbers: Iterator[str]) -> tuple[str, str]:
    """Return the text of a field and the marks of its notes. Takes the next of the row's numbers if it has one."""
    marks = ",".join(map(_mark, summary.notes))
    if summary.median is None:
        return summary.absence, marks
    spread = "" if summary.spread is None else f" ± {percent(summary.spread).removesuffix(' %')}"
    return f"{summary.sign} {next(numbers)}{spread}".lstrip(), marks


def _mark(note: int) -> str:
    """Return ``a`` for the first note, ``aa`` for the 27th: a raised number would be an exponent."""
    return chr(ord("a") + (note - 1) % 26) * (1 + (note - 1) // 26)


def _width(field: tuple[str, str]) -> int:
    """Return the width of a field in characters. The marks of notes are raised, and two thirds as large."""
    text, marks = field
    return len(text) + -(-2 * len(marks) // 3)


def _broken(name: str, width: int) -> list[str]:
    """Return a name in lines of at most this width, broken after spaces and punctuation where possible."""
    lines = [""]
    for word in _MAY_BREAK.split(name):
        for piece in [word[at : at + width] for at in range(0, len(word), width)]:
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return [line.strip() for line in lines]


def _shared_out(sizes: Sequence[int], room: int) -> list[range]:
    """Return the numbers of successive items in as few groups as the room allows, of equal numbers if they fit."""
    filled, count = _filled(sizes, room), len(sizes)
    bounds = [count * number // len(filled) for number in range(len(filled) + 1)]
    equal = [range(*each) for each in pairwise(bounds)]
    return equal if all(sum(sizes[number] for number in each) <= room for each in equal) else filled


def _filled(sizes: Sequence[int], room: int) -> list[range]:
    """Return the numbers of successive items that fit in the room together, at least one."""
    found, first, taken = [], 0, 0
    for number, size in enumerate(sizes):
        if number > first and taken + size > room:
            found.append(range(first, number))
            first, taken = number, 0
        taken += size
    return [*found, range(first, len(sizes))]


def _tex_table(report: Report, grid: _Grid, rows: range, columns: range, *, part: str) -> Iterator[str]:
    escaped = _escaping(_TEX)
    yield from (r"\begin{table}", r"  \centering", r"  \small")
    yield from (rf"  \begin{{tabular}}{{l{'r' * len(columns)}}}", r"    \toprule")
    yield f"    {' & '.join(['', *(_tex_lines(grid.heads[column], 'b', 'r') for column in columns)])} \\\\"
    yield r"    \midrule"
    for row in rows:
        values = (
            escaped(text) + (rf"$^\mathrm{{{marks}}}$" if marks else "")
            for text, marks in (grid.fields[row][column] for column in columns)
        )
        yield f"    {' & '.join([_tex_lines(grid.names[row], 't', 'l'), *values])} \\\\"
    yield from (r"    \bottomrule", r"  \end{tabular}")
    legend = _legend(report, "half their range in %", "raised letters")
    yield rf"  \caption{{{escaped(f'{report.title}{part}. {legend}')}}}"
    yield r"\end{table}"


def _tex_lines(lines: Sequence[str], place: str, side: str) -> str:
    text = r" \\ ".join(map(_escaping(_TEX), lines))
    return rf"\begin{{tabular}}[{place}]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}" if len(lines) > 1 else text


def _tex_notes(report: Report) -> Iterator[str]:
    """Yield the notes as a list, which may be longer than a page."""
    if report.notes:
        escaped = _escaping(_TEX)
        yield from (r"{\footnotesize", r"\begin{description}")
        for note in report.notes:
            yield rf"  \item[{_mark(note.number)}] {escaped(note.message)}"
        yield from (r"\end{description}", r"\par}")


def _name(row: Row, unit: str = "") -> str:
    arrow = " ↓" if row.better is Direction.LOWER else ""
    return f"{row.workload}, {metric_text(row.metric)}{unit}{arrow}"


def _value(row: Row, summary: Summary) -> str:
    if summary.median is None:
        return summary.absence if summary.planned else "–"
    spread = "" if summary.spread is None else f" ± {percent(summary.spread)}"
    notes = f" ({', '.join(map(str, summary.notes))})" if summary.notes else ""
    return f"{summary.sign} {format_value(summary.median, row.unit)}{spread}{notes}".lstrip()


def _legend(report: Report, spread: str, notes: str) -> str:
    summaries = [summary for row in report.rows for summary in row.summaries]
    trials = spread_of_counts(len(each.values) for each in summaries if each.values)
    marks = f"{notes}: notes" if any(each.notes for each in summaries) else ""
    told = (f"Median of {trials} ± {spread}", *signs_words(report), marks, slices_words(report))
    return "; ".join(filter(None, told)) + "."


def _origin(report: Report) -> str:
    kernel = f"Linux {kernels_words(report)}" if report.kernel or report.guests else ""
    told = (f"fslab campaign {report.campaign}", f"{report.created:%Y-%m-%d}", kernel, report.cpu or "")
    whole = ", ".join([*filter(None, told), f"on {', '.join(report.media)}"])
    return " ".join(whole.split())  # one line, because a LaTeX comment ends with its line


def _md_row(fields: Sequence[str] | map[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _escaping(table: dict[str, str | int | None]) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()).translate(str.maketrans(table))
