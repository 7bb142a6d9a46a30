"""Tests of ZFS with its real module, in QEMU: they need a kernel that has it, and ``zpool`` on the host. Slow.

FSLAB_ZFS_KERNEL names the kernel (docs/machines.md says how to get one); without it, they are skipped.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.guest.conftest import cell
from tests.guest.test_layouts import inside

from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cache, Cell, MachineSpec, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.machine.kinds import REGISTRY
from fslab.system import tools
from fslab.trial_record import Status, TrialRecord

pytestmark = pytest.mark.slow
SIZE = 8 << 20
READS = {"rw": "read", "bs": "64k", "size": "8m", "io_size": "8m"}


@pytest.fixture(scope="session")
def machine() -> MachineSpec:
    kernel = os.environ.get("FSLAB_ZFS_KERNEL")
    if not kernel:
        pytest.skip("FSLAB_ZFS_KERNEL names no kernel with the module zfs: no real pool was made")
    found = MachineSpec(type="qemu", kernel=kernel, memory="1g")
    assert not REGISTRY.get("qemu").missing(found)
    assert tools.find("zpool"), "the guest runs the host's zpool"
    return found


def stack(machine: MachineSpec, layout: str = "single", mkfs_options: str = "", **options: Any) -> StackSpec:
    return StackSpec(
        name="zfs", medium=MediumSpec(name="m", type="ram", options={"size": "160m"}), filesystem="zfs",
        mkfs_options=mkfs_options, layout=layout, layout_options=options, machine=machine,
    )  # fmt: skip


def test_properties_are_in_effect_and_a_cold_cache_is_cold(
    guests: TrialMachines, machine: MachineSpec
) -> None:
    def run(cache: Cache, asked: StackSpec) -> TrialRecord:
        wanted: Cell = cell(
            stack=asked, cache=cache, workload=WorkloadSpec(name="w", tool="fio", parameters=READS)
        )
        record = guests.run(wanted, TrialKey(campaign=guests.workspace.campaign, block=0, seed=7))
        assert record.status in {Status.OK, Status.INVALID}, record.error
        return record

    small = stack(machine, mkfs_options="-o ashift=12 -O recordsize=16k -O compression=off")
    cold, warm = run(Cache.COLD, small), run(Cache.WARM, small)
    assert "recordsize=16K" in cold.provenance.device["features"]
    assert (cold.probes["device_read_bytes"].value or 0) >= SIZE
    assert (warm.probes["device_read_bytes"].value or 0) < SIZE / 8
    mirror = run(Cache.COLD, stack(machine, "zfs-mirror", "-O recordsize=1m -O atime=off"))
    assert {"recordsize=1M", "atime=off"} <= set(mirror.provenance.device["features"])
    assert len(mirror.provenance.device["parts"]) == 2


@pytest.mark.parametrize("layout", ["single", "zfs-mirror", "zfs-raidz"])
def test_after_a_crash_its_pool_is_exported_and_no_other(
    layout: str, guests: TrialMachines, machine: MachineSpec
) -> None:
    wanted = stack(machine, layout)
    seen = inside(guests, "pools", on=stack(machine), spec=wanted, size="100m")
    node = f"/dev/{seen['own']}"
    assert [kind for kind, _ in seen["done"]] == ["pool", "mount"]
    assert seen["done"][0] == ["pool", node]
    assert (seen["again"], seen["pools"]) == ([], ["somebody"])
    assert not [line for line in seen["left"] if "zfs_member" not in line]
    assert seen["others_alive"]
    assert f"the name {seen['own']} exists" in seen["said"]
    assert (seen["done_then"], seen["pools_then"]) == ([], [seen["own"]])


def test_a_kept_pool_has_its_files_in_the_next_trial(guests: TrialMachines, machine: MachineSpec) -> None:
    wanted = stack(machine, "zfs-mirror")
    seen = inside(guests, "keep", on=stack(machine), spec=wanted, size="100m")
    assert seen == {"text": "kept", "between": [], "left": []}


def test_what_a_killed_process_leaves_is_removed(guests: TrialMachines, machine: MachineSpec) -> None:
    wanted = stack(machine, "zfs-mirror")
    seen = inside(guests, "killed", on=stack(machine), spec=wanted, size="100m")
    name = f"fslab-{guests.workspace.campaign}-pool"
    assert [name, f"/dev/{name}", f"/dev/{name}.1"] == [seen["before"][0], *sorted(seen["before"][1:3])]
    assert len(seen["before"]) == 6, "mounted, and both disks in use"
    assert [kind for kind, _ in seen["done"]] == ["pool", "mount"]
    assert seen["left"] == []
