"""Formats a report's table for a paper, in Markdown or LaTeX (booktabs). The terminal shows the same table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fslab.answers.words import percent
from fslab.report.cells import SIGN, absence
from fslab.report.model import Report, Row, Summary
from fslab.report.words import kernels_words, slices_words
from fslab.units import Direction, counted, format_value

_TEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$",
    "★": r"$\star$", "☆": r"$\circ$", "↓": r"$\downarrow$", "µ": r"$\mu$", "–": "--", "·": r"$\cdot$", "→": r"$\to$",
    "α": r"$\alpha$",
}  # fmt: skip
_MD: dict[str, str | int | None] = {character: f"\\{character}" for character in "\\`*_{}[]<>|#"}
TEX_COLUMNS, TEX_ROWS = 5, 24  # of one table in \\small on a page of A4


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
        (rows, first)
        for rows in batched(report.rows, TEX_ROWS)
        for first in range(0, len(report.stacks), TEX_COLUMNS)
    ]
    made = [
        line for rows, first in tables for line in _tex_table(report, rows, first, several=len(tables) > 1)
    ]
    return "\n".join([f"% {_origin(report)}", *made]) + "\n"


def _tex_table(report: Report, rows: Sequence[Row], first: int, *, several: bool) -> Iterator[str]:
    """Yield the table of these rows and of ``TEX_COLUMNS`` stacks from the first one on, with its notes below it."""
    escaped = _escaping(_TEX)
    stacks = report.stacks[first : first + TEX_COLUMNS]
    columns = slice(first, first + TEX_COLUMNS)
    numbers = {number for row in rows for summary in row.summaries[columns] for number in summary.notes}
    yield from (r"\begin{table}", r"  \centering", r"  \small")
    yield from (rf"  \begin{{tabular}}{{l{'r' * len(stacks)}}}", r"    \toprule")
    yield f"    {' & '.join(['', *(escaped(stack.label) for stack in stacks)])} \\\\"
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
