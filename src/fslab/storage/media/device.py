"""A block device that the user named: a disk, a partition, a logical volume. Its content is lost.

Never by default, never by an unstable name, never while anything uses it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from pydantic import Field, field_validator

from fslab.errors import UnsafeError
from fslab.storage import BlockDevice, Site, guard, media
from fslab.storage.media import MediumPlan, _loop
from fslab.system import sysfs


class DeviceOptions(media.Options):
    """Which device, by a name that does not change."""

    path: str = Field(description="stable device name, such as /dev/disk/by-id/…; ALL ITS DATA IS LOST")

    @field_validator("path")
    @classmethod
    def _stable(cls, value: str) -> str:
        try:
            guard.check_name(value)
        except UnsafeError as error:
            raise ValueError(f"{error.what}; {error.hint}") from error
        return value


class Device(media.Medium[DeviceOptions]):
    """Checked before the campaign and again before each mkfs; its signatures are wiped when the campaign ends."""

    summary = "a named block device; everything on it is lost"
    Options = DeviceOptions

    def plan(self, options: DeviceOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        """The device itself."""
        return MediumPlan(device=options.path, size_bytes=None, space={}, wipes=(options.path,))

    def check(self, options: DeviceOptions, site: Site, *, disks: int) -> None:  # noqa: ARG002
        """Unused, and blank unless named with --wipe."""
        _loop.check_root(os.geteuid(), self.name)
        guard.check_unused(options.path)
        guard.check_blank(options.path, site.wipe)

    def provide(self, options: DeviceOptions, site: Site, slot: str, undo: ExitStack) -> BlockDevice:  # noqa: ARG002
        """The device, once more checked to be unused and the same disk as before."""
        if (claim := f"claim {options.path}") not in site.media:
            site.media[claim] = guard.claim(options.path)
            site.exit.callback(os.close, site.media[claim])
        device = guard.check_unused(options.path)
        identity = (sysfs.device_number(device), sysfs.text(sysfs.block_directory(device) / "diskseq"))
        if options.path not in site.media:
            guard.check_blank(options.path, site.wipe)
            site.media[options.path] = identity
            site.exit.callback(_leave_blank, options.path, site, identity)
        elif site.media[options.path] != identity:
            raise UnsafeError("is another disk than when the campaign began", where=options.path)
        facts = sysfs.geometry(device)
        if not facts["size_bytes"]:
            raise UnsafeError(
                "the kernel tells no size of it", where=options.path, hint="choose another device"
            )
        return BlockDevice(path=device, size_bytes=facts["size_bytes"], discard=True, facts=facts)


def _leave_blank(path: str, site: Site, identity: tuple[str, str | None]) -> None:
    """Wipe our own file system's signature, so that nothing mounts or mistakes it later."""
    device = guard.check_unused(path)
    if (sysfs.device_number(device), sysfs.text(sysfs.block_directory(device) / "diskseq")) == identity:
        site.run("detach", ["wipefs", "--all", "--quiet", str(device)])
