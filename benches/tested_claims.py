"""Foresees which claims of the published studies machines can test, and prints the table of docs/studies.md.

The machines are those that files describe (``fslab doctor --json``). Measures nothing.

    python benches/tested_claims.py [--write docs/studies.md] [MACHINE.json …]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benches.simulations_page import replace_between, table

from fslab.api import plans
from fslab.claims.testable import Foreseen, Prospect, reasons
from fslab.study import load, shipped

NAME = "tested-claims"
MACHINES = Path(__file__).resolve().parents[1] / "tests/golden/machines"
TWO, EIGHT = MACHINES / "two-cores.json", MACHINES / "eight-cores.json"
COMMAND = "python benches/tested_claims.py --write docs/studies.md"
HEAD = ("claims", "can be tested", "if the disks bound them", "cannot be replicated", "cannot be tested")


def foreseen(study: str, machine: Path, *settings: str) -> tuple[str, tuple[Foreseen, ...]]:
    """Return the kinds of machine on which a study's stacks are measured, and the prospects of its claims."""
    loaded = load.load(study, settings)
    with plans.on_machine(machine):
        made = plans.plan(loaded)
        return ", ".join(each.type for each in made.machines), plans.claims_foreseen(loaded, made)


def rows(machines: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the rows of the table: each study on each machine, then all studies."""
    every: dict[Path, list[Foreseen]] = {machine: [] for machine in machines}
    for study in shipped.with_claims():
        for machine in machines:
            kinds, found = foreseen(study, machine)
            every[machine] += found
            yield _row(study, machine, kinds, found)
    yield from (["all", machine.stem, "", "", *_numbers(found)] for machine, found in every.items())


def _row(name: str, machine: Path, kinds: str, found: Sequence[Foreseen]) -> list[str]:
    why = [reasons(found, one) for one in (Prospect.ONLY_FAIL, Prospect.NOT)]
    short = re.sub(r" \(.*?\)", "", "; ".join(filter(None, why)))
    return [name, machine.stem, kinds, short, *_numbers(found)]


def _told_once(found: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield the rows; a row with the reasons of the one before, on another kernel, says so."""
    before = ""
    for row in found:
        why = re.sub(r"Linux \S+", "", row[3])
        yield [*row[:3], "the same" if why and why == before else row[3], *row[4:]]
        before = why


def _numbers(found: Sequence[Foreseen]) -> list[str]:
    of = [one.prospect for one in found]
    testable, *others = (str(of.count(prospect)) for prospect in Prospect)
    in_part = sum(one.in_part and one.prospect is Prospect.TESTABLE for one in found)
    return [str(len(found)), testable + f" ({in_part} in part)" * bool(in_part), *others]


def text(machines: Sequence[Path] = (TWO, EIGHT)) -> str:
    """Return what the page has between its markers: no rows of which all claims can be tested, no columns of zeros."""
    head = ["study", "machine", "measured on", "why not (number of claims)", *HEAD]
    told = [row for row in _told_once(rows(machines)) if row[0] == "all" or row[4] != row[5]]
    used = [at for at in range(len(head)) if any(row[at] != "0" for row in told)]
    lines = ([row[at] for at in used] for row in told)
    return f"Made by `{COMMAND}`.\n\n{table([head[at] for at in used], lines, words=4)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machines", type=Path, nargs="*", metavar="MACHINE.json")
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = text(arguments.machines or (TWO, EIGHT))
    print(found)
    if arguments.write:
        replace_between(arguments.write, NAME, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
