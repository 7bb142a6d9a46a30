"""Formats a report's table for a paper, in Markdown or LaTeX (booktabs). The terminal shows the same table. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from fslab.answers.verdict_words import percent
from fslab.report.model import Report, Row, StackColumn, Summary
from fslab.report.row_words import kernels_words, slices_words
from fslab.report.table_fields import SIGN, absence
from fslab.units import Direction, counted, format_value

_TEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$",
    "★": r"$\star$", "☆": r"$\circ$", "↓": r"$\downarrow$", "µ": r"$\mu$", "–": "--", "·": r"$\cdot$", "→": r"$\to$",
    "α": r"$\alpha$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
_MD: dict[str, str | int | None] = {character: f"\\{character}" for character in "\\`*_{}[]<>|#"}
# Of one table in \\small on a page of A4 with text 16 cm wide. A column also takes the space beside it.
TEX_CHARACTERS, TEX_GAP, TEX_ROWS = 100, 3, 24
TEX_NAME, TEX_LINE = 30, 24  # of the name of a row, and of a line in the head of a column


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
    lines += [_md_row(map(escaped, [_name(row), *_values(row)])) for row in report.rows]
    lines += ["", escaped(_legend(report)), ""]
    lines += [f"- {escaped(f'{_name(row)}: {row.words}')}" for row in report.rows]
    lines += [
        "",
        *(
            f"{note.number}. {escaped(f'{note.kind} ({note.severity}): {note.message}')}"
            for note in report.notes
        ),
    ]
    return "\n".join([*lines, "", escaped(_origin(report))]) + "\n"


def latex(report: Report) -> str:
    """Return tables in LaTeX, each small enough for a page. They need the package booktabs, and nothing else."""
    tables = [
        (measured, columns)
        for rows in batched(report.rows, TEX_ROWS)
        for columns in _tex_columns(report, rows)
        if (measured := [row for row in rows if any(each.planned for each in row.summaries[columns])])
    ]
    made = [
        line
        for rows, columns in tables
        for line in _tex_table(report, rows, columns, several=len(tables) > 1)
    ]
    return "\n".join([f"% {_origin(report)}", *made]) + "\n"


def _tex_columns(report: Report, rows: Sequence[Row]) -> Iterator[slice]:
    """Yield the stacks of each table of these rows: as many as fit beside the names of the rows, at least one."""
    room = TEX_CHARACTERS - min(TEX_NAME, max(len(_name(row)) for row in rows))
    first, taken = 0, 0
    for number, stack in enumerate(report.stacks):
        width = TEX_GAP + max(map(len, (*_tex_head(stack), *(_values(row)[number] for row in rows))))
        if number > first and taken + width > room:
            yield slice(first, number)
            first, taken = number, 0
        taken += width
    yield slice(first, len(report.stacks))


def _tex_head(stack: StackColumn) -> list[str]:
    """Return the label of a stack in lines: its words, long ones broken after commas."""
    words = (word.replace(",", ", ") if len(word) > TEX_LINE else word for word in stack.lines)
    return [
        line.replace(", ", ",")
        for word in words
        for line in textwrap.wrap(word, TEX_LINE, break_on_hyphens=False)
    ]


def _tex_table(report: Report, rows: Sequence[Row], columns: slice, *, several: bool) -> Iterator[str]:
    """Yield the table of these rows and of these stacks, with its notes below it."""
    escaped = _escaping(_TEX)
    stacks = report.stacks[columns]
    numbers = {number for row in rows for summary in row.summaries[columns] for number in summary.notes}
    long = any(len(_name(row)) > TEX_NAME for row in rows)
    left = rf"p{{{TEX_NAME / TEX_CHARACTERS:.2f}\linewidth}}" if long else "l"
    heads = [[*map(escaped, _tex_head(stack))] for stack in stacks]
    # {}: a line that begins with a bracket or an asterisk is no argument of the line end before it.
    several_lines = (r" \\{} ".join(lines) for lines in heads)
    stacked = [rf"\shortstack[r]{{{lines}}}" if r"\\{}" in lines else lines for lines in several_lines]
    yield from (r"\begin{table}", r"  \centering", r"  \small")
    yield from (rf"  \begin{{tabular}}{{{left}{'r' * len(stacks)}}}", r"    \toprule")
    yield f"    {' & '.join(['', *stacked])} \\\\"
    yield r"    \midrule"
    for row in rows:
        yield f"    {' & '.join(map(escaped, [_name(row), *_values(row)[columns]]))} \\\\"
    yield from (r"    \bottomrule", r"  \end{tabular}")
    title = f"{report.title} ({', '.join(stack.label for stack in stacks)})" if several else report.title
    yield rf"  \caption{{{escaped(f'{title}. {_legend(report)}')}}}"
    for note in report.notes:
        if note.number in numbers:
            yield rf"  \par\footnotesize {note.number}: {escaped(' '.join(note.message.split()))}"
    yield r"\end{table}"


def _name(row: Row) -> str:
    arrow = " ↓" if row.better is Direction.LOWER else ""
    return f"{row.workload}, {row.metric.replace('_', ' ')}{arrow}"


def _values(row: Row) -> list[str]:
    return [_value(row, summary) for summary in row.summaries]


def batched(rows: Sequence[Row], most: int) -> Iterator[Sequence[Row]]:
    """Yield the rows in groups of at most ``most``."""
    for first in range(0, len(rows), most):
        yield rows[first : first + most]


def _value(row: Row, summary: Summary) -> str:
    if summary.median is None:
        return absence(summary) if summary.planned else "–"
    spread = "" if summary.spread is None else f" ± {percent(summary.spread)}"
    notes = f" ({', '.join(map(str, summary.notes))})" if summary.notes else ""
    return f"{SIGN[summary.mark]} {format_value(summary.median, row.unit)}{spread}{notes}".lstrip()


def _legend(report: Report) -> str:
    counts = sorted({len(s.values) for row in report.rows for s in row.summaries if s.values}) or [0]
    trials = counted(counts[0], "trial") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} trials"
    told = (
        f"Median of {trials} ± half their range; ★ better than all others at {report.coverage * 100:g} %, "
        "☆ may equal the best; ↓ lower is better; numbers in brackets: notes"
    )
    return "; ".join(filter(None, (told, slices_words(report)))) + "."


def _origin(report: Report) -> str:
    kernel = f"Linux {kernels_words(report)}" if report.kernel or report.guests else ""
    told = (f"fslab campaign {report.campaign}", f"{report.created:%Y-%m-%d}", kernel, report.cpu or "")
    whole = ", ".join([*filter(None, told), f"on {', '.join(report.media)}"])
    return " ".join(whole.split())  # one line, because a LaTeX comment ends with its line


def _md_row(fields: Sequence[str] | map[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _escaping(table: dict[str, str | int | None]) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()).translate(str.maketrans(table))
