"""Tests whether ``fslab compare`` reports false differences, and finds a known one. Runs real campaigns with fslab.

A/A: campaigns of ``quick`` with the same stack under two names (interleaved), or, with --campaigns, two successive
campaigns with this stack. At most one pair in twenty may differ in any metric, and the median ratio of all pairs must
be within 1 % of 1. Each pair has a seed of its own: with one, the same name would be first in all pairs. A/B: ext4 with
data=journal must be slower than with data=ordered in buffered writes with fsync. Needs root; with --campaigns, nothing
else may run on the machine.

    python benches/same_stack.py [--pairs 20] [--filesystem ext4] [--trials 5] [--campaigns]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fslab.stats.median import median_interval
from fslab.study import shipped

Pair = Callable[[Path, argparse.Namespace, int], dict[str, Any]]
FSLAB = str(Path(sys.executable).with_name("fslab"))
CERTAIN = {"larger", "smaller"}
FARTHEST = 0.01  # of the median ratio from 1

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
    """Run the A/A and the A/B part. Return 1 if one of them misses its goal, otherwise 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument(
        "--workloads", default="", help="only these of quick, such as random-read,synced-write"
    )
    parser.add_argument("--campaigns", action="store_true", help="compare two campaigns instead of two names")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        pair = campaigns if arguments.campaigns else names
        false, ratios = alike(Path(directory), arguments, pair)
        seen = journal(Path(directory))
    allowed = arguments.pairs // 20
    middle, interval = statistics.median(ratios), median_interval(ratios)
    known = f"{interval.low:.4f} to {interval.high:.4f}" if interval else "unknown"
    print(f"\nA/A: {false} of {arguments.pairs} pairs were said to differ (goal: at most {allowed})")
    print(f"median of {len(ratios)} ratios: {middle:.4f} (95 % CI {known}; goal: within {FARTHEST:.0%} of 1)")
    print(
        f"A/B: data=journal {'found slower' if seen else 'NOT found slower'} than data=ordered (goal: slower)"
    )
    return 0 if false <= allowed and abs(middle - 1) <= FARTHEST and seen else 1


def alike(directory: Path, arguments: argparse.Namespace, pair: Pair) -> tuple[int, list[float]]:
    """Run the pairs. Return how many of them differ in any metric, after Holm's correction over the metrics, and all
    ratios."""
    false: int = 0
    found: list[float] = []
    for number in range(arguments.pairs):
        document = pair(directory, arguments, number)
        alone = [line for line in document["lines"] if line["answer"]["verdict"] in CERTAIN]
        certain = [line for line in alone if line["answer"]["holds"]]
        false += bool(certain)
        ratios = [ratio for line in document["lines"] if (ratio := line["answer"]["ratio"])]
        found += ratios
        print(
            f"pair {number + 1}: {len(document['lines'])} figures, {len(certain)} said to differ "
            f"({len(alone)} alone), farthest ratio {max(ratios, key=lambda ratio: abs(ratio - 1)):.3f}",
            flush=True,
        )
    return false, found


def names(directory: Path, arguments: argparse.Namespace, number: int) -> dict[str, Any]:
    """Run one campaign of ``quick`` in which the same stack has the names a and b. Return the comparison of both."""
    stack = f"{{medium: memory, filesystem: {arguments.filesystem}}}"
    head, _, rest = shipped.text("quick").partition("stacks:\n")
    _, _, tail = rest.partition("workloads:\n")
    study = directory / "alike.yaml"
    study.write_text(
        f"{head}stacks:\n  a: {stack}\n  b: {stack}\nworkloads:\n{kept(tail, arguments.workloads)}"
    )
    store = directory / "alike.sqlite"
    run(["run", str(study), *settings(arguments, number)], store)
    return compared(["last", "--stack", "a", "--stack", "b"], store)


def settings(arguments: argparse.Namespace, number: int) -> list[str]:
    """Return the options of the campaigns of a pair."""
    return ["--set", "budget=10m", "--set", f"seed={number + 1}", "--trials", str(arguments.trials)]


def kept(workloads: str, names: str) -> str:
    """Return the lines of the study from its workloads on, with these workloads only; all of them without a name."""
    wanted = set(names.split(","))
    lines = workloads.splitlines()
    return "\n".join(
        line for line in lines if not names or line[:2] != "  " or line.strip().partition(":")[0] in wanted
    )


def campaigns(directory: Path, arguments: argparse.Namespace, number: int) -> dict[str, Any]:
    """Run two campaigns of ``quick`` with one stack. Return the comparison of both."""
    store = directory / "alike.sqlite"
    for _ in range(2):
        only = f"stacks.fs.filesystem={arguments.filesystem}"
        run(["run", "quick", "--set", only, *settings(arguments, number)], store)
    return compared(["last~1", "last"], store)


def journal(directory: Path) -> bool:
    """Return whether data=journal is significantly worse than data=ordered in every metric that is compared."""
    study = directory / "journal.yaml"
    study.write_text(JOURNAL)
    store = directory / "journal.sqlite"
    run(["run", str(study)], store)
    document = compared(["last", "--stack", "ext4 data=ordered", "--stack", "ext4 data=journal"], store)
    lines = document["lines"]
    worse = []
    for line in lines:
        answer = line["answer"]
        slower = "smaller" if line["better"] == "higher" else "larger"
        worse.append(answer["verdict"] == slower and answer["holds"])
        ratio = "no ratio" if answer["ratio"] is None else f"{answer['ratio']:.3f} ×"
        print(f"{line['workload']}, {line['metric']}: {ratio} — {line['verdict']}")
    return bool(worse) and all(worse)


def compared(arguments: list[str], store: Path) -> dict[str, Any]:
    """Run ``fslab compare`` and return its JSON document."""
    document: dict[str, Any] = json.loads(run(["compare", *arguments, "--json"], store))
    return document


def run(arguments: list[str], store: Path) -> str:
    """Run fslab with this store and return its standard output. Exit if it fails."""
    argv = [FSLAB, *arguments, "--store", str(store)]
    if arguments[0] == "run":
        argv.append("--quiet")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
