"""Tests of studies with stripes, mirrors and parity, in a guest whose kernel supports them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Fslab
from tests.limits import RUN_LIMIT_S

from fslab.cell import MachineSpec
from fslab.machine.kinds import REGISTRY
from fslab.system import memory, paths

MISSING = REGISTRY.get("uml").missing(MachineSpec(type="uml"))
NEEDS_UML = pytest.mark.skipif(bool(MISSING), reason=MISSING[0].what if MISSING else "")

KEPT = """\
title: redundancy costs writes
media:
  disks: {type: ram, size: 160m}
stacks:
  joined:
    medium: disks
    layout: [{type: lvm-stripe, disks: 3}, md-raid5, md-raid10]
    filesystem: ext4
  own: {medium: disks, layout: {type: btrfs-raid1, disks: 3}, filesystem: btrfs}
workloads:
  w: {tool: fio, rw: write, bs: 1m, size: 32m, end_fsync: true}
fresh: cell
trials: 2
on: uml
"""

PAID = """\
title: encryption, snapshots and a second parity
media:
  disks: {type: ram, size: 400m}
  small: {type: ram, size: 160m}
stacks:
  one: {medium: disks, layout: [luks, {type: lvm-snapshot, snapshot: [false, true]}], filesystem: ext4}
  six: {medium: small, layout: md-raid6, filesystem: xfs, tuning: {stripe_cache_size: [128, 512]}}
workloads:
  w: {tool: fio, rw: randwrite, bs: 64k, size: 32m, io_size: 16m, direct: true}
fresh: cell
trials: 2
on: uml
"""

EVERY = """\
title: every stripe of the multi-disk study, small
media:
  disks: {type: ram, size: 160m}
stacks:
  striped:
    medium: disks
    layout:
      - {type: lvm-stripe, disks: [2, 3, 4, 5], chunk: [16k, 64k, 256k, 1m]}
      - {type: md-raid0, disks: [2, 3, 4, 5], chunk: [16k, 64k, 256k, 1m]}
    filesystem: [ext4, xfs, btrfs]
    geometry: none
workloads:
  w: {tool: fio, rw: write, bs: 1m, size: 24m, direct: true}
trials: 1
on: uml
"""


def left_behind(campaign: str) -> list[Path]:
    return [*memory.SHARED.glob(f"fslab-{campaign}-*"), *paths.runtime().glob(campaign)]


def figures(trials: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(trial["stack"]["layout"], trial["probes"]["write_amplification"]["value"]) for trial in trials]


@NEEDS_UML
@pytest.mark.slow
def test_copies_and_parity_are_bytes_on_the_disks_and_stacks_live_on(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "kept.yaml").write_text(KEPT)
    fslab("run", "kept.yaml", "-q")
    trials = fslab.trials()
    assert [trial.get("failure") for trial in trials] == [None] * 8
    # One copy; three disks with one disk's worth of parity; two copies; two copies.
    expected = {"lvm-stripe": 1.0, "md-raid5": 1.5, "md-raid10": 2.0, "btrfs-raid1": 2.0}
    for layout, amplification in figures(trials):
        assert amplification == pytest.approx(expected[layout], rel=0.05), layout
    made = ["mkfs" in {each["stage"] for each in trial["provenance"]["commands"]} for trial in trials]
    assert made.count(True) == 4, "in the second trial each is brought up again, not made"


@NEEDS_UML
@pytest.mark.slow
def test_a_snapshot_costs_one_copy_of_each_chunk_in_every_trial(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "paid.yaml").write_text(PAID)
    fslab("run", "paid.yaml", "-q")
    trials = fslab.trials()
    assert [trial.get("failure") for trial in trials] == [None] * 10
    of_one = {"luks": 1.0, False: 1.0, True: 2.0}
    for trial in trials:
        stack, device = trial["stack"], trial["provenance"]["device"]
        if stack["layout"] == "md-raid6":
            assert str(device["stripe_cache_size"]) == stack["settings"]["stripe_cache_size"]
            continue
        expected = of_one[stack["layout_options"].get("snapshot", "luks")]
        assert trial["probes"]["write_amplification"]["value"] == pytest.approx(expected, rel=0.1), stack
    assert left_behind(trials[0]["campaign"]) == []


@NEEDS_UML
@pytest.mark.slow
def test_ninety_six_stripes_are_built_run_and_gone(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "every.yaml").write_text(EVERY)
    process = fslab.start("run", "every.yaml", "-q")
    try:
        _, errors = process.communicate(timeout=RUN_LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    trials = fslab.trials()
    assert len({str(trial["stack"]) for trial in trials}) == 96
    assert {trial.get("failure") for trial in trials} == {None}
    for trial in trials:
        device, options = trial["provenance"]["device"], trial["stack"]["layout_options"]
        assert len(device["parts"]) == options["disks"]
        assert device.get("stripes_in_use") is None
    assert left_behind(trials[0]["campaign"]) == []


def test_a_mistake_in_each_of_several_layouts_is_shown_with_its_line(fslab: Fslab, tmp_path: Path) -> None:
    (tmp_path / "mistakes.yaml").write_text(
        EVERY.replace("on: uml", "on: host").replace(
            "disks: [2, 3, 4, 5], chunk: [16k, 64k, 256k, 1m]", "chunk: 48k"
        )
    )
    said = fslab("plan", "mistakes.yaml", code=2).stderr
    assert said.count("chunk '48k' is not a power of two of at least 4 KiB") == 2
    assert "mistakes.yaml:8: " in said
    assert "mistakes.yaml:9: " in said
