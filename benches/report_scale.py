"""Measures a report of 100,000 trials in 10,000 cells: time to make it, its size, and first paint in Chromium.

Writes a synthetic campaign into a new store (not measured), then runs ``fslab report`` on it, and opens the file in
headless Chromium. Usage: benches/report_scale.py [--workloads 1000] [--blocks 10] [--keep DIRECTORY]

``--server``: only compares the time of the report from SQLite and from a PostgreSQL server, to which the campaign is
copied: both in turns, three times. The server is started for this, in memory.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgresql

from fslab.cell import Cell, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.store import queries
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign
from fslab.trial_record import Provenance, Status, TrialRecord, Value
from fslab.units import Unit

STACKS = ("ext4", "xfs", "btrfs", "f2fs", "ext2", "ext3", "jfs", "nilfs2", "vfat", "exfat")
BEGUN = datetime(2026, 11, 20, tzinfo=UTC)
PAINTS = "performance.getEntriesByType('paint').map(each => [each.name, each.startTime])"


def cells(workloads: int) -> tuple[Cell, ...]:
    """Return the cells of ten file systems with ``workloads`` workloads."""
    medium = MediumSpec(name="memory", type="ram", options={"size": "1g"})
    stacks = [StackSpec(name=name, medium=medium, filesystem=name) for name in STACKS]
    works = [
        WorkloadSpec(
            name=f"w{number}",
            tool="fio",
            parameters={
                "rw": "randwrite",
                "bs": "4k",
                "size": "64m",
                "direct": True,
                "iodepth": number % 64 + 1,
            },
        )
        for number in range(workloads)
    ]
    return tuple(Cell(stack=stack, workload=work) for work in works for stack in stacks)


def trials(planned: tuple[Cell, ...], blocks: int) -> Iterator[TrialRecord]:
    """Yield the trials block by block: log-normal values around a random level per cell, all without warnings."""
    draw = random.Random(1)
    levels = [draw.lognormvariate(11, 0.5) for _ in planned]
    for block in range(blocks):
        for number, cell in enumerate(planned):
            iops = levels[number] * draw.lognormvariate(0, 0.03)
            yield TrialRecord(
                key=TrialKey(campaign="scale", block=block, seed=block), cell=cell, status=Status.OK,
                started=BEGUN + timedelta(seconds=block * len(planned) + number), duration_s=1.0,
                metrics={
                    "write_iops": Value(value=iops, unit=Unit.IOPS),
                    "write_bandwidth": Value(value=iops * 4096, unit=Unit.BYTES_PER_SECOND),
                },
                probes={"write_amplification": Value(value=1.5, unit=Unit.RATIO)},
                provenance=Provenance(tools={"fio": "3.33"}, machine={"kernel": "6.1"}),
            )  # fmt: skip


def fill(path: Path, workloads: int, blocks: int) -> int:
    """Store the campaign, with all trials in one transaction. Return the number of trials."""

    planned = cells(workloads)
    campaign = Campaign(
        id="scale", study_id="scale", study_title="Scale", study_source="", seed=1, cells=planned, trials=blocks,
        created=BEGUN, status=CampaignStatus.FINISHED,
    )  # fmt: skip
    count = 0
    with Store.open(str(path)) as store:
        store.create_campaign(campaign)
        with store._writing() as connection:
            numbers = {cell.id: queries.cell_number(connection, "scale", cell.id) for cell in planned}
            for trial in trials(planned, blocks):
                queries.insert_trial(connection, trial, numbers[trial.cell.id] or 0)
                count += 1
    return count


def first_paint_ms(page: Path, rounds: int) -> float:
    """Return the median time from opening the file to its first contentful paint, in milliseconds."""
    found = []
    chromium = shutil.which("chromium") or sys.exit("needs chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        for _ in range(rounds):
            shown = browser.new_page()
            shown.goto(page.as_uri())
            shown.wait_for_timeout(300)
            found.append(float(dict(shown.evaluate(PAINTS))["first-contentful-paint"]))
            shown.close()
        browser.close()
    return statistics.median(found)


def report(store: str, page: Path) -> tuple[float, float]:
    """Make the report. Return the seconds that it took, and its seconds on a CPU (without those of a server)."""
    fslab = Path(sys.executable).parent / "fslab"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([fslab, "report", "last", "--store", store, "-o", page], check=True)
    took_s, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_with_server(store: Path, page: Path) -> None:
    """Copy the campaign to a server, and make the report of both in turns."""
    programs = postgresql.binaries() or sys.exit("PostgreSQL's server is not installed: make test-packages")
    with postgresql.running(programs) as cluster:
        url = cluster.url_of(cluster.database())
        with Store.open(str(store)) as source, Store.open(url) as target:
            begun = time.monotonic()
            copied = copy_campaign(source, target, source.campaign())
            took_s = time.monotonic() - begun
        print(
            f"copied            {copied.new} trials in {took_s:.0f} s: {copied.new / took_s:.0f} per second"
        )
        for _ in range(3):
            for name, place in (("SQLite", str(store)), ("PostgreSQL", url)):
                took_s, cpu_s = report(place, page)
                print(f"fslab report      {name}: {took_s:.1f} s, of these {cpu_s:.1f} s on a CPU")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--workloads", type=int, default=1000)
    arguments.add_argument("--blocks", type=int, default=10)
    arguments.add_argument("--keep", type=Path, help="a directory to work in and leave as it is")
    arguments.add_argument("--server", action="store_true", help="compare SQLite and PostgreSQL")
    given = arguments.parse_args()
    directory = given.keep or Path(tempfile.mkdtemp(prefix="fslab-scale-"))
    directory.mkdir(exist_ok=True)
    try:
        store, page = directory / "store.sqlite", directory / "report.html"
        count = None if store.exists() else fill(store, given.workloads, given.blocks)
        print(
            f"trials            {count if count is not None else 'as kept'} in {given.workloads * len(STACKS)} cells"
        )
        if given.server:
            compare_with_server(store, page)
            return
        took_s, cpu_s = report(str(store), page)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"fslab report      {took_s:.1f} s, of these {cpu_s:.1f} s on a CPU; {usage.ru_maxrss / 1024:.0f} MiB"
        )
        print(f"size              {page.stat().st_size / 1e6:.2f} MB")
        print(f"first paint       {first_paint_ms(page, 5):.0f} ms (median of 5)")
    finally:
        if given.keep is None:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
