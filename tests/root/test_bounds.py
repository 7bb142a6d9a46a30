"""Tests that a workload cannot use more memory than its RAM medium provides."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from functools import partial

import pytest

from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.errors import MountError
from fslab.machine import guest
from fslab.storage import StackDevice, Workspace
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import ram
from fslab.system import mounts

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


def test_a_guest_s_directory_that_is_in_use_can_be_cleaned_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that stands in it keeps neither the guests from ending nor the journal from naming it."""
    monkeypatch.setattr(mounts, "unmount", partial(mounts.unmount, deadline_s=0.1))
    with pytest.raises(MountError), cleanup.opened_workspace(name := new_id(), frozenset()) as workspace:
        directories = [workspace.runtime / f"guest-{number}" for number in (1, 2)]
        for directory in directories:
            guest.make_share(directory, workspace)
            (directory / "console").touch()
        inside = os.open(directories[0], os.O_DIRECTORY)
        for directory in directories:
            guest.remove_share(directory)
        assert [mounts.at(directory) is not None for directory in directories] == [True, False]
    assert (directories[0] / "console").exists()
    os.close(inside)
    assert {entry.kind for entry in cleanup.clean(name)} >= {"mount", "tree"}
    assert not workspace.runtime.exists()
