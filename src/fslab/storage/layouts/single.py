"""One device, used directly."""

from collections.abc import Sequence
from contextlib import ExitStack

from fslab.storage import StackDevice, Workspace, layouts
from fslab.storage.layouts import LayoutPlan


class SingleOptions(layouts.LayoutOptions):
    """No options."""


class Single(layouts.Layout[SingleOptions]):
    """The file system lies directly on the medium's first device."""

    summary = "one device, used directly"
    Options = SingleOptions

    def usable_bytes(self, options: SingleOptions, disk_bytes: int) -> int:  # noqa: ARG002
        return disk_bytes

    def plan(self, options: SingleOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:  # noqa: ARG002
        (device,) = devices
        return LayoutPlan(device=device)

    def assemble(
        self, options: SingleOptions, devices: Sequence[StackDevice], workspace: Workspace, undo: ExitStack,  # noqa: ARG002
        *, make: bool, keep: bool,  # noqa: ARG002
    ) -> StackDevice:  # fmt: skip
        (device,) = devices
        return device
