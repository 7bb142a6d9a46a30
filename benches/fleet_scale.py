"""Measures how many machines a fleet can have: scheduler and database with many links and with empty assignments.

    .venv/bin/python benches/fleet_scale.py --machines 100 300 1000

Needs PostgreSQL's server. Links are real Dask workers with TLS, all in one process; their agent only takes an
assignment and ends it. Prints the time until all links have joined, the scheduler's CPU usage while all are idle, the
time, CPU time and memory for one assignment per machine, and the time to announce a machine in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import dask
from distributed import Worker
from tests import postgresql
from tests.limits import wait_for

from fslab.fleet import certificates, dask_settings, link
from fslab.fleet.scheduler import Pending
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import OPEN, AssignedStudy, Assignment, AssignmentStatus, MemberMachine

STUDY = AssignedStudy(file="study.yaml", text="title: a study", version="1")
IDLE_S = 30


def machine(number: int) -> MemberMachine:
    return MemberMachine(name=f"lab{number}", id=str(number), version="1")


def assignment(name: str, run: str, on: str, now: datetime) -> Assignment:
    return Assignment(id=name, run=run, machine=on, campaign=name, study=STUDY, created=now)


def cpu_s(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def answer(listening: socket.socket, fleet: FleetStore) -> None:
    """Act as the agents of all machines: end each assignment as soon as it is taken.

    Returns when ``listening`` is closed.
    """

    def one(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as asked:
            wanted = json.loads(asked.readline())["assignment"]
            held = fleet.take(wanted, machine(int(wanted.rpartition("lab")[2])))
            if held is not None:
                fleet.end(held, AssignmentStatus.FINISHED)
            connection.sendall(b"over\n")

    with ThreadPoolExecutor(8) as pool:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            pool.submit(one, connection)


async def links(count: int, port: int) -> None:
    """Run ``count`` workers, in a separate process. Print "ready" when all are connected."""
    security = dask_settings.security()
    with dask.config.set(dask_settings.SETTINGS):
        made = []
        for number in range(count):
            worker = Worker(
                f"tls://127.0.0.1:{port}", name=f"lab{number}", nthreads=1, resources={dask_settings.SLOT: 1},
                security=security, memory_limit=0, heartbeat_interval="20s", local_directory=f"w{number}",
            )  # fmt: skip
            made.append(await worker)
        print("ready", flush=True)
        await asyncio.gather(*(worker.finished() for worker in made))


def feed(scheduler: subprocess.Popen[bytes], url: str) -> None:
    """Send the open assignments to the scheduler every two seconds, as ``fslab fleet scheduler`` does."""
    pending = Pending(url=url, give_up_s=3600, tell=print)
    assert scheduler.stdin is not None
    while scheduler.poll() is None:
        with contextlib.suppress(BrokenPipeError):
            scheduler.stdin.write(json.dumps(pending.now()).encode() + b"\n")
            scheduler.stdin.flush()
        time.sleep(2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def measure(fleet: FleetStore, url: str, directory: Path, count: int) -> None:
    """Measure a fleet with ``count`` machines and print its row."""
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fleet.announce(machine(number)), range(count)))
    announced_s = time.monotonic() - started
    port = free_port()
    told = {"host": "127.0.0.1", "port": port, "parent": os.getpid()}
    (directory / "settings.json").write_text(json.dumps(told))
    argv = [sys.executable, "-m", "fslab.fleet.dispatching"]
    scheduler = subprocess.Popen(argv, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=feed, args=(scheduler, url), daemon=True).start()
    path = directory / link.SOCKET
    path.unlink(missing_ok=True)
    workers = None
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(1024)
        threading.Thread(target=answer, args=(listening, fleet), daemon=True).start()
        try:
            assert scheduler.stdout is not None
            scheduler.stdout.readline()
            started = time.monotonic()
            workers = subprocess.Popen(
                [sys.executable, __file__, "--links", str(count), "--port", str(port)], cwd=directory,
                stdout=subprocess.PIPE, env={**os.environ, link.SOCKET_VARIABLE: str(path)},
            )  # fmt: skip
            assert workers.stdout is not None
            assert workers.stdout.readline() == b"ready\n"
            joined_s = time.monotonic() - started
            before = cpu_s(scheduler.pid)
            time.sleep(IDLE_S)
            idle = (cpu_s(scheduler.pid) - before) / IDLE_S
            now, run = datetime.now(UTC), f"r{count}"
            fleet.assign([assignment(f"{run}-lab{n}", run, f"lab{n}", now) for n in range(count)])
            started, before = time.monotonic(), cpu_s(scheduler.pid)
            wait_for(lambda: not fleet.assignments(statuses=OPEN))
            dispatched_s = time.monotonic() - started
            used = cpu_s(scheduler.pid) - before
            rss = (
                int((Path(f"/proc/{scheduler.pid}/statm").read_text().split())[1]) * resource.getpagesize()
                >> 20
            )
            print(
                f"| {count} | {joined_s:.0f} | {idle:.2%} | {dispatched_s:.1f} | {used:.1f} | {rss} | "
                f"{announced_s / count * 1e3:.2f} |", flush=True,
            )  # fmt: skip
        finally:
            for process in (workers, scheduler):
                if process is not None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--links", type=int)
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.links:
        logging.disable(logging.WARNING)
        asyncio.run(links(options.links, options.port))
        return
    programs = postgresql.binaries()
    assert programs is not None, "PostgreSQL's server is not installed"
    print("| machines | all joined, s | scheduler idle, of a CPU | each had one, s | its CPU, s | its memory, MiB | "
          "announcing, ms |\n|---|---|---|---|---|---|---|", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fslab-fleet-") as name, postgresql.running(programs) as cluster:
        directory = Path(name)
        certificates.make_authority(directory / "fleet", "bench")
        for file in ("ca.pem", "fleet.pem", "fleet.key"):
            (directory / file).write_bytes((directory / "fleet" / file).read_bytes())
        for count in options.machines:
            url = cluster.url_of(cluster.database())
            with open_store(url, create=True) as store:
                measure(FleetStore(store), url, directory, count)


if __name__ == "__main__":
    main()
