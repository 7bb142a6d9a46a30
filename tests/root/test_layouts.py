"""Tests of layouts on real loop devices: RAID of btrfs, several disks of a device medium, and layouts that this kernel
lacks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests import loops, made
from tests.limits import LIMIT_S

from fslab import feasibility
from fslab.campaign import cleanup
from fslab.campaign.trial import run_trial
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import Cache, Cell, Fresh, MediumSpec, StackSpec, TrialKey
from fslab.errors import BusyError, UnsafeError, UnsupportedError, UsageError
from fslab.storage import Workspace, blank_check, overwrite_check, stack
from fslab.storage.layouts import REGISTRY, volume_name
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import files, kernel, loop_devices, mounts, waiting
from fslab.trial_record import TrialRecord

MIB = 1 << 20
DEVICE = MEDIA.get("device")
KERNEL_S = [name for name in REGISTRY.names() if REGISTRY.get(name).undo_kind]
Disks = Callable[[int], list[str]]


def spec(
    layout: str, filesystem: str = "btrfs", medium: MediumSpec | None = None, **options: Any
) -> StackSpec:
    ram = MediumSpec(name="m", type="ram", options={"size": "160m"})
    return StackSpec(
        name="s", medium=medium or ram, layout=layout, layout_options=options, filesystem=filesystem
    )


def cell(wanted: StackSpec, fresh: Fresh = Fresh.TRIAL) -> Cell:
    parameters = {"rw": "write", "bs": "1m", "size": "32m", "direct": False, "end_fsync": True}
    return made.cell(wanted, parameters=parameters, fresh=fresh, cache=Cache.WARM)


def written(wanted: Cell, workspace: Workspace, block: int = 0) -> float:
    """Run a trial and return its write amplification: bytes written to the devices per byte that the workload wrote."""
    record = run_trial(
        wanted, TrialKey(campaign=workspace.campaign, block=block, seed=1), workspace, machine={}
    )
    assert record.failure is None, record.error
    assert len(record.provenance.device["parts"]) == wanted.stack.layout_options["disks"]
    value = record.probes["write_amplification"].value
    assert value is not None
    return value


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with cleanup.opened_workspace(new_id(), frozenset()) as opened:
        yield opened


@pytest.fixture
def disks(tmp_path: Path, stable: Callable[[Path], str]) -> Iterator[Disks]:
    """Yield a function that makes blank loop devices of 140 MiB and returns their stable names.

    The devices do not belong to fslab.
    """
    images: list[Path] = []

    def make(count: int) -> list[str]:
        paths = []
        for _ in range(count):
            images.append(tmp_path / f"disk {len(images)}.img")
            with images[-1].open("wb") as image:
                image.truncate(140 * MIB)
            paths.append(stable(loops.attached(images[-1])))
        return paths

    yield make
    for image in images:
        loop_devices.detach(image)


def crashed(wanted: StackSpec, wipe: frozenset[str], place: Path) -> None:
    """Build a stack on devices, and leave it, as the killed campaign ``test-joined-12`` does."""
    with CampaignJournal("test-joined-12") as journal, ExitStack() as undo:
        workspace = Workspace(
            campaign=journal.campaign,
            runtime=place / journal.campaign,
            images=place,
            journal=journal,
            wipe=wipe,
        )
        workspace.runtime.mkdir()
        stack.build(wanted, workspace, undo, slot="m", make=True)
        undo.pop_all()
        workspace.exit.pop_all()
        for name, claim in workspace.media.items():
            if name.startswith("claim "):
                overwrite_check.release(claim)


def several(paths: list[str]) -> MediumSpec:
    return MediumSpec(name="m", type="device", options={"path": " ".join(paths)})


def test_striped_data_is_written_once_and_mirrored_data_twice(workspace: Workspace) -> None:
    # Metadata and superblocks add some MiB to the 32 MiB of data.
    assert 1.0 <= written(cell(spec("btrfs-raid0", disks=3)), workspace) < 1.7
    assert 2.0 <= written(cell(spec("btrfs-raid1", disks=3)), workspace) < 2.7


def test_profiles_are_those_of_the_layout(workspace: Workspace, shell: Any) -> None:
    expected = {"btrfs-raid0": ("RAID0", "RAID1"), "btrfs-raid1": ("RAID1", "RAID1")}
    for layout, (data, metadata) in expected.items():
        with ExitStack() as undo:
            up = stack.build(spec(layout, disks=3), workspace, undo, slot="m", make=True)
            said = shell("btrfs", "filesystem", "df", up.target).stdout
            assert f"Data, {data}:" in said
            assert f"Metadata, {metadata}:" in said
            assert shell("btrfs", "filesystem", "show", up.target).stdout.count("devid") == 3
            assert len(up.watched) == 3


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_the_journal_is_on_its_own_disk_also_under_another_name(
    filesystem: str, workspace: Workspace
) -> None:
    ram = MediumSpec(name="m", type="ram", options={"size": "320m"})
    wanted = cell(spec("external-journal", filesystem, medium=ram), Fresh.CELL).model_copy(
        update={"cache": Cache.COLD}
    )
    for block in range(2):
        key = TrialKey(campaign=workspace.campaign, block=block, seed=1)
        record = run_trial(wanted, key, workspace, machine={})
        assert record.failure is None, record.error
        assert len(record.provenance.device["parts"]) == 2
        assert any(option.startswith(("logdev=", "journal_path=")) for option in _mounted(record)), block
        blocker = workspace.images / f"fslab-blocker-{block}.img"  # the images get other devices than before
        blocker.parent.mkdir(parents=True, exist_ok=True)
        blocker.write_bytes(bytes(MIB))
        loops.attached(blocker)
    for block in range(2):
        loop_devices.detach(workspace.images / f"fslab-blocker-{block}.img")
        (workspace.images / f"fslab-blocker-{block}.img").unlink()


def _mounted(record: TrialRecord) -> list[str]:
    of_it = [each.argv for each in record.provenance.commands if "/mnt" in each.argv[-1]]
    first = next(argv for argv in of_it if argv[0] == "mount")
    return first[first.index("-o") + 1].split(",")


def test_a_file_system_over_several_disks_lives_on(workspace: Workspace) -> None:
    lasting = cell(spec("btrfs-raid0", disks=2), Fresh.CELL)
    written(lasting, workspace)
    # Another image takes a loop device, so that the images of the next trial get other devices than before. The mount
    # must be given the new ones.
    blocker = workspace.images / "fslab-blocker.img"
    blocker.parent.mkdir(parents=True, exist_ok=True)
    blocker.write_bytes(bytes(MIB))
    loops.attached(blocker)
    try:
        record = run_trial(
            lasting, TrialKey(campaign=workspace.campaign, block=1, seed=1), workspace, machine={}
        )
    finally:
        loop_devices.detach(blocker)
        blocker.unlink()
    assert record.failure is None, record.error
    assert "mkfs" not in {command.stage for command in record.provenance.commands}


def test_after_a_crash_everything_is_gone(own_directories: Path) -> None:
    campaign = "test-joined-9"
    journal = CampaignJournal(campaign)
    workspace = Workspace(
        campaign=campaign,
        runtime=own_directories / campaign,
        images=own_directories / "state" / "images",
        journal=journal,
    )
    workspace.runtime.mkdir()
    with ExitStack() as undo:
        stack.build(spec("btrfs-raid1", disks=2), workspace, undo, slot="m", make=True)
        undo.pop_all()
        workspace.exit.pop_all()
    journal.close()
    assert {entry.kind for entry in cleanup.clean(campaign)} == {"mount", "loop", "loop device", "image"}
    assert cleanup.clean(campaign) == []
    workspace.runtime.rmdir()


class TestSeveralDisks:
    def test_all_are_used_and_left_without_a_signature(self, disks: Disks, shell: Any) -> None:
        paths = disks(3)
        wanted = spec("btrfs-raid1", medium=several(paths), disks=2)
        with cleanup.opened_workspace(new_id(), frozenset(paths)) as workspace:
            feasibility.check_stack(wanted, workspace)
            for make in (True, False, True):
                with ExitStack() as undo:
                    up = stack.build(wanted, workspace, undo, slot="m", make=make, keep=True)
                    assert list(up.watched) == [Path(path).resolve().name for path in paths[:2]]
                    assert up.work.is_dir()
            assert "btrfs" in shell("wipefs", "--noheadings", paths[1]).stdout
        for path in paths:
            assert shell("wipefs", "--noheadings", path).stdout == ""

    @pytest.mark.parametrize(("filesystem", "layout"), [("btrfs", "btrfs-raid1"), ("ext4", "single")])
    def test_after_a_crash_the_campaign_s_file_system_is_wiped_and_no_other(
        self, filesystem: str, layout: str, disks: Disks, shell: Any, own_directories: Path
    ) -> None:
        paths = disks(2)
        options = {"disks": 2} if layout != "single" else {}

        def is_made() -> bool:
            return bool(shell("mkfs.ext4", "-q", "-F", paths[0], check=False).returncode == 0)

        for theirs in (False, True):
            crashed(spec(layout, filesystem, several(paths), **options), frozenset(paths), own_directories)
            if theirs:
                mounts.unmount(own_directories / "test-joined-12" / "mnt", devices=None)
                # A process of another test, with mounts of its own, can hold the file system a moment longer.
                assert waiting.until(is_made, LIMIT_S)
            assert "signature" in {entry.kind for entry in cleanup.clean("test-joined-12")}
            assert shell("wipefs", "--noheadings", paths[1]).stdout == ""
            assert ("ext4" in shell("wipefs", "--noheadings", paths[0]).stdout) == theirs
            (own_directories / "test-joined-12").rmdir()

    def test_a_layout_takes_as_many_as_it_needs(self, disks: Disks) -> None:
        paths = disks(3)
        options = DEVICE.parse_options({"path": f"{paths[0]}\n  {paths[1]} {paths[2]}"})
        assert [each.path for each in DEVICE.each(options, 2)] == paths[:2]
        with pytest.raises(UsageError, match="the layout needs 4 disks, but 'path' names 3"):
            DEVICE.each(options, 4)

    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_each_must_be_blank_or_named(self, number: int, disks: Disks) -> None:
        paths = disks(3)
        options = DEVICE.parse_options({"path": " ".join(paths)})
        named = frozenset(path for path in paths if path != paths[number])
        with cleanup.opened_workspace(new_id(), named) as workspace:
            # A loop device that fslab did not create counts as a device with data.
            with pytest.raises(UnsafeError, match="fslab did not create") as caught:
                DEVICE.check(options, workspace, disks=3)
            assert caught.value.where == paths[number]
            with pytest.raises(UnsafeError, match="fslab did not create"), ExitStack() as undo:
                stack.build(
                    spec("btrfs-raid0", medium=several(paths), disks=3), workspace, undo, slot="m", make=True
                )
            if number == 2:
                DEVICE.check(options, workspace, disks=2)

    def test_none_may_be_in_use(self, disks: Disks, shell: Any, tmp_path: Path) -> None:
        paths = disks(2)
        shell("mkfs.ext4", "-q", paths[1])
        target = tmp_path / "used"
        target.mkdir()
        shell("mount", paths[1], target)
        try:
            with (
                cleanup.opened_workspace(new_id(), frozenset(paths)) as workspace,
                pytest.raises(UnsafeError, match="is mounted"),
            ):
                DEVICE.check(DEVICE.parse_options({"path": " ".join(paths)}), workspace, disks=2)
        finally:
            mounts.unmount(target, devices=None)

    def test_all_are_checked_again_before_the_first_is_overwritten(
        self, disks: Disks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Something opens the first disk for writing while the second one is read."""
        paths, opened = disks(2), ExitStack()

        def check_blank(path: str, *_: object) -> None:
            if path == paths[1]:
                opened.enter_context(files.opened(paths[0], os.O_RDWR))

        monkeypatch.setattr(overwrite_check, "check_blank", check_blank)
        with (
            opened,
            cleanup.opened_workspace(new_id(), frozenset()) as workspace,
            ExitStack() as undo,
            pytest.raises(UnsafeError, match="is open for writing"),
        ):
            wanted = spec("btrfs-raid0", medium=several(paths), disks=2)
            try:
                stack.build(wanted, workspace, undo, slot="m", make=True)
            finally:
                opened.close()
        assert all(blank_check.reason_not_blank(Path(path), print) is None for path in paths)

    def test_one_disk_under_two_names_is_no_two_disks(
        self, loop: Callable[[], Path], stable: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fslab.storage.overwrite_check.CLAIM_DEADLINE_S", 0.1)
        device = loop()
        paths = [stable(device), stable(device)]
        with cleanup.opened_workspace(new_id(), frozenset(paths)) as workspace:
            with pytest.raises(UnsafeError, match="overlaps with"):
                DEVICE.check(DEVICE.parse_options({"path": " ".join(paths)}), workspace, disks=2)
            with pytest.raises(BusyError), ExitStack() as undo:
                stack.build(
                    spec("btrfs-raid0", medium=several(paths), disks=2), workspace, undo, slot="m", make=True
                )


@pytest.mark.parametrize("layout", KERNEL_S)
def test_without_the_kernel_s_part_it_is_refused_before_anything_is_made(
    layout: str, workspace: Workspace
) -> None:
    missing = [name for name in REGISTRY.get(layout).modules if not kernel.has_module(name, load=False)]
    if not missing:
        pytest.skip(f"this kernel has {layout}")
    with pytest.raises(UnsupportedError, match=f"this kernel lacks {missing[0]}") as caught:
        feasibility.check_stack(spec(layout, "ext4"), workspace)
    assert caught.value.hint
    with pytest.raises(UnsupportedError), ExitStack() as undo:
        stack.build(spec(layout, "ext4"), workspace, undo, slot="m", make=True)


def test_the_journal_finds_the_same_disks_again_and_no_others(
    loop: Callable[[], Path], stable: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = loop(), loop()
    name = stable(first)
    with CampaignJournal("test-joined-11") as journal:
        journal.will_create("volume-group", volume_name(journal.campaign), [name, str(second)])
        (entry,) = journal.pending()
        assert entry.nodes() == [first, second]
        with monkeypatch.context() as patched:
            patched.setattr("fslab.campaign.undo_journal.boot", lambda: "another")
            assert entry.nodes() == [first], "only a stable name means the same disk after a reboot"
        Path(name).unlink()
        Path(name).symlink_to(second)
        assert entry.nodes() == [second], "the name leads to another disk"
        Path(name).unlink()
        assert entry.nodes() == [second]
        Path(name).symlink_to(first)
        journal.undone(entry.id)


def test_only_what_carries_the_campaign_s_name_is_undone() -> None:
    for target in ("fslab-other", "system", f"{volume_name('test-joined-10')}-more", "../x"):
        journal = CampaignJournal("test-joined-10")
        for kind in ("volume-group", "md-array"):
            journal.will_create(kind, target)
        with pytest.raises(UnsafeError, match="does not belong to this campaign"):
            cleanup.undo_pending(journal)
        for entry in journal.pending():
            journal.undone(entry.id)
        journal.close()
