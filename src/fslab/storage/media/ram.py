"""An image file in memory (in its own tmpfs), attached to a loop device.

Measures the work of the file system, not of a disk: everything is limited by CPU and memory.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from pydantic import Field

from fslab.errors import MountError
from fslab.storage import Drive, StackDevice, Workspace, images
from fslab.storage.media import MediumPlan, _loop, _model
from fslab.system import loops, memory, mounts
from fslab.units import Size, parse_size

SLACK_BYTES = 4 << 20


class RamOptions(_model.ImageOptions):
    """Size of the image."""

    size: Size = Field(
        "1g", description="size of the image, such as 1g; without `room`, it takes that much memory"
    )


class Ram(_model.ImageMedium[RamOptions]):
    """Each image lies in a tmpfs that holds nothing else."""

    summary = "RAM disk: image file in memory, through a loop device"
    Options = RamOptions

    def plan(self, options: RamOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """One tmpfs, one image, one losetup."""
        room = _model.room_bytes(options)
        target = Path("/run/fslab/CAMPAIGN/ram-SLOT")
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=parse_size(options.size),
            commands=(
                ("attach", tuple(_tmpfs_argv(room, target))),
                ("attach", tuple(loops.attach_argv(target / "fslab-CAMPAIGN-SLOT.img", direct=True))),
            ),
            space={"memory": room},
        )

    def check(self, options: RamOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Root, loop devices, and enough memory."""
        self.refuse_limits(options)
        _loop.check_root(os.geteuid(), self.name)
        loops.check_supported()
        images.check_memory(disks * _model.room_bytes(options))

    def provide(self, options: RamOptions, workspace: Workspace, slot: str, undo: ExitStack) -> StackDevice:
        """The slot's image in its tmpfs, on a loop device."""
        size = parse_size(options.size)
        directory = workspace.runtime / f"ram-{slot}"
        if str(directory) not in workspace.media:
            _mount_tmpfs(directory, _model.room_bytes(options), workspace)
            workspace.media[str(directory)] = size
        image = _loop.image_for(directory, workspace, slot, size, sparse=bool(options.room))
        # Direct I/O on tmpfs only spares a copy (Linux 6.6 and newer allow it), so its absence is no warning.
        return _loop.attach(image, workspace, undo, expect_direct=False)

    def check_image(self, options: RamOptions, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Enough memory, and a memory file system that takes it."""
        room = disks * _model.room_bytes(options)
        images.check_memory(room)
        memory.directory(room, executable=False)

    def drive(self, options: RamOptions, workspace: Workspace, slot: str) -> Drive:
        """The slot's image in the user's own part of memory."""
        room = _model.room_bytes(options)
        directory = workspace.media.get(f"ram {slot}") or memory.directory(room, executable=False)
        workspace.media[f"ram {slot}"] = directory
        size = parse_size(options.size)
        return Drive(image=_loop.image_for(directory, workspace, slot, size, sparse=bool(options.room)))


def _tmpfs_argv(size_bytes: int, target: Path) -> list[str]:
    # huge=never: with transparent huge pages the image's write cost would depend on memory fragmentation.
    return [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={size_bytes + SLACK_BYTES},mode=0700,huge=never",
        "fslab",
        str(target),
    ]


def _mount_tmpfs(directory: Path, size_bytes: int, workspace: Workspace) -> None:
    entry = workspace.journal.will_create("mount", str(directory))
    workspace.exit.callback(_unmount_tmpfs, directory, workspace, entry)
    directory.mkdir(mode=0o700)
    workspace.run("attach", _tmpfs_argv(size_bytes, directory), failure=MountError)


def _unmount_tmpfs(directory: Path, workspace: Workspace, entry: str) -> None:
    mounts.unmount(directory)
    if directory.exists():
        directory.rmdir()
    workspace.journal.undone(entry)
