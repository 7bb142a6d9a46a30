"""Tests that a workload cannot use more memory than its RAM medium provides."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

import pytest

from fslab.errors import MountError
from fslab.storage import StackDevice, Workspace
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import ram

MIB = 1 << 20


def test_a_ram_medium_takes_no_more_memory_than_it_says(workspace: Workspace) -> None:
    """The tmpfs of the medium is only 4 MiB larger than the image. Further writes to it fail with ENOSPC."""
    ram = MEDIA.get("ram")
    with ExitStack() as undo:
        ram.provide(ram.parse_options({"size": "16m"}), workspace, "slot", undo)
        directory = workspace.runtime / "ram-slot"
        about = os.statvfs(directory)
        assert about.f_blocks * about.f_frsize == 20 * MIB
        with (directory / "more").open("wb", buffering=0) as more, pytest.raises(OSError) as caught:
            for _ in range(64):
                more.write(bytes(MIB))
        assert caught.value.errno == errno.ENOSPC
        (directory / "more").unlink()


def test_a_ram_medium_that_could_not_be_mounted_is_mounted_by_the_next_trial(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    medium = MEDIA.get("ram")
    options = medium.parse_options({"size": "16m"})
    with monkeypatch.context() as patched, pytest.raises(MountError), ExitStack() as undo:
        patched.setattr(
            ram, "_tmpfs_argv", lambda *_: ["mount", "-t", "tmpfs", "-o", "size=no", "fslab", "/"]
        )
        medium.provide(options, workspace, "slot", undo)
    with ExitStack() as undo:
        assert isinstance(medium.provide(options, workspace, "slot", undo), StackDevice)
