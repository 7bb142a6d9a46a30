"""Block devices that the user named: disks, partitions, logical volumes. ALL THEIR DATA IS LOST.

Must never use a device by default, by an unstable name, or while it is in use.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pydantic import Field, field_validator

from fslab.errors import UnsafeError, UsageError
from fslab.names import LocalPath
from fslab.storage import StackDevice, Workspace, media, named_devices, overwrite_check
from fslab.storage.media import MediumPlan, _loop
from fslab.system import sysfs


class DeviceOptions(media.MediumOptions):
    """One device, or several for a layout with several disks.

    A layout uses the first ones, as many as it needs, in this order.
    """

    path: LocalPath = Field(
        description="stable device name, such as /dev/disk/by-id/…, or several, separated by spaces; "
        "ALL THEIR DATA IS LOST"
    )

    @field_validator("path")
    @classmethod
    def _stable(cls, value: str) -> str:
        names = value.split()
        for number, name in enumerate(names):
            try:
                overwrite_check.check_name(name)
            except UnsafeError as error:
                raise ValueError(f"{error.what}; {error.hint}") from error
            if name in names[:number]:
                raise ValueError(f"'{name}' is named twice")
        if not names:
            raise ValueError("is empty: give at least one device")
        return " ".join(names)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.path.split())


class Device(media.Medium[DeviceOptions]):
    """Devices are checked before the campaign and before each trial. At the end, or after a crash, their signatures are
    wiped."""

    summary = "one or several block devices; ALL THEIR DATA IS LOST"
    Options = DeviceOptions

    def plan(self, options: DeviceOptions, site_images: Path) -> MediumPlan:  # noqa: ARG002
        return MediumPlan(device=options.paths[0], size_bytes=None, space={}, wipes=options.paths)

    def each(self, options: DeviceOptions, disks: int) -> Sequence[DeviceOptions]:
        """Return the options of each disk, with one device each. UsageError if too few devices are named."""
        if disks > len(options.paths):
            raise UsageError(
                f"the layout needs {disks} disks, but 'path' names {len(options.paths)}",
                where=options.path,
                hint="add devices to 'path', separated by spaces",
            )
        return [DeviceOptions(path=path) for path in options.paths[:disks]]

    def check(self, options: DeviceOptions, workspace: Workspace, *, disks: int) -> None:
        """Raise an error unless each device is unused, unlocked, and blank or named with --wipe.

        Two devices must not share bytes.
        """
        _loop.check_root(self.name)
        for each in self.each(options, disks):
            overwrite_check.check_unused(each.path)
            if f"claim {each.path}" not in workspace.media:
                overwrite_check.check_unclaimed(each.path)
            overwrite_check.check_blank(each.path, workspace.wipe, workspace.tell)
        overwrite_check.check_apart(each.path for each in self.each(options, disks))

    def discards(self, options: DeviceOptions) -> bool:  # noqa: ARG002
        """Return True: mkfs discards, as in any other use of the device."""
        return True

    def provide(
        self,
        options: DeviceOptions,
        workspace: Workspace,
        slot: str,  # noqa: ARG002
        undo: ExitStack,  # noqa: ARG002
    ) -> StackDevice:
        """Return the device, after another check that it is unused and still the same disk."""
        device = named_devices.held(options.path, workspace)
        facts = sysfs.geometry(device)
        if not facts["size_bytes"]:
            raise UnsafeError("cannot determine its size", where=options.path, hint="choose another device")
        return StackDevice(
            path=device, size_bytes=facts["size_bytes"], discard=True, facts=facts, name=options.path,
            check=partial(named_devices.check_same, options.path, workspace),
        )  # fmt: skip

    def recheck(self, options: Sequence[DeviceOptions], workspace: Workspace) -> None:
        """Raise UnsafeError if a device is in use, is another disk, or was written since it was found to be blank.

        The check that it is blank takes up to a minute for each device.
        """
        named_devices.recheck([each.path for each in options], workspace)

    def made(self, options: DeviceOptions, workspace: Workspace) -> None:
        """Journal the file system's signature, so that it is wiped after a crash, too."""
        named_devices.record_signature(options.path, workspace)
