"""A stack with parsed options: its disks, its mkfs and mount commands, and checks that its parts work together.

Pure. The plan prints these command lines, ``stack.py`` runs them.
"""

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fslab.cell import Geometry, StackSpec
from fslab.storage import StackDevice, Stripe, Workspace
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem, JournalElsewhere
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.layouts import Layout, LayoutOptions, LayoutPlan
from fslab.storage.media import REGISTRY as MEDIA
from fslab.storage.media import Medium, MediumOptions, MediumPlan

SERVED = "the disk server stripes: md and LVM themselves are not part of it, and not tested"


class _ServedStripe(Layout[LayoutOptions]):
    """A layout whose stripe the medium makes itself (``Medium.striped``), with the layout's name and options: one
    device, without modules and tools."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedStack:
    """A stack with parsed options. ``filesystem`` is None on a medium that already has a file system.

    Of a served stack, the medium's options are those of the stripe, and its layout is one device.
    """

    spec: StackSpec
    medium: Medium[Any]
    medium_options: MediumOptions
    layout: Layout[Any]
    layout_options: LayoutOptions
    filesystem: FileSystem | None

    @property
    def disks(self) -> int:
        return self.layout.disks(self.layout_options)

    def array(self) -> MediumOptions | None:
        """Return the options of its medium with the stripe of the layout; None if the medium cannot make it."""
        stripe = self.layout.striping(self.layout_options)
        array: MediumOptions | None = self.medium.striped(self.medium_options, stripe) if stripe else None
        return array

    def slots(self, slot: str) -> list[str]:
        """Return the slots of its devices, one per device."""
        return disk_slots(slot, self.disks)

    def passes_zeros(self) -> bool:
        return self.layout.passes_zeros(self.layout_options)

    def usable_bytes(self, disk_bytes: int) -> int:
        return self.layout.usable_bytes(self.layout_options, disk_bytes)

    def medium_plan(self, images: Path) -> MediumPlan:
        return self.medium.plan(self.medium_options, images)

    def each_medium_options(self) -> Sequence[MediumOptions]:
        options: Sequence[MediumOptions] = self.medium.each(self.medium_options, self.disks)
        return options

    def layout_plan(self, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return what its layout does with ``devices``."""
        return self.layout.plan(self.layout_options, devices, campaign)

    def mkfs_argv(self, plan: LayoutPlan, device: str, *, discard: bool) -> list[str]:
        """Return the mkfs command line: options of the layout, of the geometry and of the study, then all devices.

        ``device``: the actual node of the layout's device. ``discard``: whether mkfs may discard on it.
        """
        discard = discard and not self.medium.is_used(self.medium_options)
        journal = self.journal(plan)
        elsewhere = journal.mkfs if journal else ""
        words = (plan.mkfs_options, elsewhere, self.geometry_options(plan), self.spec.mkfs_options)
        options = " ".join(word for word in words if word)
        return [*self._driver.mkfs_argv(options, device, discard=discard), *plan.members]

    def mount_argv(self, plan: LayoutPlan, device: str, target: str, *, settled: bool = False) -> list[str]:
        """Return the mount command line. ``settled``: with options against work in the background after the mount.

        A study that sets the opposite option gets what it asks for.
        """
        journal = self.journal(plan)
        elsewhere = journal.mount if journal else ""
        words = [word for word in (self.spec.mount_options, plan.mount_options, elsewhere) if word]
        given = set(",".join(words).split(","))
        if settled and not given & {*self._driver.settled_options, *self._driver.unsettled_options}:
            words += self._driver.settled_options
        return self._driver.mount_argv(",".join(words) or "defaults", device, target)

    def journal(self, plan: LayoutPlan) -> JournalElsewhere | None:
        """Return how its journal gets on the layout's device for it; None: it stays in the file system."""
        if plan.journal is None:
            return None
        found = self._driver.external_journal(plan.journal, plan.journal_bytes, self.spec.mkfs_options)
        if found is None:
            raise ValueError(f"layout '{self.layout.name}': {self._driver.name} has no external journal")
        return found

    def notices(self) -> list[str]:
        """Return what a reader would not expect: stripes of the disk server, what is known of the file system, and
        discards that have no effect."""
        served = [f"on the {self.spec.machine.type}, {SERVED}"] if self.spec.served else []
        if self.filesystem is not None and self.filesystem.notice:
            served.append(f"{self.filesystem.name}: {self.filesystem.notice}")
        asked = {option.strip().partition("=")[0] for option in self.spec.mount_options.split(",")}
        if self.filesystem is None or "discard" not in asked or self.medium.discards(self.medium_options):
            return served
        reason = f"a '{self.medium.name}' medium does not allow discards"
        return [*served, f"{self.spec.name}: mount option 'discard' has no effect: {reason}"]

    def geometry_options(self, plan: LayoutPlan) -> str:
        """Return the stripe options of mkfs, as on its command line; empty if there are none.

        A device of md or LVM reports its stripe to mkfs. The medium's own does not, so that mkfs gets it as options.
        """
        match self.spec.geometry:
            case Geometry.DEFAULT:
                return self._detected_options(plan.stripe) if self.spec.served and plan.stripe else ""
            case Geometry.NONE:
                return self._driver.no_stripe_options
            case Geometry.ALIGNED:
                if plan.stripe is None or not self._driver.stripe_options:
                    return ""
                return self._driver.aligned_options(plan.stripe, self.spec.mkfs_options)

    def _detected_options(self, stripe: Stripe) -> str:
        """Return the options for what mkfs would detect by itself, unless the study sets it."""
        driver, size_bytes = self._driver, self.medium_plan(Path()).size_bytes or 0
        if (
            not driver.stripe_options
            or size_bytes < driver.aligned_min_size_bytes
            or self._told_by_study(driver)
        ):
            return ""
        try:
            return driver.aligned_options(stripe, self.spec.mkfs_options)
        except ValueError:  # as a block that is larger than the chunk, for which mkfs ignores the stripe
            return ""

    def check_together(self) -> None:
        """Raise ValueError if layout, file system, geometry and mkfs options are incompatible."""
        if self.filesystem is None:
            return
        if self.layout.filesystems is not None and self.filesystem.name not in self.layout.filesystems:
            only = ", ".join(sorted(self.layout.filesystems))
            raise ValueError(
                f"layout '{self.layout.name}' works with {only} only, not with {self.filesystem.name}"
            )
        settings = (self.spec.attributes, self.spec.fill, self.spec.after_mount)
        if not self.filesystem.mounted and any(settings):
            raise ValueError(
                f"'attributes', 'fill' and 'after_mount' have no effect: '{self.filesystem.name}' has no files"
            )
        self.layout.check_mkfs_options(self.spec.mkfs_options)
        plan = self.layout_plan([f"disk{index}" for index in range(self.disks)], "CAMPAIGN")
        self.journal(plan)
        if self.spec.geometry is Geometry.DEFAULT:
            return
        self._check_told_twice(self.filesystem)
        if self.spec.geometry is Geometry.ALIGNED and plan.stripe is None:
            raise ValueError(f"geometry 'aligned': layout '{self.layout.name}' has no stripe")
        self.geometry_options(plan)

    @property
    def _driver(self) -> FileSystem:
        return self.filesystem or FILESYSTEMS.get("")

    def _check_told_twice(self, driver: FileSystem) -> None:
        if name := self._told_by_study(driver):
            raise ValueError(
                f"geometry '{self.spec.geometry}': the mkfs options '{self.spec.mkfs_options}' set '{name}' too; "
                "remove one of the two"
            )

    def _told_by_study(self, driver: FileSystem) -> str | None:
        """Return the first stripe option among the study's own options of mkfs."""
        # At the start of a word or of a list item, or directly after its flag: -Estride=16
        known = (rf"(?:^|[\s,]|-\w){re.escape(name)}(?![\w-])" for name in driver.stripe_options)
        found = (re.search(pattern, self.spec.mkfs_options) for pattern in known)
        return next((name for name, match in zip(driver.stripe_options, found, strict=True) if match), None)


def disk_slots(slot: str, disks: int) -> list[str]:
    """Return the slots of ``disks`` disks: ``slot`` itself for one, otherwise with an index.

    The index follows a character that no name of a medium has, so that no other medium has this slot.
    """
    return [slot] if disks == 1 else [f"{slot}@{index}" for index in range(disks)]


def parsed_stack(spec: StackSpec) -> ParsedStack:
    """Parse the options of a stack's medium and layout. No other module does this; results are cached."""
    medium, layout = MEDIA.get(spec.medium.type), LAYOUTS.get(spec.layout)
    parsed = ParsedStack(
        spec=spec,
        medium=medium,
        medium_options=_options(medium, json.dumps(spec.medium.options)),
        layout=layout,
        layout_options=_options(layout, json.dumps(spec.layout_options)),
        filesystem=FILESYSTEMS.get(spec.filesystem) if spec.filesystem is not None else None,
    )
    if not spec.served:
        return parsed
    array = parsed.array()
    if array is None:
        raise ValueError(f"medium '{medium.name}' cannot make the stripe of layout '{layout.name}'")
    return replace(parsed, medium_options=array, layout=_ServedStripe(layout))


def served(spec: StackSpec) -> StackSpec:
    """Return the stack with the stripe of its layout made by its medium, if the medium can; else as it is."""
    return spec if parsed_stack(spec).array() is None else spec.model_copy(update={"served": True})


@lru_cache(maxsize=1024)
def _options(entry: Medium[Any] | Layout[Any], options: str) -> Any:
    return entry.parse_options(json.loads(options))
