"""Tests that what fslab advises for a stack which cannot be measured there works: the plan is asked again with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benches.tested_claims import TWO

from fslab import feasibility
from fslab.api import plans
from fslab.plan.expand import expand
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.study.load import load_text

MACHINES = ("host", "uml", "qemu")
MOUNTED = [
    name for name, driver in FILESYSTEMS if driver.mounted and name != "zfs"
]  # zfs has layouts of its own
ADVICE = re.compile(r"--on (\w+)$", re.MULTILINE)
STUDY = f"""\
title: t
media:
  ram: {{type: ram, size: 1g}}
  sectors: {{type: ram, size: 1g, sector_size: 4096}}
  cached: {{type: loop, size: 1g, direct_io: false}}
  disk: {{type: virtual, profile: none, size: 1g, log: data}}
  slow: {{type: virtual, profile: ssd-sata, size: 1g, sector_size: 512}}
stacks:
  one: {{medium: [ram, sectors, cached, disk, slow], filesystem: [{", ".join(MOUNTED)}]}}
  joined: {{medium: [ram, cached], layout: [md-raid1, luks], filesystem: [ext4, f2fs]}}
workloads:
  dd: {{tool: dd, op: write, count: 4}}
  engine: {{tool: engine, operation: small-files}}
  crash: {{tool: crash}}
  applications: {{tool: crash, application: sqlite}}
  recovery: {{tool: recovery}}
  errors: {{tool: io-errors}}
"""


def refused(on: str, directory: Path) -> dict[tuple[str, str], str]:
    """Return why which workload cannot run on which stack of the study, all of it on one machine."""
    cells = expand(load_text(STUDY, "s.yaml", [f"on={on}"]), feasibility.all_resolved)
    found, _ = feasibility.foresee(cells, directory)
    return {(cell.stack.name, cell.workload.name): found[cell.id] for cell in cells if cell.id in found}


@pytest.mark.parametrize("on", MACHINES)
def test_what_is_advised_is_possible(on: str, tmp_path: Path) -> None:
    with plans.on_machine(TWO):
        here = refused(on, tmp_path)
        elsewhere = {name: refused(name, tmp_path) for name in MACHINES}
    advised = {cell: match[1] for cell, why in here.items() if (match := ADVICE.search(why))}
    assert advised
    assert {cell: elsewhere[name][cell] for cell, name in advised.items() if cell in elsewhere[name]} == {}


def test_what_no_machine_can_do_is_said_first(tmp_path: Path) -> None:
    with plans.on_machine(TWO):
        why = refused("host", tmp_path)["f2fs disk", "crash"]
    assert "promises for a power cut" in why
    assert "--on" not in why


@pytest.mark.parametrize("medium", ["sectors", "cached"])
def test_a_medium_of_the_host_stays_there(medium: str, tmp_path: Path) -> None:
    """Though only User-Mode Linux has the file system: there each trial failed."""
    with plans.on_machine(TWO):
        text = STUDY.replace("[ram, sectors, cached, disk, slow]", medium)
        cells = expand(load_text(text, "s.yaml", ["on=auto"]), feasibility.all_resolved)
        found, _ = feasibility.foresee(cells, tmp_path)
    of_one = [cell for cell in cells if cell.stack.layout == "single"]
    assert {cell.stack.machine.type for cell in of_one} == {"host"}
    assert any("has no f2fs" in found.get(cell.id, "") for cell in of_one)
