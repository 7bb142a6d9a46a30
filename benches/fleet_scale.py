"""Measures how many machines a fleet can have: what their looking for work costs the database.

    .venv/bin/python benches/fleet_scale.py --machines 100 300 1000

Needs PostgreSQL's server. For so many machines, threads look for assignments and announce the machines as often as
idle agents do, over a few connections. Each machine has a hundred assignments behind it. Prints the server's CPU time
meanwhile, and the time until each machine has run one assignment, which here takes no time.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from tests import postgresql

from fslab.fleet.agent import BEAT_S, LOOK_S
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import AssignedStudy, Assignment, AssignmentStatus, MemberMachine

STUDY = AssignedStudy(file="study.yaml", text="title: a study", version="1")
MEASURED_S = 60.0
NIGHTS = 100
THREADS = 4


def machine(number: int) -> MemberMachine:
    return MemberMachine(name=f"lab{number}", id=str(number), version="1")


def assign(fleet: FleetStore, run: str, count: int) -> None:
    now = datetime.now(UTC)
    names = ((f"{run}-lab{number}", f"lab{number}") for number in range(count))
    fleet.assign(
        [
            Assignment(id=name, run=run, machine=on, campaign=name, study=STUDY, created=now)
            for name, on in names
        ]
    )


def cpu_s(cluster: postgresql.Cluster) -> float:
    """Return the CPU time of the server's processes in seconds: first number of schedstat (sched-stats.rst)."""
    first = (cluster.directory / "data" / "postmaster.pid").read_text().split()[0]
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in (first, *children)) / 1e9


def look(fleet: FleetStore, number: int) -> None:
    """Do what an agent does: end each of its assignments as soon as it is taken."""
    for wanted in fleet.queue(f"lab{number}"):
        held = fleet.take(wanted, machine(number))
        if held is not None:
            fleet.end(held, AssignmentStatus.FINISHED)


def idle(fleet: FleetStore, pool: ThreadPoolExecutor, count: int) -> None:
    """Let all machines look and announce themselves, evenly spread, for ``MEASURED_S`` seconds."""
    beats = round(BEAT_S / LOOK_S)
    start = time.monotonic()
    for turn in range(round(MEASURED_S / LOOK_S)):
        for number in range(count):
            time.sleep(max(0.0, start + (turn + number / count) * LOOK_S - time.monotonic()))
            pool.submit(look, fleet, number)
            if turn % beats == number % beats:
                pool.submit(fleet.announce, machine(number))


def measure(fleet: FleetStore, cluster: postgresql.Cluster, name: str, count: int) -> None:
    """Measure a fleet of ``count`` machines in the database ``name``, and print its row."""
    for night in range(NIGHTS):
        assign(fleet, f"night{night}", count)
        fleet.cancel(f"night{night}")
    with psycopg.connect(cluster.url_of(name).replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda number: fleet.announce(machine(number)), range(count)))
        before, started = cpu_s(cluster), time.monotonic()
        idle(fleet, pool, count)
        used = (cpu_s(cluster) - before) / (time.monotonic() - started)
        assign(fleet, "now", count)
        started = time.monotonic()
        list(pool.map(lambda number: look(fleet, number), range(count)))
        print(f"| {count} | {used:.2%} | {time.monotonic() - started:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="+", default=[100, 300, 1000])
    options = parser.parse_args()
    programs = postgresql.binaries()
    assert programs is not None, "PostgreSQL's server is not installed"
    print("| machines | database while idle, of a CPU | each had one, s |\n|---|---|---|", flush=True)
    with postgresql.running(programs) as cluster:
        for count in options.machines:
            name = cluster.database()
            with open_store(cluster.url_of(name), create=True) as store:
                measure(FleetStore(store), cluster, name, count)


if __name__ == "__main__":
    main()
