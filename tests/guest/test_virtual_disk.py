"""Tests of virtual disks in User-Mode Linux, where the server provides them as virtio disks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.guest.conftest import cell
from tests.guest.test_uml import trial

from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cell, MachineSpec, MediumSpec, StackSpec, WorkloadSpec
from fslab.trial_record import Status

WRITES = {"rw": "write", "bs": "1m", "size": "32m", "fsync_on_close": True}
KIB = 1 << 10


def on_disks(layout: str = "single", disks: int = 1, parameters: Any = None, **options: object) -> Cell:
    stack = StackSpec(
        name="ext4", filesystem="ext4", layout=layout, layout_options={"disks": disks} if disks > 1 else {},
        medium=MediumSpec(name="m", type="virtual", options={"profile": "hdd-7200", "size": "8g", **options}),
        machine=MachineSpec(type="uml", memory="256m"),
    )  # fmt: skip
    return cell(stack=stack, workload=WorkloadSpec(name="w", tool="fio", parameters=parameters or WRITES))


@pytest.mark.slow
def test_two_hard_disks_get_whole_requests_and_flushes(guests: TrialMachines) -> None:
    """A guest can use disks of both kinds in turn: a driver is bound for a trial, and unbound after it.

    Requests reach the disks as the guest's kernel makes them, not split into small ones.
    """
    assert trial(guests, cell()).provenance.device["device"] == "ubdb"
    for block in range(2):
        record = trial(guests, on_disks("md-raid0", 2), block)
        assert record.status in {Status.OK, Status.INVALID}, record.error
        disks = record.provenance.device["virtual_disks"]
        assert [each["seed"] for each in disks] == [1, 2]
        for each in disks:
            counted = each["statistics"]["operations"]
            assert counted["write"]["bytes"] / counted["write"]["requests"] > 16 * KIB
            assert counted["flush"]["requests"] > 0
        assert record.probes["disk_service_mean"].value
        assert record.probes["disk_movements"].value
        assert record.provenance.machine["machine"] == "uml"
    assert len(guests.running) == 1
    assert trial(guests, cell(), 1).status in {Status.OK, Status.INVALID}


@pytest.mark.slow
def test_faults_begin_with_the_run_of_a_guest(guests: TrialMachines) -> None:
    reads = {"rw": "randread", "bs": "4k", "size": "4m", "direct": True, "runtime": "300ms"}
    record = trial(guests, on_disks(parameters=reads, profile="none", faults="error op=read"))
    assert record.status is not Status.OK
    assert record.provenance.device["virtual_disks"][0]["faults"] == [{"effect": "error", "op": "read"}]
    whole = trial(guests, on_disks(parameters=reads, profile="none"), 1)
    assert whole.status in {Status.OK, Status.INVALID}, whole.error


@pytest.mark.slow
def test_a_disk_whose_server_was_killed_costs_one_trial(guests: TrialMachines) -> None:
    """If the server was killed between two trials, the next trial starts a new one."""
    assert trial(guests, on_disks()).status in {Status.OK, Status.INVALID}
    (server,) = (each for name, each in guests.workspace.media.items() if name.startswith("disk "))
    server.child.process.kill()
    server.child.process.wait()
    assert trial(guests, on_disks(), 1).status in {Status.OK, Status.INVALID}
