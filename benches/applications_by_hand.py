"""Compares applications measured by fslab with the same work by hand, on the same mount, in pairs.

Builds one stack. In each pair, one run is that of a trial (``Workspace.run`` with probes around it), the other one is a
script of SQLite statements without fslab, or PostgreSQL started by pg_ctl with the same settings and pgbench; their
order is random, and each begins with the same prepared files. Prints the median ratio of the rates with its 90 %
interval. Goal: 0.98–1.02. Needs root.

    python benches/applications_by_hand.py [--pairs 12] [--filesystem ext4] [--medium ram] [--runtime 2s]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fslab.campaign import campaign as campaigns
from fslab.campaign import workspace as workspaces
from fslab.campaign.watch import Watch
from fslab.cell import MediumSpec, StackSpec
from fslab.probes import SnapshotMoment
from fslab.stats.interval import median, median_interval
from fslab.storage import Workspace, stack
from fslab.system import proc
from fslab.workloads import REGISTRY, Job, ToolOutput

SMALL_SERVER = {"scale": 2, "clients": 2, "shared_buffers": "32m", "max_wal_size": "64m"}
LOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "insert": ("sqlite", {}),
    "insert-wal": ("sqlite", {"journal_mode": "wal"}),
    "tpcb": ("postgresql", SMALL_SERVER),
    "select-only": ("postgresql", {"test": "select-only", **SMALL_SERVER}),
}
SQL = """
import os, sqlite3, sys, time
path, mode, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
database = sqlite3.connect(path, isolation_level=None)
database.execute(f"PRAGMA journal_mode={mode}")
database.execute("PRAGMA synchronous=full")
row, number, began = os.urandom(1024), 0, time.monotonic()
while time.monotonic() < began + seconds:
    number += 1
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO transactions VALUES (?, ?)", (number, row))
    database.execute("UPDATE counter SET last = ?", (number,))
    database.execute("COMMIT")
print("rate", number / (time.monotonic() - began))
"""
AS_NOBODY = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)  # fmt: skip


def main() -> int:
    """Run the pairs and print the table. Return 1 if a median ratio is outside 0.98–1.02, otherwise 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--medium", default="ram", choices=["ram", "loop"])
    parser.add_argument("--runtime", default="2s")
    parser.add_argument("--only", choices=LOADS)
    arguments = parser.parse_args()
    medium = MediumSpec(name="m", type=arguments.medium, options={"size": "600m"})
    spec = StackSpec(name=arguments.filesystem, medium=medium, filesystem=arguments.filesystem)
    good = True
    with workspaces.opened(campaigns.new_id(), frozenset()) as workspace, ExitStack() as undo:
        up = stack.build(spec, workspace, undo, slot="m", make=True)
        for name, (tool, keys) in LOADS.items():
            if arguments.only not in {None, name}:
                continue
            ratios = compare(workspace, up, tool, {**keys, "runtime": arguments.runtime}, arguments.pairs)
            found, middle = median_interval(ratios, coverage=0.9), median(ratios) or 0.0
            span = f"{found.low:.3f}–{found.high:.3f}" if found else "too few pairs"
            print(
                f"{tool} {name} on {spec.name}, {len(ratios)} pairs: median ratio {middle:.3f} ({span})",
                flush=True,
            )
            good = good and 0.98 <= middle <= 1.02
    return 0 if good else 1


def compare(
    workspace: Workspace, up: stack.Stack, tool: str, keys: dict[str, Any], pairs: int
) -> list[float]:
    """Return the ratio of each pair: the rate by fslab ÷ the rate by hand."""
    workload = REGISTRY.get(tool)
    parameters = workload.parse_parameters(keys)
    scratch = workspace.runtime / "scratch"
    scratch.mkdir(exist_ok=True)
    by_hand: Callable[[Path, Any], float] = {"sqlite": sqlite, "postgresql": postgresql}[tool]
    ratios = []
    for pair in range(pairs):
        commands = workload.commands(parameters, Job(directory=up.work, scratch=scratch, seed=1000 + pair))
        directory = Path(json.loads(commands.prepare[0][-1])["directory"])
        rates = {}
        for way in random.sample(["fslab", "hand"], 2):
            for argv in commands.prepare:
                workspace.run("prepare", argv, cwd=up.work)
            up.flush()
            if way == "hand":
                rates[way] = by_hand(directory, parameters)
            else:
                done = probed(workspace, up, commands.run)
                output = ToolOutput(stdout=done.stdout, stderr=done.stderr, duration_s=done.duration_s)
                rates[way] = workload.read(parameters, output).metrics["transaction_rate"] or 0.0
            for argv in commands.cleanup:
                workspace.run("cleanup", argv, cwd=up.work)
        ratios.append(rates["fslab"] / rates["hand"])
        print(
            f"  {tool} {pair}: {rates['fslab']:.0f} and {rates['hand']:.0f} by hand: {ratios[-1]:.3f}",
            flush=True,
        )
    return ratios


def probed(workspace: Workspace, up: stack.Stack, argv: tuple[str, ...]) -> proc.Completed:
    """Run a command as a trial does."""
    watch = Watch(up)
    try:
        watch.snapshot(SnapshotMoment.BEFORE)
        done = workspace.run("run", argv, cwd=up.work, watch=watch.look, accounted=True)
        watch.snapshot(SnapshotMoment.END)
    finally:
        watch.close()
    return done


def sqlite(directory: Path, parameters: Any) -> float:
    """Return the rate of a script of the same statements."""
    words = (str(directory / "database"), parameters.journal_mode, str(parameters.run_s))
    return float(printed(sys.executable, "-c", SQL, *words).split()[-1])


def postgresql(directory: Path, parameters: Any) -> float:
    """Return what pgbench prints on a server that pg_ctl starts."""
    programs = Path(printed("pg_config", "--bindir").strip())
    settings = {**parameters.options(), "listen_addresses": "''", "unix_socket_directories": "."}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    control = (
        *AS_NOBODY,
        str(programs / "pg_ctl"),
        "-D",
        str(directory),
        "-w",
        "-l",
        str(directory / "server.log"),
    )
    subprocess.run(
        [*control, "-o", options, "start"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
        env={"PGHOST": str(directory), "PGUSER": "fslab", "PGDATABASE": "postgres", "PATH": "/usr/bin:/bin"},
    )
    try:
        clients = str(parameters.clients)
        words = ("-h", "/proc/self/cwd", "-U", "fslab", "-b", parameters.test, "-c", clients, "-j", clients)
        said = printed(
            str(programs / "pgbench"), *words, "-T", str(round(parameters.run_s)), "postgres", cwd=directory
        )
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    return float(re.findall(r"tps = ([0-9.]+)", said)[-1])


def printed(*argv: str, cwd: Path | None = None) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=cwd).stdout


if __name__ == "__main__":
    sys.exit(main())
