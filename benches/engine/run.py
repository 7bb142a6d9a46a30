#!/usr/bin/env python3
"""Compares fslab-engine with similar programs. Each round runs both programs in random order.

    benches/engine/run.py [--rounds 9] [--output FILE] [--only WORD] [PLACE …]

PLACE is a directory to work in; the default is /dev/shm and the current directory. Prints median times, and the median
and the quartiles of the ratios peer ÷ engine. A ratio above 1 means that the engine is faster.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benches.engine import peers  # noqa: E402 (not an installed package)
from benches.engine.comparisons import Bench, Comparison  # noqa: E402

BUILD = ROOT / "target"
HEADINGS = ("place", "work", "threads", "peer", "engine ms", "peer ms", "ratio", "from", "to", "answer")


def main() -> int:
    arguments = parse()
    peers.install(BUILD)
    bare = peers.compile_bare(HERE / "bare.c", BUILD)
    engine = arguments.engine.resolve()
    rows: list[tuple[str, ...]] = []
    for place in arguments.places:
        work = Path(tempfile.mkdtemp(prefix="fslab-bench-", dir=place))
        try:
            bench = Bench(engine, bare, work, arguments.tree_files)
            bench.make_data()
            for threads in (1, 2):
                for comparison in bench.all(threads):
                    if arguments.only in f"{comparison.work} {comparison.peer.name}":
                        rows.extend(compare(comparison, kind_of(place), arguments.rounds))
        finally:
            shutil.rmtree(work, ignore_errors=True)
    text = table(rows)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    memory = Path("/dev/shm")
    parser.add_argument("places", nargs="*", type=Path, metavar="PLACE", default=[memory, Path.cwd()])
    parser.add_argument("--engine", type=Path, default=ROOT / "target" / "release" / "fslab-engine")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tree-files", type=int, default=300_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", default="", help="only comparisons with this word in work or peer")
    return parser.parse_args()


def kind_of(place: Path) -> str:
    """Return the type of the file system that contains a directory."""
    mounts = (line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines())
    around = [(mount, kind) for mount, kind in mounts if place.resolve().is_relative_to(mount)]
    return max(around, key=lambda found: len(found[0]))[1]


def compare(comparison: Comparison, place: str, rounds: int) -> list[tuple[str, ...]]:
    """Return one row for each metric that both sides report. An additional first round, the warm-up, is discarded."""
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    answers = set()
    for number in range(rounds + 1):
        sides = [(comparison.ours, ours), (comparison.peer, theirs)]
        random.shuffle(sides)
        for side, results in sides:
            seconds, answer = side.run()
            if answer is not None:
                answers.add(str(answer))
            if number > 0:
                results.append(seconds)
    answer = {0: "", 1: "same"}.get(len(answers), "DIFFERENT: " + " ".join(sorted(answers)))
    rows = []
    for figure in ours[0]:
        pairs = [(a[figure], b[figure]) for a, b in zip(ours, theirs, strict=True) if figure in b]
        if pairs:
            rows.append(row(comparison, place, figure, pairs, answer))
            print(" ".join(rows[-1]), flush=True)
    return rows


def row(
    comparison: Comparison, place: str, figure: str, pairs: list[tuple[float, float]], answer: str
) -> tuple[str, ...]:
    ratios = sorted(theirs / ours for ours, theirs in pairs)
    quarter = len(ratios) // 4
    work = f"{comparison.work}: {figure}" if figure else comparison.work
    medians = (statistics.median(seconds) * 1e3 for seconds in zip(*pairs, strict=True))
    return (
        place,
        work,
        str(comparison.threads),
        comparison.peer.name,
        *(f"{median:.1f}" for median in medians),
        f"{statistics.median(ratios):.2f}",
        f"{ratios[quarter]:.2f}",
        f"{ratios[-1 - quarter]:.2f}",
        answer,
    )


def table(rows: list[tuple[str, ...]]) -> str:
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
