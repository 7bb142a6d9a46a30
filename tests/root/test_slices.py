"""Tests of trials in slices on real file systems: the tools take turns, and their figures have no frozen time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests import made

from fslab.campaign.sliced_rounds import run_in_slices
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import Cache, Cell, MediumSpec, StackSpec, TrialKey
from fslab.storage import Workspace, mount_point
from fslab.system import mountinfo
from fslab.trial_record import Slices, Status, TrialRecord

READ: dict[str, Any] = {"rw": "randread", "bs": "4k", "direct": True, "size": "8m", "runtime": "1s"}
FILES: dict[str, Any] = {
    "operation": "small-files",
    "files": 3000,
    "size": "4k",
    "operations": "create,delete",
}
MEDIUM = MediumSpec(name="m", type="ram", options={"size": "320m"})


VIRTUAL = MediumSpec(
    name="v", type="virtual", options={"profile": "ssd-sata", "size": "512m", "memory": "256m"}
)


def cells(tool: str, parameters: dict[str, Any], *names: str, medium: MediumSpec = MEDIUM) -> list[Cell]:
    return [
        made.cell(
            StackSpec(name=name, medium=medium, filesystem=name.partition(" ")[0]),
            tool,
            parameters,
            cache=Cache.WARM,
            slice_s=0.02,
        )
        for name in names
    ]


def run(workspace: Workspace, wanted: list[Cell]) -> list[TrialRecord]:
    key = TrialKey(campaign=workspace.campaign, block=0, seed=7)
    records = run_in_slices(
        wanted,
        key,
        workspace,
        machine={"kernel": "here"},
        drain=False,
        prepared=[None] * len(wanted),
    )
    assert [record.cell for record in records] == wanted
    assert not [
        mount
        for mount in mountinfo.mounted()
        if mount.target == mount_point(workspace.runtime, wanted[0].turn)
    ]
    return records


def slices_of(record: TrialRecord) -> Slices:
    assert record.provenance.slices is not None
    return record.provenance.slices


def ran_s(record: TrialRecord) -> float:
    told = slices_of(record)
    assert told.count, told  # a tool that is seen late has few slices left
    return told.ran_s


def test_fio_reports_what_it_did_in_the_time_in_which_it_ran(workspace: Workspace) -> None:
    records = run(workspace, cells("fio", READ, "ext4", "xfs"))
    assert isinstance(workspace.journal, CampaignJournal)
    groups = [entry.target for entry in workspace.journal.pending() if entry.kind == "group"]
    assert len(groups) in {0, 2}, "a killed campaign leaves them, if groups may be made"
    for record in records:
        assert record.error is None
        (job,) = json.loads(record.raw["fio.json"])["jobs"]
        iops = record.metrics["read_iops"].value
        assert iops is not None
        # The slices include the start of the tool, which its own time does not.
        assert iops >= 0.999 * job["read"]["total_ios"] / ran_s(record)
        assert iops > 1.2 * job["read"]["iops"], "fio's own rate is over twice the time"
        mean = record.metrics["read_lat_mean"].value
        assert mean is not None
        assert mean < job["read"]["lat_ns"]["mean"]
        assert record.metrics["read_clat_max"].value is None, "it is the time of a freeze"


def test_each_operation_of_the_engine_has_its_own_time(workspace: Workspace) -> None:
    for record in run(workspace, cells("engine", FILES, "ext4", "xfs")):
        assert record.error is None
        rates = [record.metrics[f"{name}_rate"].value for name in ("create", "delete")]
        operations = json.loads(record.raw["stdout"])["operations"]
        for rate, told in zip(rates, operations, strict=True):
            assert rate is not None
            assert rate >= 0.999 * told["rate_per_second"]
        took_s = sum(3000 / rate for rate in rates if rate)
        assert took_s <= ran_s(record)
        assert "foreign_cpu" not in record.probes, "the other tool would be foreign load"
        assert record.probes["device_written_bytes_flushed"].value


LOOP = "sh -c 'for i in $(seq 400); do head -c 64k /dev/zero >f.$i; done'"
# Tool, parameters, and the time that its figures say that it worked.
TOOLS: dict[str, tuple[dict[str, Any], Callable[[TrialRecord], float]]] = {
    "sysbench": (
        {"file-test-mode": "rndrd", "file-total-size": "8m", "file-num": 4, "events": 400000, "time": 0},
        lambda record: 400000 / figure(record, "read_iops"),
    ),
    "filebench": (
        {"personality": "varmail", "nfiles": 200, "runtime": "1s"},
        lambda record: operations(record) / figure(record, "ops_rate"),
    ),
    "bonnie": (
        {"size": "160m", "bs": "512", "ram": "0", "files": 0, "seeks": 0, "fast": True},
        lambda record: (160 << 20) / figure(record, "write_bandwidth"),
    ),
    "iozone": (
        {"size": "128m", "record": "64k", "program": "engine", "tests": "0,1"},
        lambda record: sum(
            (128 << 20) / figure(record, f"{test}_bandwidth")
            for test in ("write", "rewrite", "read", "reread")
        ),
    ),
    "shell": ({"operation": "create", "files": 400}, lambda record: 400 / figure(record, "create_rate")),
    "command": ({"run": LOOP, "interruptible": True}, lambda record: figure(record, "time")),
}


def figure(record: TrialRecord, name: str) -> float:
    value = record.metrics[name].value
    assert value, name
    return value


def operations(record: TrialRecord) -> int:
    return int(json.loads(record.raw["stdout"])["operations"][-1]["count"])


@pytest.mark.parametrize("tool", TOOLS)
def test_figures_of_every_tool_are_of_the_time_in_which_it_ran(workspace: Workspace, tool: str) -> None:
    """By its own clock, each of the two tools worked for twice that time."""
    parameters, worked_s = TOOLS[tool]
    for record in run(workspace, cells(tool, parameters, "ext4", "xfs")):
        assert record.error is None, record.raw
        told_s, took_s = worked_s(record), ran_s(record)
        assert told_s <= 1.01 * took_s
        whole = {"shell", "command"}
        worked = took_s if tool in whole else took_s - slices_of(record).started_s
        least = (
            0.99 if tool in whole else 0.02
        )  # the others start and end, which takes long beside other load
        assert told_s >= least * worked


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("sqlite", {"transactions": 300}),
        (
            "postgresql",
            {"transactions": 400, "scale": 1, "clients": 2, "max_wal_size": "32m", "shared_buffers": "16m"},
        ),
    ],
)
def test_transactions_on_virtual_disks_have_their_latencies(
    workspace: Workspace, tool: str, parameters: dict[str, Any]
) -> None:
    """The disks stand still while others have their turns: nothing is left to them, and no latency has that time."""
    records = run(workspace, cells(tool, parameters, "ext4", "xfs", medium=VIRTUAL))
    assert [record.error for record in records] == [None, None]
    ahead = {record.provenance.device["virtual_disks"][0]["fidelity"]["ahead_ns"] for record in records}
    assert len(ahead) == 1, "otherwise, one stack would have a quicker disk"
    for record in records:
        rate, median, p99 = (figure(record, f"transaction_{name}") for name in ("rate", "p50", "p99"))
        count = parameters["transactions"]
        assert count / rate <= ran_s(record)
        assert median <= p99 <= ran_s(record) * 1e9
        assert median * count / parameters.get("clients", 1) < 2e9 * count / rate, (
            "half take as long as the median"
        )
        assert slices_of(record).left_share == 0
        (disk,) = record.provenance.device["virtual_disks"]
        assert disk["statistics"]["operations"]["flush"]["requests"]


@pytest.mark.parametrize("broken", ["mkfs", "tool"])
def test_a_trial_that_fails_does_not_spoil_the_others(workspace: Workspace, broken: str) -> None:
    wanted = cells("fio", READ, "ext4", "xfs")
    change: dict[str, Any] = {"mkfs_options": "-Z"} if broken == "mkfs" else {"mount_options": "ro"}
    stack = wanted[1].stack.model_copy(update=change)
    good, bad = run(workspace, [wanted[0], wanted[1].model_copy(update={"stack": stack})])
    assert good.error is None
    assert good.metrics["read_iops"].value
    assert bad.status is Status.FAILED


def test_the_machine_is_tuned_once_for_all(workspace: Workspace) -> None:
    """Each stack on its own would wait for the lock that another one holds."""
    tuned = [
        cell.model_copy(update={"tuning": {"vm.dirty_ratio": "19"}})
        for cell in cells("fio", READ, "ext4", "xfs")
    ]
    assert [record.error for record in run(workspace, tuned)] == [None, None]
