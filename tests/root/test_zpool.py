"""Tests of whose pools are exported, with a pool that is only a file: real ones are in tests/guest/test_zfs.py."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from fslab.campaign import cleanup
from fslab.campaign.undo_journal import CampaignJournal
from fslab.errors import UnsafeError
from fslab.storage import Workspace, zpool
from fslab.storage.filesystems.zfs import Zfs
from fslab.storage.layouts import LayoutPlan
from fslab.system import loop_devices


class Recorded(Zfs):
    """A file system whose imported pool is a file with the names of its devices."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def export_argv(self, device: str) -> list[str]:
        return ["rm", str(self.state)] if device else [device]

    def imported_argv(self, device: str) -> list[str]:
        return ["cat", str(self.state)] if device else [device]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    made = Recorded(tmp_path / "imported")
    monkeypatch.setattr(zpool, "FILESYSTEMS", [("recorded", made)])
    return made


def provided(driver: Recorded, workspace: Workspace, undo: ExitStack) -> zpool.Pool | None:
    with loop_devices.added() as device:
        return zpool.provide(
            driver,
            [str(device)],
            zpool.with_nodes(driver, LayoutPlan(device=str(device)), workspace.campaign),
            workspace,
            undo,
        )


def test_at_the_end_it_is_exported_and_its_node_is_gone(driver: Recorded, workspace: Workspace) -> None:
    with ExitStack() as undo:
        made = provided(driver, workspace, undo)
        assert made is not None
        node = Path(made.nodes[0])
        assert node.is_block_device()
        driver.state.write_text(f"{node.name}\t100M\n\t{node}\t100M\n")
    assert not driver.state.exists()
    assert not node.exists()


@pytest.mark.parametrize("ours", [True, False])
def test_after_a_crash_it_is_exported_only_if_it_lies_on_fslab_s_node(
    ours: bool, driver: Recorded, workspace: Workspace
) -> None:
    campaign = f"{workspace.campaign}-pools"
    with CampaignJournal(campaign) as journal, ExitStack() as undo:
        killed = Workspace(
            campaign=campaign, runtime=workspace.runtime, images=workspace.images, journal=journal
        )
        made = provided(driver, killed, undo)
        assert made is not None
        journal.will_create("mount", f"/run/fslab/{campaign}/mnt")
        undo.pop_all()
    node = made.nodes[0]
    driver.state.write_text(f"{Path(node).name}\t100M\n\t{node if ours else '/dev/disk/by-id/other'}\t100M\n")
    done = cleanup.clean(campaign)
    assert [entry.kind for entry in done] == ["pool", "mount"]
    assert driver.state.exists() is not ours
    assert not Path(node).exists()
    assert cleanup.clean(campaign) == []


def test_a_pool_of_the_name_that_is_imported_already_is_left_alone(
    driver: Recorded, workspace: Workspace
) -> None:
    driver.state.write_text("somebody's")
    with ExitStack() as undo, pytest.raises(UnsafeError, match=r"-pool exists"):
        provided(driver, workspace, undo)
    assert driver.state.exists()
