"""Tests of real stacks on loop and ram media: every file system is made, mounted with its options, and removed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests import fuse, made

from fslab import feasibility
from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import StackSpec
from fslab.errors import (
    FslabError,
    MkfsError,
    MountError,
    NoSpaceError,
    UnsafeError,
    UnsupportedError,
    UsageError,
)
from fslab.plan.expand import expand
from fslab.storage import StackDevice, Workspace, images, stack
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.study import load
from fslab.system import kernel, loop_devices, mounts, proc, sysfs

SIZE = "320m"


def spec(filesystem: str = "ext4", medium: str = "ram", **more: Any) -> StackSpec:
    return made.spec(filesystem, medium, more.pop("options", {"size": SIZE}), **{"name": "s", **more})


def superblock_options(target: Path) -> str:
    mount = mounts.at(target)
    assert mount is not None
    return mount.options


@pytest.mark.parametrize("medium", ["ram", "loop"])
@pytest.mark.parametrize("filesystem", [name for name, driver in FILESYSTEMS if driver.mounted])
def test_every_file_system_comes_up_and_goes(filesystem: str, medium: str, workspace: Workspace) -> None:
    driver = FILESYSTEMS.get(filesystem)
    if not kernel.has_filesystem(driver.mount_type):
        with pytest.raises(UnsupportedError, match="has no "), ExitStack() as undo:
            stack.build(spec(filesystem, medium), workspace, undo, slot="m", make=True)
        assert not list(workspace.images.glob("*")), "refused before anything was made"
        return
    with ExitStack() as undo:
        up = stack.build(spec(filesystem, medium), workspace, undo, slot="m", make=True)
        mount = mounts.at(workspace.runtime / "mnt")
        assert mount is not None
        assert mount.filesystem == FILESYSTEMS.get(filesystem).mount_type
        assert isinstance(up.device, StackDevice)
        assert up.device.size_bytes == 320 << 20
        assert sysfs.text(Path("/sys/block") / up.device.kernel_name / "queue/discard_max_bytes") == "0"
        (up.work / "file").write_bytes(b"x" * 10_000)
        up.flush()
        up.unmount()
        up.mount()
        assert (up.work / "file").stat().st_size == 10_000
    assert mounts.at(workspace.runtime / "mnt") is None


def test_mkfs_and_the_list_of_features_do_not_wait_for_the_server_of_another_mount(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mkfs.xfs and xfs_info look at all mounts whose source is a path, such as //server/share."""
    monkeypatch.setattr(mounts, "_BRIEF_S", 0.2)
    with ExitStack() as undo, fuse.mounted(tmp_path, of=0, says=None, source="/named as a path"):
        up = stack.build(spec("xfs"), workspace, undo, slot="m", make=True)
        assert up.facts["features"]
        assert tmp_path in mounts.dead(), "it is hidden from these programs only"


@pytest.mark.parametrize("over", [True, False])
def test_what_another_program_mounts_at_its_place_is_not_unmounted(
    over: bool, workspace: Workspace, shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system in memory would lose its files."""
    monkeypatch.setattr(loop_devices, "DETACH_DEADLINE_S", 0.5)  # it cannot be detached meanwhile
    place, journal = workspace.runtime / "mnt", workspace.journal
    assert isinstance(journal, CampaignJournal)
    said = r"not unmounted: another program mounted theirs \(tmpfs\)"
    with pytest.raises(FslabError), ExitStack() as undo:
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
        if not over:
            up.unmount()
        shell("mount", "-t", "tmpfs", "theirs", place)
        (place / "file").write_text("kept")
        with pytest.raises(MountError, match=said):
            up.unmount()
    assert (place / "file").read_text() == "kept"
    with pytest.raises(FslabError, match="another program mounted theirs"):
        cleanup.undo_pending(journal)
    assert (place / "file").read_text() == "kept"
    shell("umount", place)
    cleanup.undo_pending(journal)
    assert mounts.at(place) is None
    assert not loop_devices.attached_to(workspace.images / f"fslab-{workspace.campaign}-m.img")


@pytest.mark.parametrize(
    ("filesystem", "options"),
    [
        ("ext2", {"mkfs_options": "-O ^large_file,^ext_attr"}),
        ("ext4", {"mkfs_options": "-O ^large_file,^ext_attr"}),
        ("btrfs", {"mount_options": "compress=zstd"}),
        ("xfs", {}),
    ],
)
def test_the_features_of_a_file_system_are_the_same_when_it_was_used(
    filesystem: str, options: dict[str, str], workspace: Workspace
) -> None:
    listed = []
    for make in (True, False):
        with ExitStack() as undo:
            built = spec(filesystem, **options)
            up = stack.build(built, workspace, undo, slot="m", make=make, keep=True)
            listed.append((up.facts["features"], up.facts["sizes"]))
            with (up.work / "file").open("wb") as file:
                os.setxattr(file.fileno(), "user.a", b"x" * 1000)
                file.truncate(3 << 30)
            up.flush()
    features, sizes = listed[0]
    assert features
    assert bool(sizes) is filesystem.startswith("ext")
    assert listed[0] == listed[1]


@pytest.mark.parametrize(
    ("medium", "options"),
    [
        ("loop", {"size": SIZE, "sector_size": 4096}),
        ("ram", {"size": SIZE, "sector_size": 4096}),
        ("virtual", {"profile": "none", "size": SIZE, "sector_size": 4096}),
        ("loop", {"size": SIZE, "direct_io": False}),
    ],
)
def test_the_device_has_the_sectors_and_the_cache_that_the_study_wants(
    medium: str, options: dict[str, Any], workspace: Workspace
) -> None:
    with ExitStack() as undo:
        up = stack.build(spec("xfs", medium, options=options), workspace, undo, slot="m", make=True)
        assert up.facts["logical_block_bytes"] == options.get("sector_size", 512)
        if medium == "loop":
            assert up.facts["direct_io"] is options.get("direct_io", True)
        assert not up.buffered, "what the study wants is no warning"
    with ExitStack() as undo:  # the next one on the same device has the default again
        up = stack.build(spec("xfs", "ram"), workspace, undo, slot="n", make=True)
        assert up.facts["logical_block_bytes"] == 512


def test_what_another_mount_namespace_has_is_not_unmounted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that is mounted in another mount namespace cannot be unmounted, and this is an error.

    Its data would stay in the page cache, and a cold read would not be cold.
    """
    monkeypatch.setattr(mounts, "UNMOUNT_DEADLINE_S", 0.2)
    with ExitStack() as undo:
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
        script = ["unshare", "--mount", "sh", "-c", "echo ready; exec sleep 60"]
        with subprocess.Popen(script, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == b"ready\n"
                with pytest.raises(MountError, match=rf"namespace of process {other.pid} \(sleep\)"):
                    up.unmount()
            finally:
                other.kill()
        monkeypatch.undo()
        up.unmount()
        up.mount()


def test_direct_io_to_the_image_is_verified(workspace: Workspace) -> None:
    with ExitStack() as undo:
        up = stack.build(spec("ext4", "loop"), workspace, undo, slot="m", make=True)
        assert up.device is not None
        direct = sysfs.text(Path("/sys/block") / up.device.kernel_name / "loop/dio") == "1"
        assert up.facts["direct_io"] is direct
        assert up.buffered is not direct


def test_a_loop_device_that_falls_back_to_buffered_is_reported(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without direct I/O requested, losetup does the same as on a backing file system that does not support it.
    real = loop_devices.attach_argv
    monkeypatch.setattr(
        loop_devices, "attach_argv", lambda image, *, direct, **how: real(image, direct=False, **how)
    )
    with ExitStack() as undo:
        up = stack.build(spec("ext4", "loop"), workspace, undo, slot="m", make=True)
        assert up.buffered


def test_the_image_is_written_and_has_no_holes(workspace: Workspace) -> None:
    with ExitStack() as undo:
        up = stack.build(spec("xfs", "loop"), workspace, undo, slot="m", make=True)
        assert up.facts["image_allocated_bytes"] >= 320 << 20


@cache
def variants() -> list[StackSpec]:
    """Return the twelve stacks of the study loop-vm, on images that are just large enough for XFS."""
    smaller = ["media.disk.size=320m", "scale=0.05"]
    return list({cell.stack_id: cell.stack for cell in expand(load.load("loop-vm", smaller))}.values())


@pytest.mark.parametrize("medium", ["loop", "ram"])
def test_a_sparse_image_takes_what_is_written_and_no_more(medium: str, workspace: Workspace) -> None:
    sparse = spec("btrfs", medium, options={"size": "16g", "room": "256m"})
    with ExitStack() as undo:
        up = stack.build(sparse, workspace, undo, slot="m", make=True)
        assert up.device is not None
        assert up.device.size_bytes == 16 << 30
        assert up.facts["image_allocated_bytes"] < 256 << 20


def test_the_study_has_twelve_variants() -> None:
    assert len(variants()) == 12


# By number: to have their names, each worker would load the study.
@pytest.mark.parametrize("number", range(12))
def test_every_variant_of_the_study_mounts(number: int, workspace: Workspace) -> None:
    variant = variants()[number]
    with ExitStack() as undo:
        up = stack.build(variant, workspace, undo, slot="m", make=True)
        assert up.target is not None
        effective = superblock_options(up.target)
        for option in (
            "data=journal",
            "data=writeback",
            "compress=zlib",
            "compress=zstd",
            "noatime",
            "logbsize=256k",
        ):
            if option in variant.mount_options:
                assert option in effective


def test_a_device_that_could_not_discard_can_again_after_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps the limit for the next image on the device, which need not be fslab's."""
    used, renewed, real = set(), [], loop_devices.renew

    def renew(device: Path) -> None:
        renewed.append(device)
        real(device)

    monkeypatch.setattr(loop_devices, "renew", renew)
    with cleanup.opened_workspace(new_id(), frozenset()) as workspace:
        for make in (True, False):
            with ExitStack() as undo:
                up = stack.build(spec(), workspace, undo, slot="m", make=make)
                assert up.device is not None
                used.add(up.device.path)
        assert not renewed
    assert sorted(renewed) == sorted(used)
    (image := tmp_path / "somebody's.img").write_bytes(bytes(1 << 20))
    with loop_devices.added() as device:
        attach = loop_devices.attach_argv(image, direct=False, device=device)
        proc.run(attach)
        loop_devices.forbid_discard(device)
        loop_devices.detach(image)
        real(device)
        proc.run(attach)
        assert sysfs.number(sysfs.block_directory(device) / "queue/discard_max_bytes")
        real(device)
        assert loop_devices.attached_to(image) == [device], "it is in use"
        loop_devices.detach(image)


KILLED_BETWEEN_TRIALS = """
import os, signal
from contextlib import ExitStack
from fslab.campaign import cleanup
from fslab.storage import stack
from tests.root.test_stacks import spec

with cleanup.opened_workspace("test-0012", frozenset()) as workspace:
    with ExitStack() as undo:
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
    print(up.device.path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_can_also_after_a_kill_between_two_trials() -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BETWEEN_TRIALS], check=False, capture_output=True, text=True
    )
    device = Path(killed.stdout.strip())
    former = (sysfs.block_directory(device) / "queue").stat().st_ino
    done, failures = cleanup.clean_all()
    assert failures == []
    assert ("loop device", str(device)) in [(entry.kind, entry.target) for _, entry in done]
    if loop_devices.backing_of(device) is None:  # else another campaign uses it already
        assert (sysfs.block_directory(device) / "queue").stat().st_ino != former


def test_the_queue_is_not_that_of_an_earlier_image(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else buffered reads and writes of one stack in memory depend on which loop device is free."""
    with loop_devices.added() as device, ExitStack() as undo:
        queue = sysfs.block_directory(device) / "queue"
        amount, latency = queue / "read_ahead_kb", queue / "wbt_lat_usec"
        new, aim = sysfs.number(amount), sysfs.number(latency)
        amount.write_text("2560")
        if aim:
            latency.write_text("75000")
        monkeypatch.setattr(loop_devices, "free", lambda: device)
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
        assert up.device is not None
        assert up.device.path == device
        assert up.facts["read_ahead_kib"] == sysfs.number(amount) == new
        assert up.facts["wbt_lat_usec"] == aim


def test_a_device_that_another_campaign_removes_before_it_is_opened_is_not_used(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Campaigns of several users of a machine renew their devices at any time."""
    asked, real = [], loop_devices.free

    def free() -> Path:
        asked.append(real())
        if len(asked) > 2:
            return asked[-1]
        with loop_devices.added() as device:
            return device  # removed, when it is returned

    monkeypatch.setattr(loop_devices, "free", free)
    with ExitStack() as undo:
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
        assert up.device is not None
        assert len(asked) >= 3, "more, if another campaign takes the last one"


def test_mkfs_options_reach_mkfs(workspace: Workspace, shell: Any) -> None:
    with ExitStack() as undo:
        up = stack.build(
            spec("ext4", mkfs_options="-b 1024 -O ^has_journal"), workspace, undo, slot="m", make=True
        )
        assert up.device is not None
        said = shell("dumpe2fs", "-h", up.device.path).stdout
    assert "Block size:               1024" in said
    assert "has_journal" not in said


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"mkfs_options": "-O no_such_feature"}, MkfsError), ({"mount_options": "stripe=nonsense"}, MountError)],
)
def test_what_the_kernel_or_mkfs_refuses_is_undone(
    wrong: dict[str, str], error: type[Exception], workspace: Workspace
) -> None:
    with pytest.raises(error), ExitStack() as undo:
        stack.build(spec("ext4", **wrong), workspace, undo, slot="m", make=True)


def test_a_path_with_spaces_works(workspace: Workspace, tmp_path: Path) -> None:
    place = tmp_path / "my images, here"
    place.mkdir()
    with ExitStack() as undo:
        options = {"size": SIZE, "path": str(place / ".." / place.name)}
        up = stack.build(spec("ext4", "loop", options=options), workspace, undo, slot="m", make=True)
        assert up.work.is_dir()
        assert list(place.iterdir()) == [place / f"fslab-{workspace.campaign}-m.img"]
    workspace.exit.close()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_or_a_link_in_the_place_of_an_image_is_left_alone(
    workspace: Workspace, tmp_path: Path, linked: bool
) -> None:
    place = tmp_path / f"fslab-{workspace.campaign}-m.img"
    precious = tmp_path / "precious" if linked else place
    precious.write_bytes(b"precious")
    if linked:
        place.symlink_to(precious)
    image = spec("ext4", "loop", options={"size": SIZE, "path": str(tmp_path)})
    with pytest.raises(UnsafeError), ExitStack() as undo:
        stack.build(image, workspace, undo, slot="m", make=True)
    workspace.exit.close()
    assert precious.read_bytes() == b"precious"


def test_a_full_disk_is_noticed_before_and_cleaned_after(
    workspace: Workspace, tmp_path: Path, shell: Any
) -> None:
    small = tmp_path / "small disk"
    small.mkdir()
    shell("mount", "-t", "tmpfs", "-o", "size=100m", "fslab-test", small)
    try:
        full = spec("ext4", "loop", options={"size": SIZE, "path": str(small)})
        with pytest.raises(NoSpaceError):
            feasibility.check_stack(full, workspace)
        for _ in range(2):  # the next trial of the medium finds nothing in its way
            with pytest.raises(NoSpaceError), ExitStack() as undo:
                stack.build(full, workspace, undo, slot="m", make=True)
            assert list(small.iterdir()) == []
    finally:
        mounts.unmount(small, devices=None)


def test_a_small_file_system_that_is_nearly_empty_has_room(tmp_path: Path, shell: Any) -> None:
    """A small file system needs only a small reserve of free space.

    An example is the file system in a guest's memory, which contains the reports.
    """
    small = tmp_path / "small"
    small.mkdir()
    shell("mount", "-t", "tmpfs", "-o", "size=48m", "fslab-test", small)
    try:
        images.check_room(small, 0)
        with (small / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, 44 << 20)
        with pytest.raises(NoSpaceError, match="needs 6 MiB, but only 4 MiB are free"):
            images.check_room(small, 0)
    finally:
        mounts.unmount(small, devices=None)


def test_an_image_directory_must_be_a_directory(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a directory"):
        feasibility.check_stack(
            spec("ext4", "loop", options={"size": SIZE, "path": str(tmp_path / "none")}), workspace
        )


def test_more_memory_than_there_is_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NoSpaceError, match="memory"):
        feasibility.check_stack(spec("ext4", "ram", options={"size": "900t"}), workspace)
