"""An image file in memory (in its own tmpfs), attached to a loop device.

It measures the work of the file system and not of a disk: only CPU and memory limit it.
"""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pydantic import Field

from fslab.errors import MountError, NoSpaceError
from fslab.storage import Drive, StackDevice, Workspace, images
from fslab.storage.media import MediumPlan, _image, _loop
from fslab.system import loop_devices, memory
from fslab.system.signals import Teardown
from fslab.units import Size, parse_size

SLACK_BYTES = 4 << 20


class RamOptions(_image.ImageOptions):
    """Size of the image."""

    size: Size = Field("1g", description="size of the image; without `room`, it takes that much memory")


class Ram(_image.ImageMedium[RamOptions]):
    """An image file in memory. Each image has its own tmpfs."""

    summary = "RAM disk: image file in memory, through a loop device"
    bytes_per_s = 900e6  # seen in 122 trials of dd: writes with fsync, and reads
    Options = RamOptions

    def plan(self, options: RamOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """Return the plan: one tmpfs, one image, one losetup command."""
        room = _image.room_bytes(options)
        target = Path("/run/fslab/CAMPAIGN/ram-SLOT")
        image = target / "fslab-CAMPAIGN-SLOT.img"
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=parse_size(options.size),
            holds_bytes=room,
            commands=(
                ("attach", tuple(_tmpfs_argv(room, target))),
                (
                    "attach",
                    tuple(loop_devices.attach_argv(image, direct=True, sector_bytes=options.sector_size)),
                ),
            ),
            space={"memory": room},
        )

    def check(self, options: RamOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Check root, loop devices and the available memory."""
        _loop.check_root(self.name)
        loop_devices.check_supported()
        images.check_memory(disks * _image.room_bytes(options))

    def provide(self, options: RamOptions, workspace: Workspace, slot: str, undo: ExitStack) -> StackDevice:
        """Return a loop device on the slot's image, which lies in its own tmpfs."""
        size = parse_size(options.size)
        directory = _directory(workspace, slot)
        if str(directory) not in workspace.media:
            _mount_tmpfs(directory, _image.room_bytes(options), workspace)
            workspace.media[str(directory)] = size
        image = _loop.image_for(directory, workspace, slot, size, room_bytes=_image.sparse_bytes(options))
        if options.room:
            images.tell_when_full(undo, partial(_check_left, directory, options.room))
        # Direct I/O on tmpfs (possible since Linux 6.6) only saves a copy, so its absence is not worth a warning.
        return _loop.attach(image, workspace, undo, expect_direct=False, sector_bytes=options.sector_size)

    def check_image(self, options: RamOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Check the available memory, and that a memory file system has enough space."""
        room = disks * _image.room_bytes(options)
        images.check_memory(room)
        memory.directory(room, executable=False)

    def place(self, options: RamOptions, workspace: Workspace, slot: str, *, in_guest: bool) -> Path | None:  # noqa: ARG002
        """Return the slot's own tmpfs on the host, or the memory file system with the image for a guest."""
        known: Path | None = workspace.media.get(_key(slot))
        return known if in_guest else _directory(workspace, slot)

    def takes_memory(self, options: RamOptions, *, in_guest: bool) -> bool:  # noqa: ARG002
        """Return whether it is sparse: `renew` gives the memory of a sparse image back."""
        return bool(options.room)

    def drive(self, options: RamOptions, workspace: Workspace, slot: str) -> Drive:
        """Return the slot's image, in a memory file system that the user can write to."""
        room = _image.room_bytes(options)
        directory = workspace.media.get(_key(slot)) or memory.directory(room, executable=False)
        workspace.media[_key(slot)] = directory
        size = parse_size(options.size)
        image = _loop.image_for(directory, workspace, slot, size, room_bytes=_image.sparse_bytes(options))
        return Drive(image=image, grows=_image.growth(options, image))


def _directory(workspace: Workspace, slot: str) -> Path:
    return workspace.runtime / f"ram-{slot}"


def _key(slot: str) -> str:
    """Return the key in ``Workspace.media`` of the directory with a slot's image for guests."""
    return f"ram {slot}"


def _tmpfs_argv(size_bytes: int, target: Path) -> list[str]:
    # huge=never: with transparent huge pages, the cost of writes to the image would depend on memory fragmentation.
    options = f"size={size_bytes + SLACK_BYTES},mode=0700,huge=never"
    return ["mount", "-t", "tmpfs", "-o", options, "fslab", str(target)]


def _check_left(directory: Path, room: str) -> None:
    """Raise NoSpaceError if the memory of a sparse image was full. A file system whose journal or metadata find no room
    reports an I/O error, or becomes read-only."""
    if not os.statvfs(directory).f_bavail:
        raise NoSpaceError(
            f"the memory of the image is full: the medium has room for {room}",
            where="medium",
            hint="give the medium more 'room', or the workload smaller files",
        )


def _mount_tmpfs(directory: Path, size_bytes: int, workspace: Workspace) -> None:
    with Teardown() as undo:
        workspace.will_mount(directory, undo)
        directory.mkdir(mode=0o700)
        workspace.run("attach", _tmpfs_argv(size_bytes, directory), failure=MountError)
        workspace.exit.push(undo.pop_all())
