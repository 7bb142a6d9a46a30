"""Measures the CPU time of a fleet's agent and link on a machine, idle and while a campaign runs there.

    .venv/bin/python benches/fleet_disturbance.py --minutes 2

Needs root and PostgreSQL's server. One machine in a network namespace runs a study with trials of 10 s. The CPU time
is read from /proc/PID/task/*/schedstat. Goal: at most 0.1 % of one CPU.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import fleet_lab, postgresql
from tests.limits import wait_for

STUDY = """
title: Long trials
media: {disk: {type: ram, size: 128m}}
stacks: {ext4: {medium: disk, filesystem: ext4}, ext2: {medium: disk, filesystem: ext2}}
workloads: {read: {tool: fio, rw: randread, size: 32m, runtime: 10s}}
trials: 400
"""


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process's threads in seconds: first number of schedstat (sched-stats.rst)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    minutes = parser.parse_args().minutes
    programs = postgresql.binaries()
    assert programs is not None, "PostgreSQL's server is not installed"
    with (
        tempfile.TemporaryDirectory(prefix="fslab-fleet-") as name,
        fleet_lab.lab(programs, Path(name), 1) as lab,
    ):
        (member,) = lab.members
        study = Path(name) / "study.yaml"
        study.write_text(STUDY)
        watched = {"agent": "fslab\0fleet\0worker", "link": "fslab.fleet.link"}
        for state in ("idle", "measuring"):
            if state == "measuring":
                lab.fslab("run", study, "--fleet", "--detach")
                wait_for(lambda: member.processes("fslab.fleet.measuring"))
            time.sleep(30)
            pids = {part: member.processes(*words.split("\0"))[0] for part, words in watched.items()}
            before = {part: cpu_s(pid) for part, pid in pids.items()}
            time.sleep(60 * minutes)
            for part, pid in pids.items():
                used = cpu_s(pid) - before[part]
                print(
                    f"{state}, {part}: {used:.2f} s of CPU in {60 * minutes:.0f} s: {used / 60 / minutes:.3%}"
                )
        lab.fslab("fleet", "cancel", lab.json("fleet", "status")["assignments"][0]["run"])


if __name__ == "__main__":
    main()
