"""Tests of what a stack sets beside its options, on real file systems: attributes, filling, a command after mounts,
settings of its devices, and the space that files take."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import Any

import pytest
from tests.root.test_stacks import spec
from tests.root.test_trial import cell, run, value

from fslab.errors import UnsupportedError
from fslab.probes import REGISTRY as PROBES
from fslab.probes import Target
from fslab.storage import Workspace, initial_content, stack


def test_new_files_inherit_the_attributes_of_the_work_directory(workspace: Workspace, shell: Any) -> None:
    with ExitStack() as undo:
        up = stack.build(spec("btrfs", attributes="C"), workspace, undo, slot="m", make=True)
        (up.work / "file").write_bytes(b"x")
        assert "C" in shell("lsattr", up.work / "file").stdout.split()[0]
        assert up.facts["attributes"] == "C"


def test_an_attribute_that_the_file_system_lacks_is_not_measured_without(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="attribute C"), ExitStack() as undo:
        stack.build(spec("xfs", attributes="C"), workspace, undo, slot="m", make=True)


def test_the_command_runs_after_each_mount_in_the_work_directory(workspace: Workspace) -> None:
    line = shlex.join(["sh", "-c", 'pwd >> "$1/../mounts"', "sh", "{directory}"])
    with ExitStack() as undo:
        up = stack.build(spec(after_mount=line), workspace, undo, slot="m", make=True)
        up.unmount()
        up.mount()
        assert (up.work.parent / "mounts").read_text().splitlines() == [str(up.work)] * 2


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "ext2"])
def test_it_is_filled_with_holes_and_alike_each_time(filesystem: str, workspace: Workspace) -> None:
    seen = []
    for _ in range(2):
        with ExitStack() as undo:
            up = stack.build(spec(filesystem, fill="70%"), workspace, undo, slot="m", make=True)
            assert up.target is not None
            total, used, _ = initial_content.usage(up.target)
            assert used / total == pytest.approx(0.7, abs=initial_content.PRECISION)
            files = {int(path.name): path.stat().st_size for path in up.target.glob("fill/*/*")}
            assert len(files) < 1 + max(files), "some were deleted"
            assert up.empty_bytes == pytest.approx(used, abs=1 << 20)
            seen.append(files)
    assert seen[0] == seen[1]


def test_what_cannot_be_filled_is_refused(workspace: Workspace) -> None:
    """A small btrfs reserves so much for metadata that its data cannot take 90 %."""
    with pytest.raises(UnsupportedError, match="cannot be filled to 90%"), ExitStack() as undo:
        stack.build(spec("btrfs", fill="90%"), workspace, undo, slot="m", make=True)


@pytest.mark.alone
def test_a_trial_has_the_settings_of_its_stack(workspace: Workspace) -> None:
    wanted = {"tuning": {"read_ahead_kib": "64", "nr_requests": "32", "io_scheduler": "mq-deadline"}}
    record = run(workspace, cell(stack=wanted, tuning={"read_ahead_kib": "512"}))
    assert record.metrics, record.error
    device = record.provenance.device
    assert (device["scheduler"], device["nr_requests"], device["read_ahead_kib"]) == ("mq-deadline", 32, 64)


def test_space_is_what_files_take_on_the_device(workspace: Workspace) -> None:
    written = {"rw": "write", "bs": "1m", "size": "32m", "end_fsync": True}
    plain = run(workspace, cell(parameters=written, stack={"fill": "30%"}))
    assert value(plain, "files_size") == 32 << 20
    assert value(plain, "space_per_byte") == pytest.approx(1, abs=0.05)
    zeros = {**written, "zero_buffers": True}
    compressed = run(
        workspace, cell(parameters=zeros, filesystem="btrfs", stack={"mount_options": "compress=zstd"})
    )
    assert value(compressed, "files_size") == 32 << 20
    assert value(compressed, "space_per_byte") < 0.2


def test_files_of_subvolumes_count_once_and_those_of_mounts_do_not(workspace: Workspace, shell: Any) -> None:
    """Subvolumes have the same inode numbers."""
    with ExitStack() as undo:
        up = stack.build(spec("btrfs"), workspace, undo, slot="m", make=True)
        for name in ("a", "b"):
            shell("btrfs", "subvolume", "create", up.work / name)
            (up.work / name / "file").write_bytes(b"x" * 1000)
            (up.work / name / "again").hardlink_to(up.work / name / "file")
        inodes = {(up.work / name / "file").stat().st_ino for name in ("a", "b")}
        assert len(inodes) == 1
        (up.work / "mounted").mkdir()
        shell("mount", "-t", "tmpfs", "tmpfs", up.work / "mounted")
        undo.callback(shell, "umount", up.work / "mounted")
        (up.work / "mounted/file").write_bytes(b"x" * 10_000)
        target = Target(
            devices=(), filesystem="btrfs", directory=up.work, volume=None, empty_bytes=up.empty_bytes
        )
        assert PROBES.get("space-of-files").snapshot(target)["size"] == 2000
