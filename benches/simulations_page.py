"""Tables of pages: prints them, or replaces them in a page; the command line of the simulations."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill

WIDTH = 120


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a Markdown table. The first ``words`` columns are texts, the others are numbers (aligned right).

    Rows with the same first cell form a group, and only the first of them has it.
    """
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    grouped = [
        ["", *cells[1:]] if cells[0] == before[0] else cells for before, cells in pairwise([rule, *rows])
    ]
    head_line, *lines = (
        f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|" for cells in (head, *grouped)
    )
    return "\n".join([head_line, f"|{'|'.join(rule)}|", *lines])


def main(about: str | None, name: str, amount: tuple[str, int], tables: Callable[[int], str]) -> int:
    """Print ``tables``; with --write, also replace the text between the markers ``name`` of a file. Return 0.

    ``about``: the description for --help. ``amount``: the option whose value ``tables`` gets, and its default.
    """
    option, default = amount
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(option, type=int, default=default, dest="amount", metavar="N")
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    text = tables(arguments.amount)
    print(text)
    if arguments.write:
        replace_between(arguments.write, name, text)
    return 0


def replace_between(page: Path, name: str, text: str) -> None:
    """Replace the text between the markers ``name`` of a page. Lines are wrapped, except those of tables."""
    paragraphs = text.split("\n\n")
    text = "\n\n".join(
        each if each.startswith("|") else fill(each, WIDTH, break_on_hyphens=False) for each in paragraphs
    )
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.read_text().split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
