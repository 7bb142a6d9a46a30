"""Tests of how a report describes the device: facts of its parts, and nothing that a trial measured on it."""

from tests.unit.compared import around, cell, trials

from fslab.record import Provenance
from fslab.report.page import method


def test_facts_of_disks_share_a_row_and_counters_have_none() -> None:
    disks: list[dict[str, object]] = [
        {"profile": "hdd-7200", "seed": seed, "faults": [], "statistics": {"reads": seed}} for seed in (1, 2)
    ]
    device = {"size_bytes": 1 << 30, "virtual_disks": disks, "memory_held_bytes": 4096}
    records = [
        trial.model_copy(update={"provenance": Provenance(device=device)})
        for trial in trials(cell(), around(1))
    ]
    ((title, facts),) = method._devices(records)
    assert title == "Device under memory"
    assert dict(method._described(facts)) == {
        "size": "1 GiB",
        "virtual disks: profile": "hdd-7200",
        "virtual disks: seed": "1 / 2",
    }
