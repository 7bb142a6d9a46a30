"""Finds published bugs of btrfs in the kernel of Debian's User-Mode Linux, without being told where they are.

All sequences of one and two operations that write no contents, with fsync, are tried; each is cut after its last one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import made
from tests.guest.conftest import cell

from fslab.api import crash_states
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import MachineSpec, TrialKey, WorkloadSpec
from fslab.crash import bounded_sequences
from fslab.crash.trial_request import Alphabet
from fslab.trial_record import Status, TrialRecord
from fslab.units import parse_size

PART = 95  # sequences in one file system
DISK = {"profile": "none", "size": "320m", "memory": "320m", "log": "data"}
# Fixed in Linux 6.16, 6.18 and 7.1, and not in 6.1.176: the commit, its test in fstests, and a sequence that shows it.
PUBLISHED = {
    "5e85262e542d, generic/764": ["unlink a and fsync it"],
    "953902e4fb4c, generic/779": ["symlink a s", "fsync-directory", "rename s t", "fsync-directory"],
    "5254d4181add, generic/789": ["truncate a to 0 blocks", "fsync a", "link a l", "fsync-directory"],
}


def crashed(guests: TrialMachines, filesystem: str, **parameters: object) -> TrialRecord:
    """Return the record of a trial. ``faults``: of the disk."""
    disk = {**DISK, "faults": parameters.pop("faults", "")}
    stack = made.spec(filesystem, "virtual", disk, machine=MachineSpec(type="uml", memory="2g"))
    wanted = cell(
        filesystem,
        stack=stack,
        time_limit_s=1800.0,
        workload=WorkloadSpec(name="cuts", tool="crash", parameters={"recoveries": 0, **parameters}),
    )
    return guests.run(wanted, TrialKey(campaign=guests.workspace.campaign, block=0, seed=7))


def broken(record: TrialRecord) -> list[list[str]]:
    """Return the sequences after which a promise was broken."""
    assert record.status in {Status.OK, Status.INVALID}, record.error
    document = json.loads(record.raw["stdout"])
    return [each["sequence"] for each in document["findings"] if each["broken"]]


def test_a_guest_has_a_virtual_disk_of_its_own_and_cuts_its_power(guests: TrialMachines) -> None:
    record = crashed(guests, "ext4", sequences=1, states=2)
    assert broken(record) == []
    assert record.metrics["states"].value == 2


@pytest.fixture
def keeping(guests: TrialMachines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the recordings of the guests, which exist by then, where they do not count as left behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "kept"))


@pytest.mark.usefixtures("keeping")
def test_a_finding_of_a_guest_is_made_again_in_another_guest(guests: TrialMachines, tmp_path: Path) -> None:
    record = crashed(
        guests,
        "ext4",
        faults="ignore-flush",
        operations="published",
        sequences=1,
        states=1,
        cuts="ends",
        repairs=0,
    )
    found = json.loads(record.raw["stdout"])["findings"]
    guests.end()
    told = crash_states.crash_state(found[0]["id"], tmp_path / "state.img")
    assert (tmp_path / "state.img").stat().st_size == parse_size("320m")
    assert told["kernel"] == told["recorded_kernel"]
    assert [each["broken"] for each in told["findings"]] == [True]
    assert told["findings"] == [{name: found[0][name] for name in told["findings"][0]}]


@pytest.mark.slow
@pytest.mark.usefixtures("keeping")
def test_bugs_that_upstream_has_fixed_are_found_by_the_sequences_of_published_bugs(
    guests: TrialMachines,
) -> None:
    record = crashed(guests, "btrfs", operations="published", cuts="ends", states=100, repairs=0)
    found = broken(record)
    print(found)
    assert [name for name, steps in PUBLISHED.items() if steps not in found] == []


@pytest.mark.slow
@pytest.mark.usefixtures("keeping")
def test_bugs_that_upstream_has_fixed_are_found_by_trying_all_short_sequences(guests: TrialMachines) -> None:
    """Each part has a new file system: a state has all blocks that were ever written, so states grow with the log."""
    every: dict[str, object] = {"length": 2, "operations": "metadata", "cuts": "ends", "repairs": 0}
    found, tried = [], 0
    total = sum(1 for _ in bounded_sequences.enumerated(2, Alphabet.METADATA, promising=True))
    for skip in range(0, total, PART):
        record = crashed(guests, "btrfs", **every, sequences=PART, states=PART, skip=skip)
        found += broken(record)
        tried += int(record.metrics["states"].value or 0)
    assert tried == total > 500
    assert [name for name, steps in PUBLISHED.items() if steps not in found] == []
