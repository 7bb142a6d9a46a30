"""Measures how long it takes to decide between two stacks: in slices, and one trial after the other.

For each workload, campaigns of both kinds alternate until every comparison is decided: a difference, or a tie within
the precision. Prints the seconds of trials, the median ratio of both kinds, and what stayed open. Goal: in slices a
fifth of the time. Needs root.

    python benches/time_to_decide.py [--precision 10%] [--rounds 2] [--load 4] [--workloads random-read,synced-write]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fslab.units import parse_duration

FSLAB = str(Path(sys.executable).with_name("fslab"))
WAYS = {"slices": "auto", "one by one": "off"}
WORKLOADS = {
    "random-read": "{tool: fio, rw: randread, bs: 4k, direct: true, size: 64m, runtime: 1s}",
    "random-read-32": "{tool: fio, rw: randread, bs: 4k, iodepth: 32, direct: true, size: 64m, runtime: 1s}",
    "random-write-direct": "{tool: fio, rw: randwrite, bs: 4k, direct: true, size: 64m, runtime: 1s}",
    "random-write": "{tool: fio, rw: randwrite, bs: 4k, fsync: 64, size: 64m, runtime: 1s}",
    "synced-write": "{tool: fio, rw: randwrite, bs: 4k, fsync: 1, size: 64m, runtime: 1s}",
    "sequential-write": "{tool: fio, rw: write, bs: 1m, fsync: 64, overwrite: true, size: 64m, runtime: 1s}",
    "small-files": '{tool: engine, operation: small-files, files: 28000, size: 4k, operations: "create,delete"}',
    "large-directory": '{tool: engine, operation: small-files, files: 50000, dirs: 1, size: 0, operations: "create"}',
}
MEMORY, SSD = "{type: ram, size: 8g, room: 1g}", "{type: virtual, profile: ssd-sata, size: 16g, memory: 512m}"
# On a model of an SSD, and the others on a disk in memory.
APPLICATIONS = {
    "sqlite-insert": "{tool: sqlite, runtime: 2s}",
    "sqlite-insert-wal": "{tool: sqlite, runtime: 2s, journal_mode: wal}",
    "postgresql": "{tool: postgresql, transactions: 3000, scale: 5, max_wal_size: 128m}",
}
STUDY = """\
title: how long it takes to decide
media: {{disk: {medium}}}
stacks: {{fs: {{medium: disk, filesystem: [{filesystems}]}}}}
workloads: {{{name}: {workload}}}
slices: {slices}
trials: 3
precision: {precision}
max_trials: 40
budget: {budget}
"""


def main() -> int:
    """Run all campaigns and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--precision", default="10%")
    parser.add_argument("--filesystems", default="ext4, xfs")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--budget", default="3m", help="the most time for one campaign")
    parser.add_argument("--load", type=int, default=0, help="processes that compute meanwhile")
    parser.add_argument("--workloads", default=",".join(WORKLOADS | APPLICATIONS))
    arguments = parser.parse_args()
    print(
        "| workload | slices: s | one by one: s | share | ratio | ratio | open |\n|---|---|---|---|---|---|---|"
    )
    shares = []
    with loaded(arguments.load), tempfile.TemporaryDirectory() as directory:
        for name in arguments.workloads.split(","):
            taken: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for number in range(arguments.rounds):
                for way in sorted(WAYS, reverse=number % 2 == 1):
                    taken[way].append(decided(Path(directory), name, WAYS[way], arguments))
            seconds = [statistics.median(each["seconds"] for each in found) for found in taken.values()]
            ratios = [statistics.median(each["ratio"] for each in found) for found in taken.values()]
            left = [sum(each["open"] for each in found) for found in taken.values()]
            shares.append(seconds[0] / seconds[1])
            print(
                f"| {name} | {seconds[0]:.1f} | {seconds[1]:.1f} | {shares[-1]:.2f} | {ratios[0]:.2f} | "
                f"{ratios[1]:.2f} | {left[0]} and {left[1]} |",
                flush=True,
            )
    print(f"\nmedian share of the time: {statistics.median(shares):.2f} (goal: at most 0.2)")
    return 0


def decided(directory: Path, name: str, slices: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one campaign. Return the seconds of its trials, the first ratio, and how many comparisons are open."""
    study, store = directory / "decide.yaml", directory / "store.sqlite"
    study.write_text(
        STUDY.format(
            name=name, workload=(WORKLOADS | APPLICATIONS)[name],
            medium=SSD if name in APPLICATIONS else MEMORY, slices=slices, precision=arguments.precision,
            filesystems=arguments.filesystems, budget=arguments.budget,
        )
    )  # fmt: skip
    argv = [FSLAB, "run", str(study), "--json", "--store", str(store)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stderr}")
    document: dict[str, Any] = json.loads(done.stdout)
    found = [item for row in document["rows"] for item in row["answers"]]
    undecided = sum(not item["settled"] for item in found)
    return {
        # A campaign that expects no decision within its budget ends early: that is not a quick decision.
        "seconds": parse_duration(arguments.budget) if undecided else spent_s(store),
        "ratio": found[0]["ratio"] or 1.0,
        "open": undecided,
    }


def spent_s(store: Path) -> float:
    """Return the time of the trials of the last campaign."""
    argv = [FSLAB, "export", "last", "--format", "json", "--store", str(store)]
    records = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    return float(sum(record["duration_s"] for record in records))


@contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Run so many processes that only compute."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root")
    sys.exit(main())
