"""Tests that trials of a block share prepared file systems, and that a copy is equal to what was copied."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.made import cell as new_cell
from tests.made import spec

from fslab.campaign import prepared_states, sliced_rounds
from fslab.campaign import trial as trials
from fslab.campaign.prepared_states import PreparedStates, Turn
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cache, Cell, Fresh, MediumSpec, StackSpec, TrialKey, WorkloadSpec
from fslab.errors import ToolFailedError, UnsafeError
from fslab.plan.model import Shared
from fslab.plan.shared_states import groups
from fslab.storage import Workspace, images
from fslab.storage.media import _image
from fslab.trial_record import Status, TrialRecord

TREE = {"scale": 0.0001, "threads": 1}
MIB = 1 << 20


def cell(operation: str, filesystem: str = "ext4", **changes: Any) -> Cell:
    stack = changes.pop("stack", spec(filesystem, options={"size": "1g", "room": "256m"}))
    parameters = {"operation": operation, **TREE}
    return new_cell(stack, "engine", parameters, operation, **{"fresh": Fresh.BLOCK, **changes})


@pytest.fixture
def machines(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> TrialMachines:
    monkeypatch.setattr(prepared_states, "DEAREST", math.inf)  # whether copying pays depends on the machine
    monkeypatch.setattr(_image, "LEFT_SHARE", 1 << 20)  # other tests take memory too
    return TrialMachines(workspace=workspace)


def trial(
    machines: TrialMachines, wanted: Cell, block: int = 0, coming: frozenset[str] | None = None
) -> TrialRecord:
    return machines.run(
        wanted, TrialKey(campaign=machines.workspace.campaign, block=block, seed=block), coming
    )


def stages(record: TrialRecord) -> list[str]:
    return [each.stage for each in record.provenance.commands if each.stage in {"copy", "mkfs", "prepare"}]


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_the_first_trial_of_a_block_prepares_and_the_others_copy(
    filesystem: str, machines: TrialMachines, loop: Callable[[], Path]
) -> None:
    """The operations check their answers, so a copy that lacked a file would fail. One of them deletes all files.

    Other loop devices are made meanwhile: btrfs remembers on which device it saw a file system, and how new it was.
    """
    cells = [cell(each, filesystem) for each in ("delete", "analyze", "sync-read")]
    machines.states.groups = groups(cells)
    for block in (0, 1):
        records = []
        for each in cells:
            loop()
            records.append(trial(machines, each, block))
        assert {record.status for record in records} == {Status.OK}, [record.error for record in records]
        assert [stages(record) for record in records] == [["mkfs", "prepare"], ["copy"], ["copy"]]
        assert {record.raw["manifest.json"] for record in records} == {records[0].raw["manifest.json"]}
        for record in records[1:]:
            assert record.provenance.files_copied_from_cell == cells[0].id
            copy = record.provenance.commands[0]
            assert copy.duration_s is not None
            assert record.duration_s > copy.duration_s
            assert record.started <= records[-1].started


def test_a_copy_is_measured_as_what_was_made(machines: TrialMachines) -> None:
    """What fslab reads before a run changes no access time, which the run would write or not."""
    stack = spec("ext4", options={"size": "1g", "room": "256m"})
    parameters = {"operations": "stat", "files": 500, "size": "4k"}
    cells = [new_cell(stack, "engine", parameters, name, fresh=Fresh.BLOCK) for name in ("one", "two")]
    machines.states.groups = groups(cells)
    records = [trial(machines, each) for each in cells]
    assert [stages(record) for record in records] == [["mkfs", "prepare"], ["copy"]]
    names = ("device_written_bytes_flushed", "journal_bytes", "journal_commits")
    made, copied = ({name: record.probes[name].value for name in names} for record in records)
    assert made == copied
    assert made["journal_commits"] == 0


def test_other_cells_of_the_medium_and_other_seeds_share_nothing(machines: TrialMachines) -> None:
    others = [cell("analyze", "ext2"), cell("delete", fresh=Fresh.TRIAL)]
    cells = [cell("analyze"), cell("delete"), *others]
    machines.states.groups = groups(cells)
    assert set(machines.states.groups) == {cells[0].id, cells[1].id}
    assert stages(trial(machines, cells[0])) == ["mkfs", "prepare"]
    assert stages(trial(machines, cells[2])) == ["mkfs", "prepare"]
    assert stages(trial(machines, cells[3])) == ["mkfs", "prepare"]
    assert stages(trial(machines, cells[1])) == ["copy"]
    assert stages(trial(machines, cells[0])) == ["copy"]


def test_a_state_that_no_later_trial_needs_is_not_copied(machines: TrialMachines) -> None:
    cells = [cell("analyze"), cell("delete")]
    machines.states.groups = groups(cells)
    alone = frozenset({"another cell"})
    assert stages(trial(machines, cells[0], 0, alone)) == ["mkfs", "prepare"]
    assert not [path for path in machines.workspace.media if "_copy" in path]
    assert stages(trial(machines, cells[1], 0, alone)) == ["mkfs", "prepare"]
    assert stages(trial(machines, cells[0], 1, frozenset({cells[1].id}))) == ["mkfs", "prepare"]
    assert stages(trial(machines, cells[1], 1, frozenset())) == ["copy"]


def test_without_memory_for_a_copy_each_trial_prepares(
    machines: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell("analyze"), cell("sync-read")]
    machines.states.groups = groups(cells)
    monkeypatch.setattr(_image, "LEFT_SHARE", 1)  # all of the memory is to stay free
    for each in (*cells, *cells):
        record = trial(machines, each)
        assert (record.status, stages(record)) == (Status.OK, ["mkfs", "prepare"]), record.error


def test_files_that_are_made_faster_than_copied_are_made(
    machines: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_states, "DEAREST", 0.0)
    cells = [cell("analyze"), cell("sync-read")]
    machines.states.groups = groups(cells)
    found = [stages(trial(machines, each)) for each in (*cells, *cells)]
    assert found == [["mkfs", "prepare"], ["copy"], ["copy"], ["mkfs", "prepare"]]


@pytest.mark.parametrize("dearest", [math.inf, 0.0])
def test_workloads_in_slices_share_the_files_of_their_round(
    machines: TrialMachines, monkeypatch: pytest.MonkeyPatch, dearest: float
) -> None:
    """Each stack has its own. That one of them finds copying too dear does not disturb the other."""
    monkeypatch.setattr(prepared_states, "DEAREST", dearest)
    monkeypatch.setattr(sliced_rounds, "LEAST_SLICES", 0)
    names = ("analyze", "sync-read")
    cells = [cell(name, fs, slice_s=0.02) for name in names for fs in ("ext4", "xfs")]
    machines.states.groups = groups(cells)
    ids = frozenset(each.id for each in cells)
    copies = []
    for block in (0, 1, 2):
        key = TrialKey(campaign=machines.workspace.campaign, block=block, seed=block)
        records = [
            record for half in (cells[:2], cells[2:]) for record in machines.run_together(half, key, ids)
        ]
        assert {record.status for record in records} == {Status.OK}, [record.error for record in records]
        assert [stages(record) for record in records[:2]] == [["mkfs", "prepare"]] * 2
        # A state that could not be kept, such as for lack of memory beside other tests, is made again.
        copied = [stages(record) == ["copy"] for record in records[2:]]
        assert all(
            each or stages(record) == ["mkfs", "prepare"]
            for each, record in zip(copied, records[2:], strict=True)
        )
        whose = [record.provenance.files_copied_from_cell for record in records[2:]]
        assert whose == [each.id if was else None for each, was in zip(cells[:2], copied, strict=True)]
        copies.append(sum(copied))
    assert copies[0] > 0
    assert copies[2] > 0 if dearest else copies[2] == 0


def test_the_state_of_a_failed_trial_is_not_used(
    machines: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cell("analyze"), cell("sync-read")
    machines.states.groups = groups([first, second])

    def fails(*_: object) -> None:
        raise ToolFailedError("the tool ended with an error")

    with monkeypatch.context() as patched:
        patched.setattr(trials, "measure", fails)
        record = trial(machines, first)
    assert (record.status, stages(record)) == (Status.FAILED, ["mkfs", "prepare"])
    assert stages(trial(machines, second)) == ["mkfs", "prepare"]


VIRTUAL = {"profile": "hdd-7200", "size": "16g", "memory": "256m"}
KEEPERS: dict[str, dict[str, Any]] = {"virtual": VIRTUAL, "ram": {"size": "1g", "room": "256m"}}


def on(medium: str, filesystem: str = "ext4", **changes: Any) -> Cell:
    """A cell that begins without files."""
    spec = MediumSpec(name="m", type=medium, options=KEEPERS[medium])
    mounted = changes.pop("mount_options", "defaults")
    stack = StackSpec(name=mounted, medium=spec, filesystem=filesystem, mount_options=mounted)
    wanted = {"operation": "meta", "operations": "create,unlink", "files": 100, **changes}
    workload = WorkloadSpec(name=str(wanted), tool="engine", parameters=wanted)
    return Cell(stack=stack, workload=workload, fresh=Fresh.BLOCK, cache=Cache.WARM)


@pytest.mark.parametrize(
    ("medium", "filesystem"), [("virtual", "ext3"), ("virtual", "xfs"), ("virtual", "btrfs"), ("ram", "ext4")]
)
def test_trials_without_common_files_share_the_empty_file_system(
    medium: str, filesystem: str, machines: TrialMachines
) -> None:
    cells = [on(medium, filesystem, files=files) for files in (100, 200)]
    cells.append(on(medium, filesystem, mount_options="noatime"))
    machines.states.groups = groups(cells)
    assert [each.files for each in machines.states.groups.values()] == [False] * 3
    for block in (0, 1):
        records = [trial(machines, each, block) for each in cells]
        assert all(record.status in {Status.OK, Status.INVALID} for record in records), records
        assert [stages(record) for record in records] == [["mkfs"], ["copy"], ["copy"]]
        for record in records[1:]:
            assert record.provenance.filesystem_copied_from_cell == cells[0].id


def test_copies_are_forgotten_with_their_block_and_when_they_do_not_pay(
    machines: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, other = [on("virtual", files=files) for files in (100, 200)], on("virtual", "xfs")
    machines.states.groups = groups(cells)

    def kept() -> int:
        statistics = machines.workspace.media["disk m"].ask("statistics")
        return int(statistics["kept_bytes"])

    trial(machines, cells[0])
    trial(machines, cells[1])
    assert kept() > 0
    trial(machines, other, block=1)
    assert kept() == 0
    monkeypatch.setattr(prepared_states, "DEAREST", 0.0)
    monkeypatch.setattr(prepared_states, "MOST_DEAR", 1)
    for each in (*cells, other):
        trial(machines, each, block=1)
    assert kept() == 0


@pytest.mark.alone
def test_a_server_that_was_killed_takes_its_copies_with_it(machines: TrialMachines) -> None:
    cells = [on("virtual", files=files) for files in (100, 200)]
    machines.states.groups = groups(cells)
    assert stages(trial(machines, cells[0])) == ["mkfs"]
    machines.workspace.media["disk m"].child.end()
    assert stages(trial(machines, cells[1])) == ["mkfs"]
    assert stages(trial(machines, cells[0])) == ["copy"]


@pytest.mark.parametrize(
    "changed",
    [
        {"fresh": Fresh.TRIAL},
        {"fresh": Fresh.CELL},
        {"profile": "ssd-sata"},
        {"layout": "lvm-stripe"},
    ],
)
def test_what_is_more_than_its_contents_is_not_shared(changed: dict[str, Any]) -> None:
    cells = []
    for files in (100, 200):
        wanted = on("virtual", files=files)
        medium = wanted.stack.medium
        if profile := changed.get("profile"):
            medium = medium.model_copy(update={"options": {**VIRTUAL, "profile": profile}})
        layout = {"layout": changed["layout"]} if "layout" in changed else {}
        stack = wanted.stack.model_copy(update={"medium": medium, **layout})
        fresh = changed.get("fresh", Fresh.BLOCK)
        cells.append(wanted.model_copy(update={"stack": stack, "fresh": fresh}))
    assert not groups(cells)


def made(workspace: Workspace, name: str, *written: tuple[int, bytes], size: int = 64 * MIB) -> Path:
    path = workspace.runtime / "scratch" / name
    workspace.media[str(path)] = images.create(path, size, workspace, sparse=True)
    with path.open("r+b") as file:
        for offset, data in written:
            file.seek(offset)
            file.write(data)
    return path


def test_a_copy_has_the_same_bytes_and_holes(workspace: Workspace) -> None:
    source = made(workspace, "a", (0, os.urandom(5000)), (7 * MIB, os.urandom(3 * MIB)), (63 * MIB, b"x"))
    target = made(workspace, "b", (20 * MIB, b"older"), (64 * MIB - 1, b"older"), size=128 * MIB)
    images.copy(source, target, workspace)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_blocks == source.stat().st_blocks
    images.empty(target, workspace)
    assert (target.stat().st_size, target.stat().st_blocks) == (64 * MIB, 0)


@pytest.mark.parametrize("replaced", ["a", "b"])
def test_an_image_that_was_replaced_is_neither_read_nor_written(
    replaced: str, workspace: Workspace, tmp_path: Path
) -> None:
    paths = {name: made(workspace, name, (0, b"image")) for name in ("a", "b")}
    other = tmp_path / "other"
    other.write_bytes(b"somebody's")
    for make in (Path.hardlink_to, Path.symlink_to):
        paths[replaced].unlink()
        make(paths[replaced], other)
        with pytest.raises((UnsafeError, OSError)):
            images.copy(paths["a"], paths["b"], workspace)
        assert other.read_bytes() == b"somebody's"


def test_what_a_guest_reports_without_need_changes_nothing(workspace: Workspace) -> None:
    """Root in a guest can send any message at any time: here, before there is an image."""
    wanted = cell("analyze")
    states = PreparedStates(workspace=workspace, groups={wanted.id: Shared(group="group", files=True)})
    turn = states.begin(wanted, TrialKey(campaign=workspace.campaign, block=0, seed=0), "guest-1")
    assert isinstance(turn, Turn)
    states.keep(turn)
    assert not workspace.media
    again = states.begin(wanted, TrialKey(campaign=workspace.campaign, block=0, seed=0), "guest-1")
    assert isinstance(again, Turn)
    assert again.copy is None
