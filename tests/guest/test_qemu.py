"""Tests of trials in QEMU with a kernel of this distribution, which is downloaded once. Slow without KVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.guest.conftest import cell

from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cell, MachineSpec, StackSpec, TrialKey
from fslab.machine.kinds import REGISTRY
from fslab.trial_record import Severity, Status

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def kernel() -> str:
    """Return the path of a distribution's kernel below target/, beside its modules."""
    done = subprocess.run(
        [str(ROOT / "packaging/guest-kernel.sh"), str(ROOT / "target/guest-kernel")],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no kernel for a guest: {done.stderr.strip()}")
    return done.stdout.strip()


def in_qemu(kernel: str, filesystem: str) -> Cell:
    short = cell(filesystem)
    machine = MachineSpec(type="qemu", kernel=kernel, memory="512m")
    if missing := REGISTRY.get("qemu").missing(machine):
        pytest.skip(f"{missing[0].what}: {missing[0].remedy}")
    stack = StackSpec.model_validate({**short.stack.model_dump(), "machine": machine})
    return short.model_copy(update={"stack": stack})


def test_a_stock_kernel_serves_a_batch(guests: TrialMachines, kernel: str) -> None:
    for block, name in enumerate(("ext4", "f2fs")):
        wanted = in_qemu(kernel, name)
        record = guests.run(wanted, TrialKey(campaign=guests.workspace.campaign, block=block, seed=7))
        assert record.status in {Status.OK, Status.INVALID}, record.error
        assert record.metrics["write_iops"].value
        machine = record.provenance.machine
        assert machine["machine"] == "qemu"
        assert kernel.endswith(machine["kernel"])
        assert record.provenance.device["size_bytes"] == 96 << 20
        assert record.provenance.device["rotational"] is False
        mounted = "EXT4-fs (vda): mounted" if name == "ext4" else "F2FS-fs (vda): Mounted"
        assert mounted in record.raw["guest_kernel_log"]
        (warning,) = [each for each in record.validity if each.kind == "guest_figures"]
        expected = Severity.WARNING if machine["accelerator"] == "tcg" else Severity.NOTE
        assert warning.severity is expected
    assert len(guests.running) == 1
