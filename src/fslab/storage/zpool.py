"""File systems that the kernel keeps imported, and cached, between mounts, until they are exported: pools.

A pool is imported for each mount and exported after it. Its devices get nodes of fslab's own in /dev, which name it:
``/dev/fslab-CAMPAIGN-pool``, ``/dev/fslab-CAMPAIGN-pool.1``, …. They also keep ``zpool create`` from partitioning whole
disks, because it knows those by their names. Must never export a pool that lies on other devices than these nodes.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fslab.errors import MountError, ToolMissingError, UnsafeError
from fslab.storage import Workspace, undone_later
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import Argv, LayoutPlan
from fslab.system import mountinfo, mounts, proc

KIND = "pool"  # in a campaign's journal
DEV = Path("/dev")
EXPORT_DEADLINE_S, EXPORT_EVERY_S = 20.0, 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """A pool that exists or is about to be made. ``nodes``: of its devices, its name first."""

    driver: FileSystem
    nodes: tuple[str, ...]
    workspace: Workspace

    def to_import(self) -> None:
        """Import it for a mount."""
        argv = self.driver.import_argv(self.nodes)
        self.workspace.run("mount", argv or (), failure=MountError)

    def export(self) -> None:
        """Export it, unmounted, so that nothing of it stays cached and its devices are free. Can be called twice."""
        _export(self.driver, self.nodes[0], lambda argv: self.workspace.run("detach", argv, check=False))


def with_nodes(driver: FileSystem, plan: LayoutPlan, campaign: str, turn: str = "") -> LayoutPlan:
    """Return the layout's plan, with the names of nodes instead of its devices if the file system is imported. Pure."""
    if not driver.imported:
        return plan
    first = f"{DEV}/fslab-{campaign}-pool{turn}"
    members = (f"{first}.{index}" for index in range(1, len(plan.members) + 1))
    return replace(plan, device=first, members=tuple(members))


def node_argv(device: str, node: str) -> Argv:
    """Return the command that makes a node for a device. Pure."""
    return ("cp", "--recursive", "--dereference", device, node)


def commands(driver: FileSystem, devices: Sequence[str], plan: LayoutPlan) -> tuple[list[Argv], list[Argv]]:
    """Return the commands before mkfs, and those between mkfs and mount. ``plan``: with the nodes. Pure."""
    if not driver.imported:
        return [], []
    nodes = (plan.device, *plan.members)
    between = (driver.export_argv(nodes[0]), driver.import_argv(nodes))
    return list(map(node_argv, devices, nodes)), [tuple(argv) for argv in between if argv]


def provide(
    driver: FileSystem, devices: Sequence[str], plan: LayoutPlan, workspace: Workspace, undo: ExitStack
) -> Pool | None:
    """Make the nodes of ``devices`` that ``plan`` names; ``undo`` exports the pool and removes them. None: no pool.

    UnsafeError if such a node is there, or a pool of this name is imported: it is not the campaign's.
    """
    if not driver.imported:
        return None
    nodes = (plan.device, *plan.members)
    first = Path(nodes[0])
    if any(os.path.lexists(node) for node in nodes) or _listed(driver, nodes[0]) is not None:
        raise UnsafeError(
            f"a pool or device of the name {first.name} exists", where=str(first), hint="run: fslab clean"
        )
    undone_later(workspace.journal, KIND, nodes[0], undo, partial(clean, nodes[0]))
    for argv in commands(driver, devices, plan)[0]:
        workspace.run("attach", argv)
    return Pool(driver=driver, nodes=nodes, workspace=workspace)


def clean(node: str) -> None:
    """Unmount and export the pool that lies on the nodes of this name, and remove them. Can be called twice."""
    path = Path(node)
    nodes = [each for each in (path, *sorted(path.parent.glob(f"{path.name}.*"))) if each.is_block_device()]
    for driver in (driver for _, driver in FILESYSTEMS if nodes and driver.imported):
        if _lies_on(driver, node):
            for mount in mountinfo.mounted():
                if (mount.filesystem, mount.source) == (driver.mount_type, path.name):
                    mounts.unmount(mount.target)
        _export(driver, node, lambda argv: proc.run(argv, check=False))
    for each in nodes:
        each.unlink()


def _export(driver: FileSystem, node: str, run: Callable[[Sequence[str]], proc.Completed]) -> None:
    """Export the pool if it is imported from this node; wait while it is busy, MountError at the deadline."""
    ends = time.monotonic() + EXPORT_DEADLINE_S
    while _lies_on(driver, node):
        done = run(driver.export_argv(node) or ())
        if time.monotonic() > ends:
            raise MountError(
                f"cannot export the pool: {done.stderr.strip() or 'it is still imported'}",
                where=node,
                hint="end the processes that use it, then: fslab clean",
            )
        time.sleep(EXPORT_EVERY_S if done.returncode != 0 else 0)


def _lies_on(driver: FileSystem, node: str) -> bool:
    """Return whether a pool of this name is imported, and lies on this node and not on devices of others."""
    return node in (_listed(driver, node) or "").split()


def _listed(driver: FileSystem, node: str) -> str | None:
    """Return what is listed of the imported pool of this name; None if none is imported."""
    try:
        done = proc.run(driver.imported_argv(node) or (), check=False)
    except ToolMissingError:
        return None
    return done.stdout if done.returncode == 0 else None
