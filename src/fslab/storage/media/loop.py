"""An image file on an existing file system, attached to a loop device with direct I/O."""

from contextlib import ExitStack
from pathlib import Path

from pydantic import Field

from fslab.names import LocalPath
from fslab.storage import Drive, StackDevice, Workspace, images
from fslab.storage.media import MediumPlan, _image, _loop
from fslab.system import files, loop_devices
from fslab.units import Size, parse_size


class LoopOptions(_image.ImageOptions):
    """Directory and size of the image."""

    size: Size = Field(
        "2g",
        description="size of the image; without `room`, it is fully written before the first trial",
    )
    direct_io: bool = Field(
        True,
        description="bypass the page cache of the file system that the image lies on; `false` compares with it, on the "
        "host",
    )
    path: LocalPath | None = Field(None, description="existing directory for the image; default: fslab's own")


class Loop(_image.ImageMedium[LoopOptions]):
    """A preallocated, fully written image (sparse with ``room``). Direct I/O to it is requested and checked, unless
    the study wants it otherwise."""

    summary = "image file on an existing file system, through a loop device with direct I/O"
    Options = LoopOptions

    def plan(self, options: LoopOptions, site_images: Path) -> MediumPlan:
        """Return the plan: one image and one losetup command."""
        directory = Path(options.path) if options.path else site_images
        image = directory / "fslab-CAMPAIGN-SLOT.img"
        attach = loop_devices.attach_argv(image, direct=options.direct_io, sector_bytes=options.sector_size)
        return MediumPlan(
            device="/dev/loopN",
            size_bytes=parse_size(options.size),
            holds_bytes=_image.room_bytes(options),
            commands=(("attach", tuple(attach)),),
            space={str(directory): _image.room_bytes(options)},
        )

    def check(self, options: LoopOptions, workspace: Workspace, *, disks: int) -> None:
        _loop.check_root(self.name)
        loop_devices.check_supported()
        images.check_room(self._directory(options, workspace), disks * _image.room_bytes(options))

    def provide(self, options: LoopOptions, workspace: Workspace, slot: str, undo: ExitStack) -> StackDevice:
        image = self._image(options, workspace, slot)
        direct = options.direct_io
        return _loop.attach(
            image, workspace, undo, expect_direct=direct, direct=direct, sector_bytes=options.sector_size,
            grows=_image.growth(options, image),
        )  # fmt: skip

    def host_only(self, options: LoopOptions) -> str | None:
        if not options.direct_io:
            return "'direct_io: false' of a medium works on the host only"
        return super().host_only(options)

    def check_image(self, options: LoopOptions, workspace: Workspace, *, disks: int) -> None:
        images.check_room(self._directory(options, workspace), disks * _image.room_bytes(options))

    def drive(self, options: LoopOptions, workspace: Workspace, slot: str) -> Drive:
        """Return the slot's image. It lies in the same directory as for a loop device."""
        image = self._image(options, workspace, slot)
        return Drive(image=image, grows=_image.growth(options, image))

    def place(self, options: LoopOptions, workspace: Workspace, slot: str, *, in_guest: bool) -> Path:  # noqa: ARG002
        """Return the directory of the image: host and guests use the same one."""
        return self._directory(options, workspace)

    def takes_memory(self, options: LoopOptions, *, in_guest: bool) -> bool:
        """Return whether writes end in the page cache of the image, as from a guest. Direct I/O avoids it."""
        return in_guest or not options.direct_io

    def _image(self, options: LoopOptions, workspace: Workspace, slot: str) -> Path:
        directory, size = self._directory(options, workspace), parse_size(options.size)
        return _loop.image_for(directory, workspace, slot, size, room_bytes=_image.sparse_bytes(options))

    @staticmethod
    def _directory(options: LoopOptions, workspace: Workspace) -> Path:
        if options.path is None:
            files.make_directories(workspace.images, 0o700)
            return workspace.images
        return images.existing_directory(options.path).resolve()
