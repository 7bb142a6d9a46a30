"""Measures the cost of the probes of the timed pass: IOPS of runs with snapshots around them and of runs without.

Each round has three runs in random order, on one file system in memory: bare, bare again (the A/A control), and with
all snapshots. Prints the ratios to the bare run with their 95 % intervals, and the time of the snapshots of a trial.
``--costs`` prints the CPU time of each probe instead, which other load on the machine hardly affects. Needs root.

    python benches/probe_overhead.py [--rounds 12] [--seconds 2] [--depth 32]
    python benches/probe_overhead.py --costs [--filesystem btrfs]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from fslab.campaign import cleanup as workspaces
from fslab.campaign.probing import Watch
from fslab.cell import MediumSpec, StackSpec
from fslab.probes import REGISTRY as PROBES
from fslab.probes import Probe, SnapshotMoment, Target
from fslab.stats.paired_differences import compare_blocks
from fslab.storage import stack
from fslab.storage.mounted_stack import Stack
from fslab.system import proc
from fslab.system.signals import Teardown

ARMS = ("bare", "again", "probed")
TIMES = 100


def main() -> int:
    """Run and print everything. Return 1 if the whole interval shows a loss of more than 1 % of IOPS, otherwise 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--filesystem", default="ext4")
    arguments = parser.parse_args()
    medium = MediumSpec(name="m", type="ram", options={"size": "512m"})
    spec = StackSpec(name="a", medium=medium, filesystem=arguments.filesystem)
    iops: dict[str, dict[int, float]] = {arm: {} for arm in ARMS}
    snapshots: list[float] = []
    with workspaces.opened_workspace("probe-overhead", frozenset()) as workspace, Teardown() as undo:
        up = stack.build(spec, workspace, undo, slot="m", make=True)
        measure(up, arguments.seconds, arguments.depth)  # creates the file
        if arguments.costs:
            print_costs(up)
            return 0
        for number in range(arguments.rounds):
            for arm in random.sample(ARMS, len(ARMS)):
                up.flush()
                watch = Watch(up)
                begun = time.perf_counter()
                if arm == "probed":
                    watch.snapshot(SnapshotMoment.BEFORE)
                taken = time.perf_counter() - begun
                iops[arm][number] = measure(up, arguments.seconds, arguments.depth)
                if arm == "probed":
                    begun = time.perf_counter()
                    for moment in (SnapshotMoment.END, SnapshotMoment.SYNCED, SnapshotMoment.FLUSHED):
                        watch.snapshot(moment)
                    snapshots.append(taken + time.perf_counter() - begun)
    print(f"snapshots: median {1000 * statistics.median(snapshots):.2f} ms a trial")
    for arm in ARMS[1:]:
        found = compare_blocks(iops[arm], iops["bare"])
        interval = (
            f"{found.interval.low:.4f} to {found.interval.high:.4f}" if found.interval else "no interval"
        )
        print(f"{arm} ÷ bare: {found.ratio:.4f} ({interval}), {arguments.rounds} rounds")
    return int(found.interval is not None and found.interval.high < 0.99)


def print_costs(up: Stack) -> None:
    """Print the median CPU time per trial of each probe, and of all probes together, which share some work."""
    watch = Watch(up)
    target = watch.target()
    costs = {name: statistics.median(_cost(probe, target) for _ in range(TIMES)) for name, probe in PROBES}
    for name, cost_s in sorted(costs.items(), key=lambda each: -each[1]):
        print(f"{1e3 * cost_s:7.3f} ms {name}")
    whole = []
    for _ in range(TIMES):
        begun = time.process_time()
        for moment in SnapshotMoment:
            watch.snapshot(moment)
        whole.append(time.process_time() - begun)
    print(f"{1e3 * statistics.median(whole):7.3f} ms a trial, of CPU")


def _cost(probe: Probe, target: Target) -> float:
    begun = time.process_time()
    for _ in probe.moments:
        probe.snapshot(target)
    return time.process_time() - begun


def measure(up: Stack, seconds: int, depth: int) -> float:
    """Return the IOPS of random writes with O_DIRECT."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "fio.json"
        proc.run(
            ["fio", "--name=a", f"--directory={up.work}", "--rw=randwrite", "--bs=4k", "--size=128m", "--direct=1",
             "--ioengine=libaio", f"--iodepth={depth}", "--overwrite=1", "--fallocate=none", "--time_based=1",
             f"--runtime={seconds}", "--output-format=json", f"--output={report}"],
            timeout_s=300,
        )  # fmt: skip
        return float(json.loads(report.read_text())["jobs"][0]["write"]["iops"])


if __name__ == "__main__":
    sys.exit(main())
