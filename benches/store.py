"""Measures how many trials per second a store takes: one transaction each, as campaigns write them, and copied.

    python benches/store.py [--trials 2000]

SQLite is on the disk of the current directory. The PostgreSQL server is started for this, in memory and with fsync off,
because its disk is not of interest. Each trial is of typical size: 40 metrics, 60 probes and 8 KiB of output.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgresql
from tests.store.test_store import CELLS, campaign, trial

from fslab.store.store import Store
from fslab.store.transfer import copy_campaign
from fslab.trial_record import Value
from fslab.units import Unit

METRICS = {f"metric_{number}": Value(value=number / 7, unit=Unit.COUNT) for number in range(40)}
PROBES = {f"probe_{number}": Value(value=number / 3, unit=Unit.BYTES) for number in range(60)}
OUTPUT = {"fio.json": "".join(f"{number:8x}" for number in range(1024))}


def made_in() -> Path:
    """Return a directory on the disk of this checkout that git ignores: a killed benchmark leaves its files there."""
    found = Path(__file__).parents[1] / "target"
    found.mkdir(exist_ok=True)
    return found


def one_by_one(url: str, trials: int) -> float:
    """Store the trials, each in its own transaction. Return trials per second."""
    with Store.open(url) as store:
        store.create_campaign(campaign())
        figures = {"metrics": METRICS, "probes": PROBES}
        made = [
            trial(number // len(CELLS), CELLS[number % len(CELLS)], raw=OUTPUT).model_copy(update=figures)
            for number in range(trials)
        ]
        begin = time.perf_counter()
        for each in made:
            store.add_trial(each)
        return trials / (time.perf_counter() - begin)


def copied(source: str, target: str) -> float:
    """Copy the campaign from one store to another, which verifies every trial. Return trials per second."""
    with Store.open(source) as reading, Store.open(target) as writing:
        begin = time.perf_counter()
        done = copy_campaign(reading, writing, reading.campaign())
        return done.new / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    programs = postgresql.binaries()
    if programs is None:
        raise SystemExit("PostgreSQL's server is not installed: make test-packages")
    with tempfile.TemporaryDirectory(dir=made_in()) as directory, postgresql.running(programs) as cluster:
        file, server = f"{directory}/a.sqlite", cluster.url_of(cluster.database())
        print("| what | trials a second |\n|---|---:|")
        print(f"| SQLite, one transaction each | {one_by_one(file, trials):.0f} |")
        print(f"| PostgreSQL, one transaction each | {one_by_one(server, trials):.0f} |")
        copies = {
            "SQLite to PostgreSQL": (file, cluster.url_of(cluster.database())),
            "PostgreSQL to SQLite": (server, f"{directory}/b.sqlite"),
            "SQLite to SQLite": (file, f"{directory}/c.sqlite"),
        }
        for name, (source, target) in copies.items():
            print(f"| copied, {name} | {copied(source, target):.0f} |")


if __name__ == "__main__":
    main()
