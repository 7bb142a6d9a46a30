"""One device, as it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from fslab.storage import BlockDevice, Site, layouts


class SingleOptions(layouts.Options):
    """A single device has nothing to choose."""


class Single(layouts.Layout[SingleOptions]):
    """The medium's one device is the block device."""

    summary = "one device, as it is"
    Options = SingleOptions

    def disks(self, options: SingleOptions) -> int:  # noqa: ARG002
        """One."""
        return 1

    def commands(self, options: SingleOptions, devices: Sequence[str]) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        """None."""
        return ()

    def assemble(
        self, options: SingleOptions, devices: Sequence[BlockDevice], site: Site, undo: ExitStack  # noqa: ARG002
    ) -> BlockDevice:  # fmt: skip
        """The device itself."""
        (device,) = devices
        return device
