"""Does ``fslab compare`` cry wolf, and does it see what is there? Real campaigns of ``quick``, by command line.

A/A: two campaigns of the same stack, one after the other, compared; the share of pairs in which anything is
said to differ should be at most one in twenty. A/B: ext4 with data=journal against data=ordered in buffered
writes with fsync must be found slower. Needs root, and a machine on which nothing else runs.

    python benches/same_stack.py [--pairs 20] [--filesystem ext4] [--trials 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FSLAB = str(Path(sys.executable).with_name("fslab"))
CERTAIN = {"better", "worse", "higher", "lower"}

JOURNAL = """\
title: what journalling data costs in buffered writes with fsync
media:
  memory: {type: ram, size: 1g}
stacks:
  ext4: {medium: memory, filesystem: ext4, mount_options: [data=ordered, data=journal]}
workloads:
  synced-write: {tool: fio, rw: randwrite, bs: 4k, fsync: 1, size: 64m, runtime: 1s}
  synced-large: {tool: fio, rw: write, bs: 64k, fsync: 4, size: 256m}
trials: 6
"""


def main() -> int:
    """Run both halves; exit 1 when either misses its goal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--trials", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        wolf = alike(Path(directory), arguments.pairs, arguments.filesystem, arguments.trials)
        seen = journal(Path(directory))
    allowed = arguments.pairs // 20
    print(f"\nA/A: {wolf} of {arguments.pairs} pairs were said to differ (goal: at most {allowed})")
    print(
        f"A/B: data=journal {'found slower' if seen else 'NOT found slower'} than data=ordered (goal: slower)"
    )
    return 0 if wolf <= allowed and seen else 1


def alike(directory: Path, pairs: int, filesystem: str, trials: int) -> int:
    """How many pairs of campaigns of one stack are said to differ in anything."""
    wolf = 0
    store = directory / "alike.sqlite"
    for number in range(pairs):
        for _ in range(2):
            only = f"stacks.fs.filesystem={filesystem}"
            run(["run", "quick", "--set", only, "--set", "budget=10m", "--trials", str(trials)], store)
        document = compared(["last~1", "last"], store)
        certain = [
            line for line in document["lines"] if line["outcome"] in CERTAIN and line["holds_together"]
        ]
        alone = [line for line in document["lines"] if line["outcome"] in CERTAIN]
        wolf += bool(certain)
        widest = max((line["ratio"] for line in document["lines"] if line["ratio"]), key=lambda r: abs(r - 1))
        print(
            f"pair {number + 1}: {len(document['lines'])} figures, {len(certain)} said to differ "
            f"({len(alone)} alone), farthest ratio {widest:.3f}",
            flush=True,
        )
    return wolf


def journal(directory: Path) -> bool:
    """Whether data=journal is shown to be slower than data=ordered in every figure that is a rate."""
    study = directory / "journal.yaml"
    study.write_text(JOURNAL)
    store = directory / "journal.sqlite"
    run(["run", str(study)], store)
    document = compared(["last", "--stack", "data=ordered", "--stack", "data=journal"], store)
    for line in document["lines"]:
        print(f"{line['workload']}, {line['metric']}: {line['ratio']:.3f} × — {line['outcome']}")
    return all(line["outcome"] == "worse" and line["holds_together"] for line in document["lines"])


def compared(arguments: list[str], store: Path) -> dict[str, Any]:
    """What ``fslab compare`` says, as JSON."""
    document: dict[str, Any] = json.loads(run(["compare", *arguments, "--json"], store))
    return document


def run(arguments: list[str], store: Path) -> str:
    """One command line of fslab with a store of its own; its standard output."""
    argv = [FSLAB, *arguments, "--store", str(store)]
    if arguments[0] == "run":
        argv.append("--quiet")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
