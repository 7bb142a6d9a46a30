"""Trials to the same certainty, with and without memory that is held between runs (fslab.system.warm_memory).

    python benches/warm_memory.py [--rounds 8] [--write docs/measuring.md]

Runs one study in memory again and again, one trial of each cell at a time, alternately without and with held memory,
and compares the scatter of each metric. It needs root, and shows a difference only on a machine that gives free memory
back to a host.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benches import simulations_page

STUDY = """
title: Large files in memory
media: {disk: {type: ram, size: 2g}}
stacks: {fs: {medium: disk, filesystem: [ext4, xfs]}}
workloads:
  dd-write: {tool: dd, op: write, bs: 1m, count: 512}
  dd-read: {tool: dd, op: read, bs: 1m, count: 512}
  sysbench-seqwr: {tool: sysbench, file-test-mode: seqwr, file-total-size: 512m, file-num: 4, time: 2}
trials: 1
"""
RUN = """
import sys
from fslab.system import warm_memory
if {off}:
    warm_memory.is_reported = lambda *_: False
from fslab.__main__ import main
sys.argv = ["fslab", "run", {study!r}, "--store", {store!r}, "--quiet"]
main()
"""
_Key = tuple[str, str, str]


def one_round(directory: Path, *, off: bool) -> dict[_Key, float]:
    """Run a campaign with one trial of each cell; return the value of the first metric of each."""
    study, store = directory / "study.yaml", directory / "store.sqlite"
    study.write_text(STUDY)
    store.unlink(missing_ok=True)
    code = RUN.format(off=off, study=str(study), store=str(store))
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    argv = [sys.executable, "-m", "fslab", "results", "last", "--store", str(store), "--json"]
    document = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    stacks = {stack["id"]: stack["name"] for stack in document["stacks"]}
    return {
        (row["workload"], row["metric"], stacks[summary["stack"]]): summary["values"][0]
        for row in document["rows"]
        if row["metric"].endswith("bandwidth")
        for summary in row["summaries"]
        if summary["values"]
    }


def tables(rounds: int) -> str:
    """Return the table of medians and scatter without and with held memory, after ``rounds`` rounds of each."""
    values: dict[tuple[_Key, bool], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        for number in range(2 * rounds):
            off = number % 2 == 0
            for key, value in one_round(Path(directory), off=off).items():
                values[key, off].append(value)
    rows, saved = [], []
    for key in sorted({key for key, _ in values}):
        without, held = values[key, True], values[key, False]
        scatter = [statistics.stdev(map(math.log, each)) for each in (without, held)]
        saved.append(math.log(scatter[0] / scatter[1]))
        medians = [f"{statistics.median(each) / 1e6:,.0f}" for each in (without, held)]
        rows.append([" ".join(key[:2]), key[2], *medians, *(f"{100 * each:.0f}" for each in scatter)])
    head = ["figure", "on", "MB/s without", "held", "scatter % without", "held"]
    gain = math.exp(2 * statistics.mean(saved))
    return (
        f"Made by `python benches/warm_memory.py`: {rounds} trials of each cell without held memory and {rounds} with "
        "it, by turns. Scatter: standard deviation of the logarithm.\n\n"
        f"{simulations_page.table(head, rows, words=2)}\n\n"
        f"Geometric mean of the ratios of variances, which is that of the trials to the same certainty: {gain:.1f}."
    )


if __name__ == "__main__":
    sys.exit(simulations_page.main(__doc__, "warm-memory", ("--rounds", 8), tables))
