"""Compares fio run by fslab with the same fio command run directly, on the same mount, in pairs.

Builds one stack. In each pair, one run is that of a trial (``Workspace.run`` with probes around it), the other one
starts the same argv with subprocess; their order is random. Prints IOPS and the ratio of each pair, and the median
ratio with its 90 % interval. Goal: a median ratio of 0.97–1.03. Needs root.

    python benches/fio_by_hand.py [--pairs 15] [--filesystem ext4] [--medium ram] [--runtime 2s]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import pairs

from fslab.storage.mounted_stack import Stack
from fslab.system import page_cache, proc
from fslab.workloads import REGISTRY, Job

JOBS = {
    "randwrite": {"rw": "randwrite", "bs": "4k", "iodepth": 32, "direct": True, "size": "64m"},
    "randread": {"rw": "randread", "bs": "4k", "iodepth": 32, "direct": True, "size": "64m"},
}


def main() -> int:
    """Run the pairs and print the table. Return 1 if a median ratio is outside 0.97–1.03, otherwise 0."""
    arguments = pairs.parser(__doc__, pairs=15).parse_args()
    good = True
    with pairs.opened(arguments, 64 << 20) as bench:
        for name, job in JOBS.items():
            run = runner(bench, {**job, "runtime": arguments.runtime})
            good = pairs.compare(name, arguments.pairs, bench, run, most=0.03) and good
    return 0 if good else 1


def runner(bench: pairs.Bench, job: dict[str, object]) -> Callable[[Stack, str, int], Mapping[str, float]]:
    """Return a function that runs a pair's command one way and returns its IOPS."""
    workload = REGISTRY.get("fio")
    parameters = workload.parse_parameters(job)
    report = bench.scratch / "fio.json"

    def run(up: Stack, way: str, pair: int) -> Mapping[str, float]:
        commands = workload.commands(
            parameters, Job(directory=up.work, scratch=report.parent, seed=1000 + pair)
        )
        for argv in () if any(up.work.iterdir()) else commands.prepare:
            up.workspace.run("prepare", argv, cwd=up.work)
        up.flush()
        page_cache.drop_all()
        with bench.real_time():
            if way == "fslab":
                pairs.probed(up, commands.run)
            else:
                subprocess.run(
                    commands.run, check=True, cwd=up.work, env=proc.environment(), stdin=subprocess.DEVNULL
                )
        return {"IOPS": iops_of(report)}

    return run


def iops_of(report: Path) -> float:
    """Return the reads and writes per second in fio's JSON report, and remove the report."""
    (job,) = json.loads(report.read_text())["jobs"]
    report.unlink()
    return float(job["read"]["iops"] + job["write"]["iops"])


if __name__ == "__main__":
    sys.exit(main())
