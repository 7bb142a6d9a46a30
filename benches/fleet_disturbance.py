"""Measures what a fleet's agent takes from the measurement on their machine.

    .venv/bin/python benches/fleet_disturbance.py --minutes 2 --trials-for 8

Needs root and PostgreSQL's server. One machine in a network namespace runs a study of one cell. First the agent's
CPU time, idle and while trials run, from /proc/PID/task/*/schedstat. Goal: at most 0.1 % of one CPU. Then an A/A
comparison: the agent is stopped (SIGSTOP) and continued in turn every 15 s, and the trials that ran while it was
stopped are compared with the others. Goal: the interval of the ratio contains 1.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import fleet_lab, postgresql
from tests.limits import wait_for
from tests.starter import Forker, Starter

from fslab.stats.unpaired_differences import compare_ratio
from fslab.store.store import Store

STUDY = """
title: Trials of one cell
media: {disk: {type: ram, size: 128m}}
stacks: {ext4: {medium: disk, filesystem: ext4}}
workloads: {read: {tool: fio, rw: randread, size: 32m, runtime: 2s}}
trials: 4000
"""
AGENT = ("fslab", "fleet", "worker")
TURN_S = 15.0


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process's threads in seconds: first number of schedstat (sched-stats.rst)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def share(member: fleet_lab.Member, state: str, seconds: float) -> None:
    """Print the agent's CPU time."""
    time.sleep(30)
    (agent,) = member.processes(*AGENT)
    before = cpu_s(agent)
    time.sleep(seconds)
    used = cpu_s(agent) - before
    print(f"{state}: {used:.2f} s of CPU in {seconds:.0f} s: {used / seconds:.3%}", flush=True)


def stopped_in_turn(member: fleet_lab.Member, seconds: float) -> list[tuple[float, float, bool]]:
    """Stop and continue the agent in turn. Return the turns: begin, end, whether it was stopped."""
    (agent,) = member.processes(*AGENT)
    turns, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        for is_stopped in (True, False):
            os.kill(agent, signal.SIGSTOP if is_stopped else signal.SIGCONT)
            begin = time.time()
            time.sleep(TURN_S)
            turns.append((begin, time.time(), is_stopped))
    return turns


def compared(member: fleet_lab.Member, turns: Sequence[tuple[float, float, bool]]) -> None:
    """Print the ratio of the trials that lie within turns with the agent to those within turns without it."""
    with Store.open(str(member.home / "data" / "fslab" / "fleet.sqlite")) as store:
        trials = store.trials(store.campaign().id)
    found: dict[bool, list[float]] = {True: [], False: []}
    for trial in trials:
        begin, value = trial.started.timestamp(), trial.metrics["read_iops"].value
        for since, until, is_stopped in turns:
            if since <= begin and begin + trial.duration_s <= until and value is not None:
                found[is_stopped].append(value)
    ratio = compare_ratio(found[False], found[True])
    counts = f"{len(found[False])} trials with the agent, {len(found[True])} while it was stopped"
    assert ratio.interval is not None, counts
    print(f"A/A: {counts}: ratio {ratio.ratio:.4f} ({ratio.interval.low:.4f}-{ratio.interval.high:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2, help="for each state, to measure the CPU time")
    parser.add_argument("--trials-for", type=float, default=8, help="minutes of the A/A comparison")
    arguments = parser.parse_args()
    programs = postgresql.binaries()
    assert programs is not None, "PostgreSQL's server is not installed"
    with (
        tempfile.TemporaryDirectory(prefix="fslab-fleet-") as name,
        closing(Forker(Path(name))) as forker,
        closing(Starter(forker.path)) as starter,
        fleet_lab.lab(programs, Path(name), 1, starter) as lab,
    ):
        (member,) = lab.members
        study = Path(name) / "study.yaml"
        study.write_text(STUDY)
        share(member, "idle", 60 * arguments.minutes)
        lab.fslab("run", study, "--fleet", "--detach")
        wait_for(lambda: member.processes("fslab.fleet.measuring"))
        share(member, "measuring", 60 * arguments.minutes)
        turns = stopped_in_turn(member, 60 * arguments.trials_for)
        compared(member, turns)
        lab.fslab("fleet", "cancel", lab.json("fleet", "status")["assignments"][0]["run"])


if __name__ == "__main__":
    main()
