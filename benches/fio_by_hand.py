"""Compares fio run by fslab with the same fio command run directly, on the same mount, in pairs.

Builds one stack. In each pair, one run is that of a trial (``Workspace.run`` with probes around it), the other one
starts the same argv with subprocess; their order is random. Prints IOPS and the ratio of each pair, and the median
ratio with its 90 % interval. Goal: a median ratio of 0.97–1.03. Needs root.

    python benches/fio_by_hand.py [--pairs 15] [--filesystem ext4] [--medium ram] [--runtime 2s]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from fslab.campaign import campaign as campaigns
from fslab.campaign import workspace as workspaces
from fslab.campaign.watch import Watch
from fslab.cell import MediumSpec, StackSpec
from fslab.probes import SnapshotMoment
from fslab.stats.interval import median, median_interval
from fslab.storage import Workspace, stack
from fslab.system import cache, proc
from fslab.workloads import REGISTRY, Job

JOBS = {
    "randwrite": {"rw": "randwrite", "bs": "4k", "iodepth": 32, "direct": True, "size": "64m"},
    "randread": {"rw": "randread", "bs": "4k", "iodepth": 32, "direct": True, "size": "64m"},
}


def main() -> int:
    """Run the pairs and print the table. Return 1 if a median ratio is outside 0.97–1.03, otherwise 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--medium", default="ram", choices=["ram", "loop"])
    parser.add_argument("--runtime", default="2s")
    arguments = parser.parse_args()
    spec = StackSpec(
        name=arguments.filesystem,
        medium=MediumSpec(name="m", type=arguments.medium, options={"size": "512m"}),
        filesystem=arguments.filesystem,
    )
    good = True
    with workspaces.opened(campaigns.new_id(), frozenset()) as workspace, ExitStack() as undo:
        up = stack.build(spec, workspace, undo, slot="m", make=True)
        for name, job in JOBS.items():
            ratios = compare(workspace, up, {**job, "runtime": arguments.runtime}, arguments.pairs)
            found = median_interval(ratios, coverage=0.9)
            middle = median(ratios) or 0.0
            span = f"{found.low:.3f}–{found.high:.3f}" if found else "too few pairs"
            print(
                f"{name} on {spec.name} ({arguments.medium}), {len(ratios)} pairs: median ratio {middle:.3f} ({span})"
            )
            good = good and 0.97 <= middle <= 1.03
    return 0 if good else 1


def compare(workspace: Workspace, up: stack.Stack, job: dict[str, object], pairs: int) -> list[float]:
    """Return the ratio of each pair: IOPS of the run by fslab ÷ IOPS of the direct run."""
    workload = REGISTRY.get("fio")
    parameters = workload.parse_parameters(job)
    report = workspace.runtime / "scratch" / "fio.json"
    ratios = []
    for pair in range(pairs):
        commands = workload.commands(
            parameters, Job(directory=up.work, scratch=report.parent, seed=1000 + pair)
        )
        if pair == 0:
            for argv in commands.prepare:
                workspace.run("prepare", argv, cwd=up.work)
        iops = {}
        for way in random.sample(["fslab", "hand"], 2):
            up.flush()
            cache.drop_all()
            if way == "fslab":
                watch = Watch(up)
                watch.snapshot(SnapshotMoment.BEFORE)
                workspace.run("run", commands.run, cwd=up.work)
                watch.snapshot(SnapshotMoment.END)
            else:
                subprocess.run(
                    commands.run, check=True, cwd=up.work, env=proc.environment(), stdin=subprocess.DEVNULL
                )
            iops[way] = iops_of(report)
        ratios.append(iops["fslab"] / iops["hand"])
        print(f"  {pair + 1:>3}  {iops['fslab']:>10.0f}  {iops['hand']:>10.0f}  {ratios[-1]:.3f}", flush=True)
    return ratios


def iops_of(report: Path) -> float:
    """Return the reads and writes per second in fio's JSON report, and remove the report."""
    (job,) = json.loads(report.read_text())["jobs"]
    report.unlink()
    return float(job["read"]["iops"] + job["write"]["iops"])


if __name__ == "__main__":
    sys.exit(main())
