"""Puts the tables of a simulation into docs/methods.md: shared by the benches that make them."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """``words``: how many columns are not numbers."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def main(about: str | None, name: str, amount: tuple[str, int], tables: Callable[[int], str]) -> int:
    """Print ``tables`` of an ``amount`` (option, default), or put them between the markers ``name`` of a file."""
    option, default = amount
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(option, type=int, default=default, dest="amount", metavar="N")
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    text = tables(arguments.amount)
    print(text)
    if arguments.write:
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = arguments.write.read_text().split(begin)
        after = rest.split(end)[1]
        arguments.write.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    return 0
