"""A layout whose stripe the medium makes itself (``Medium.striped``): one device, without modules and tools."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from fslab.storage import StackDevice, Workspace
from fslab.storage.layouts import Layout, LayoutOptions, LayoutPlan


class ServedStripe(Layout[LayoutOptions]):
    """The stripe of another layout, with its name and options."""

    summary = "a stripe that the medium makes"

    def __init__(self, layout: Layout[Any]) -> None:
        self.name, self._layout = layout.name, layout

    def disks(self, options: LayoutOptions) -> int:  # noqa: ARG002
        return 1

    def usable_bytes(self, options: LayoutOptions, disk_bytes: int) -> int:  # noqa: ARG002
        return disk_bytes

    def plan(self, options: LayoutOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:  # noqa: ARG002
        (device,) = devices
        return LayoutPlan(device=device, stripe=self._layout.striping(options))

    def assemble(
        self, options: LayoutOptions, devices: Sequence[StackDevice], workspace: Workspace, undo: ExitStack,  # noqa: ARG002
        *, make: bool, keep: bool,  # noqa: ARG002
    ) -> StackDevice:  # fmt: skip
        (device,) = devices
        told = {"layout": self.name, **options.model_dump(), "striped_by": "medium"}
        return replace(device, facts={**device.facts, **told})
