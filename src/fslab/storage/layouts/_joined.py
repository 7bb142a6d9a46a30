"""The common parts of layouts for which the kernel creates a new block device: LVM and md.

The commands come from the layout's plan. This module runs them, waits for the device, verifies it and undoes it.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from fslab.errors import LayoutError, UnsafeError
from fslab.storage import StackDevice, Workspace, overwrite_check
from fslab.storage.layouts import Layout, LayoutPlan, O, volume_name
from fslab.system import files, sysfs, waiting

NODE_DEADLINE_S = 10.0
RELEASE_DEADLINE_S = 20.0
USABLE = "USABLE"  # in commands that create: the layout's usable bytes, which are known when the disks exist


class JoinedLayout(Layout[O]):
    """A layout whose result is a new block device, with the medium's devices as its slaves in sysfs."""

    undo_kind: ClassVar[str]

    def assemble(
        self,
        options: O,
        devices: Sequence[StackDevice],
        workspace: Workspace,
        undo: ExitStack,
        *,
        make: bool,
        keep: bool,
    ) -> StackDevice:
        """Run the plan's commands, wait for the device, and verify that it lies on exactly these devices."""
        self.require(load=True)
        parts = [device.path for device in devices]
        plan = self.plan(options, [str(path) for path in parts], workspace.campaign)
        names = [device.name or str(device.path) for device in devices]
        entry = workspace.journal.will_create(self.undo_kind, volume_name(workspace.campaign), names)
        # What is kept on the disks stays in the journal until the next trial uses it.
        kept = f"{self.undo_kind} {' '.join(names)}"
        if former := workspace.media.pop(kept, None):
            workspace.journal.undone(former)
        undo.callback(self._leave, plan, parts, workspace, entry, kept if keep else None)
        self._let_go(plan, parts, workspace)
        usable = str(self.usable_bytes(options, min(device.size_bytes for device in devices)))
        for argv in plan.create if make else plan.activate:
            made = [word.replace(USABLE, usable) for word in argv]
            workspace.run("attach", made, failure=LayoutError)
        node = _wait_for(Path(plan.device), parts)
        # While it is open, the kernel gives its number to no other device, whoever stops it.
        held = files.held(node, undo)
        facts = {
            **sysfs.geometry(node), "layout": self.name, **options.model_dump(), **self.facts(node),
            "parts": [dict(device.facts) for device in devices],
        }  # fmt: skip
        return StackDevice(
            path=node,
            size_bytes=facts["size_bytes"] or 0,
            facts=facts,
            discard=all(device.discard for device in devices),
            check=partial(_check_joined, node, held, parts),
        )

    def facts(self, node: Path) -> Mapping[str, Any]:  # noqa: ARG002
        """Return further facts of the joined device."""
        return {}

    def undo(self, target: str, devices: Sequence[Path]) -> None:
        """Stop the joined device of this name, and make the disks blank that carry its name."""
        parts = {sysfs.block_directory(device).name: device for device in devices}
        ours = frozenset(parts)
        found = [block for block in sorted(sysfs.SYS.glob("block/*")) if self.is_joined(block, target, ours)]
        lower = {slave.name for block in found for slave in sysfs.slaves(block)} - {
            block.name for block in found
        }
        members = {name: Path("/dev") / name for name in sorted(lower)}
        for block in sorted(found, key=lambda block: -_height(block)):
            if block.exists():  # it ends with the device above it, if the layout's tool could stop that
                self.stop(block, target, list(members.values()))
        _wait_released(members.values())
        parts = members | parts
        for part in parts.values():
            if self.name_on(part) == target:  # unknown if the disk is dead
                overwrite_check.check_unused(str(part))
                self.blank(part)
        self.forget(target)

    @abstractmethod
    def is_joined(self, block: Path, name: str, parts: Set[str]) -> bool:
        """Return whether a device is the joined one of this name. ``block``: its directory in sysfs. ``parts``: the
        kernel names of the disks that it was made on. If they are dead, nothing on them can be read."""

    @abstractmethod
    def stop(self, block: Path, name: str, members: Sequence[Path]) -> None:
        """Stop a joined device, even if its disks are dead."""

    @abstractmethod
    def name_on(self, part: Path) -> str | None:
        """Return the name of the joined device that a disk carries; None if there is none, or it cannot be read."""

    @abstractmethod
    def blank(self, part: Path) -> None:
        """Remove the signature of the stopped device from a disk."""

    @abstractmethod
    def forget(self, name: str) -> None:
        """Remove its remaining names in /dev, if udev does not do it."""

    def _let_go(self, plan: LayoutPlan, parts: Sequence[Path], workspace: Workspace) -> None:
        """Stop the joined device if it holds the devices: udev can have started it on devices that were kept."""
        if any(holders(part) for part in parts):
            for argv in plan.deactivate:
                workspace.run("attach", argv, check=False)

    def _leave(
        self, plan: LayoutPlan, parts: Sequence[Path], workspace: Workspace, entry: str, kept: str | None
    ) -> None:
        """Stop the joined device and wait until no device is held. LayoutError at the deadline.

        Commands may fail, because the joined device can be incomplete. ``kept``: where to keep the journal's entry, if
        a later trial uses the joined device.
        """
        commands = plan.deactivate if kept else plan.remove
        _wait_released(parts, lambda: [workspace.run("detach", argv, check=False) for argv in commands])
        self.forget(volume_name(workspace.campaign))
        if kept:
            workspace.media[kept] = entry
        else:
            workspace.journal.undone(entry)


def _wait_released(parts: Collection[Path], again: Callable[[], object] = list) -> None:
    """Do ``again`` until no device holds one of the parts. LayoutError at the deadline."""

    def released() -> bool:
        again()
        return not any(map(holders, parts))

    if not waiting.until(released, RELEASE_DEADLINE_S, 0.05) and (
        held := {part.name: found for part in parts if (found := holders(part))}
    ):
        raise LayoutError(
            f"is still held by {', '.join(sorted({name for names in held.values() for name in names}))}",
            where=", ".join(held),
            hint="stop what uses it, then run: fslab clean",
        )


def holders(part: Path) -> list[str]:
    """Return the kernel names of the devices that hold ``part``: dm-0, md127."""
    return sorted(holder.name for holder in (sysfs.block_directory(part) / "holders").glob("*"))


def disks_of(block: Path, parts: Set[str]) -> set[str]:
    """Return the kernel names of the disks below a joined device, through devices between them (those of a thin pool).
    It does not look below ``parts``."""
    found = set()
    for slave in sysfs.slaves(block):
        found |= (slave.name not in parts and disks_of(slave, parts)) or {slave.name}
    return found


def _height(block: Path) -> int:
    """Return how many levels of devices lie below a device."""
    return 1 + max(map(_height, sysfs.slaves(block)), default=0)


def _wait_for(node: Path, parts: Sequence[Path]) -> Path:
    """Wait for a joined device and return the kernel's own node of it. UnsafeError if it lies on other devices.

    Without the wait, a tool that opens the name in /dev too early creates a regular file of this name and uses it.
    """
    if not waiting.until(node.is_block_device, NODE_DEADLINE_S):
        raise LayoutError(
            "the volume was created, but its block device did not appear",
            where=str(node),
            hint="create missing device nodes: dmsetup mknodes",
        )
    _check_parts_of(node, parts)
    block = sysfs.block_directory(node)
    real = Path("/dev") / block.name
    return real if real.is_block_device() and sysfs.device_number(real) == sysfs.device_number(node) else node


def _check_joined(node: Path, held: int, parts: Sequence[Path]) -> None:
    """Raise UnsafeError unless a name still leads to the joined device that is open, and that to its disks."""
    if sysfs.major_minor(os.fstat(held).st_rdev) != sysfs.device_number(node):
        raise UnsafeError("now names another device", where=str(node), hint="run: fslab clean")
    _check_parts_of(node, parts)


def _check_parts_of(node: Path, parts: Sequence[Path]) -> None:
    ours = {sysfs.block_directory(part).name for part in parts}
    if (below := disks_of(sysfs.block_directory(node), ours)) != ours:
        raise UnsafeError(
            f"lies on {', '.join(sorted(below)) or 'nothing'}, not on {', '.join(sorted(ours))}",
            where=str(node),
            hint="run: fslab clean",
        )
