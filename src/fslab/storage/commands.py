"""What is run to make and mount a stack's file system, and what its parts refuse of each other. Pure.

The plan prints these command lines, ``stack.py`` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fslab.cell import Geometry, StackSpec
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.layouts import LayoutPlan


def layout_plan(spec: StackSpec, devices: Sequence[str], campaign: str) -> LayoutPlan:
    """What the stack's layout does with ``devices``."""
    layout = LAYOUTS.get(spec.layout)
    return layout.plan(layout.parse_options(spec.layout_options), devices, campaign)


def mkfs_argv(spec: StackSpec, plan: LayoutPlan, device: str, *, discard: bool) -> list[str]:
    """The mkfs command line: the layout's options, the geometry's, then the study's, and every device.

    ``device`` is where the layout's device turned out to be.
    """
    driver = FILESYSTEMS.get(spec.filesystem or "")
    words = (plan.mkfs_options, geometry_options(spec, plan), spec.mkfs_options)
    options = " ".join(word for word in words if word)
    return [*driver.mkfs_argv(options, device, discard=discard), *plan.members]


def mount_argv(spec: StackSpec, plan: LayoutPlan, device: str, target: str) -> list[str]:
    driver = FILESYSTEMS.get(spec.filesystem or "")
    options = ",".join(word for word in (spec.mount_options, plan.mount_options) if word)
    return driver.mount_argv(options, device, target)


def geometry_options(spec: StackSpec, plan: LayoutPlan) -> str:
    """What mkfs is told of stripes, as on its command line; empty: nothing."""
    driver = FILESYSTEMS.get(spec.filesystem or "")
    match spec.geometry:
        case Geometry.DEFAULT:
            return ""
        case Geometry.NONE:
            return driver.no_stripe_options
        case Geometry.ALIGNED:
            if plan.stripe is None or not driver.stripe_options:
                return ""
            return driver.aligned_options(plan.stripe, spec.mkfs_options)


def check(spec: StackSpec) -> None:
    """ValueError where layout, file system, geometry and mkfs options do not go together."""
    if spec.filesystem is None:
        return
    layout, driver = LAYOUTS.get(spec.layout), FILESYSTEMS.get(spec.filesystem)
    options = layout.parse_options(spec.layout_options)
    if layout.filesystems is not None and spec.filesystem not in layout.filesystems:
        only = ", ".join(sorted(layout.filesystems))
        raise ValueError(
            f"layout '{spec.layout}' is made by the file system itself: {only}, not {driver.name}"
        )
    layout.check_mkfs_options(spec.mkfs_options)
    plan = layout.plan(options, [f"disk{index}" for index in range(layout.disks(options))], "CAMPAIGN")
    if spec.geometry is Geometry.DEFAULT:
        return
    _check_told_twice(spec, driver)
    if spec.geometry is Geometry.ALIGNED and plan.stripe is None:
        raise ValueError(
            f"geometry 'aligned': layout '{spec.layout}' has no stripe that mkfs could be told of"
        )
    geometry_options(spec, plan)


def _check_told_twice(spec: StackSpec, driver: FileSystem) -> None:
    for name in driver.stripe_options:
        # At the beginning of a word, of a list's item, or right after its flag: -Estride=16
        if re.search(rf"(?:^|[\s,]|-\w){re.escape(name)}(?![\w-])", spec.mkfs_options):
            raise ValueError(
                f"geometry '{spec.geometry}': the mkfs options '{spec.mkfs_options}' say '{name}' themselves; "
                "leave one of the two out"
            )
