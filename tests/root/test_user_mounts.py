"""Tests with real mounts: a test unmounts a file system of the user only if all can be as before afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fslab.api import crash
from fslab.errors import UnsafeError, UsageError
from fslab.storage import user_mounts
from fslab.system import mountinfo, mounts, proc
from fslab.system.mountinfo import Mount


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return a directory with a file in memory. What is mounted there by the test is unmounted."""
    (made := tmp_path / "place").mkdir()
    with ExitStack() as undo:
        undo.callback(mounts.unmount, made, devices=None)
        proc.run(["mount", "-t", "tmpfs", "-o", "size=1m", "below", str(made)])
        (made / "file").write_text("mine")
        yield made


def around(place: Path) -> list[Mount]:
    return [mount for mount in mountinfo.mounted() if mount.target.is_relative_to(place.parent)]


def refused(place: Path) -> str:
    """Check that a test in the directory is refused, without a change, and return the message."""
    before = around(place)
    with pytest.raises(UnsafeError) as found:
        crash._ground(place / "new")
    assert not (place / "new").exists()
    assert around(place) == before
    return str(found.value)


def test_one_mount_is_left_to_the_test(place: Path) -> None:
    user_mounts.check_restorable(mountinfo.containing(place))
    with pytest.raises(UsageError, match="no file system 'tmpfs'"):  # it declares no promises
        crash._ground(place / "new")


def test_what_lies_below_another_mount_is_not_unmounted(place: Path) -> None:
    proc.run(["mount", "-t", "tmpfs", "-o", "size=1m", "above", str(place)])
    assert "mounted over each other" in refused(place)
    proc.run(["umount", str(place)])
    assert (place / "file").read_text() == "mine"


def test_a_mount_that_another_one_hides_is_not_taken_for_that_of_the_directory(place: Path) -> None:
    (inner := place / "inner").mkdir()
    proc.run(["mount", "-t", "tmpfs", "-o", "size=1m", "hidden", str(inner)])
    proc.run(["mount", "-t", "tmpfs", "-o", "size=1m", "above", str(place)])
    inner.mkdir()
    said = refused(inner)
    proc.run(["umount", str(place)])
    proc.run(["umount", str(inner)])
    assert "mounted over each other" in said


def test_a_part_of_a_file_system_is_not_replaced_by_all_of_it(place: Path, tmp_path: Path) -> None:
    (place / "part").mkdir()
    (shown := tmp_path / "shown").mkdir()
    with ExitStack() as undo:
        undo.callback(mounts.unmount, shown, devices=None)
        proc.run(["mount", "--bind", str(place / "part"), str(shown)])
        assert "only /part of its file system" in refused(shown)
        assert f"also mounted at {shown}" in refused(place)


def test_a_subvolume_is_mounted_again_by_its_options() -> None:
    """Of btrfs, the kernel lists the subvolume among the options, and shows it as the root of the mount."""
    root = mounts.at(Path("/"))
    assert root
    options = b"rw,subvolid=256,subvol=/a\\040b"
    mount = replace(root, device="0:0", root=Path("/a b"), super_options=options)
    user_mounts.check_restorable(mount)
    with pytest.raises(UnsafeError, match="only /a b/c of its file system"):
        user_mounts.check_restorable(replace(mount, root=Path("/a b/c")))
    with pytest.raises(UnsafeError, match="gets mounts from another mount namespace"):
        user_mounts.check_restorable(replace(mount, propagation=("shared:4", "master:3")))
