"""A mounted storage stack: its parts, and what a trial does with it. ``storage.stack`` builds it."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fslab.cell import StackSpec
from fslab.errors import LayoutError, MountError, UnsafeError
from fslab.filesystem_abilities import Ability
from fslab.storage import Growth, StackDevice, Workspace, images, initial_content
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import LayoutPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.storage.zpool import Pool
from fslab.system import memory, mounts, page_cache, path_owners, sysfs

LEFT_OVER = 8  # a workload must leave 1/8 of the memory free; until the next check it can write 2 GB/s


@dataclass(kw_only=True, slots=True)
class Stack:
    """A mounted stack.

    ``work``: the workload's own directory on it; an empty directory elsewhere if it works on the device itself.
    ``device``, and the layout's ``plan``, are None on a ``directory`` medium. ``pool``: of a file system that is
    imported for each mount. ``parts``: the disks under it.
    ``watched``: kernel names of these, as far as known. These are the parts and not the joined device, so that
    nothing is counted twice, and copies and parity are counted. ``place``: the facts of the file system that an
    existing directory lies on. ``growths``: of its disks. ``empty_bytes``: what is in use without files of the
    workload; None if there are some.
    """

    workspace: Workspace
    spec: StackSpec
    work: Path
    filesystem: str
    device: StackDevice | None = None
    parts: tuple[StackDevice, ...] = ()
    driver: FileSystem | None = None
    plan: LayoutPlan | None = None
    pool: Pool | None = None
    target: Path | None = None
    nodes: tuple[Path, ...] = ()
    watched: tuple[str, ...] = ()
    place: dict[str, Any] = field(default_factory=dict)
    buffered: bool = False
    growths: tuple[Growth, ...] = ()
    empty_bytes: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Geometry and settings of the device, for the provenance."""
        return dict(self.device.facts if self.device else self.place)

    @property
    def devices(self) -> tuple[str, ...]:
        """Kernel names of all devices under it, as in the kernel's messages, including the joined device."""
        joined = (self.device.kernel_name,) if self.device else ()
        return tuple(dict.fromkeys((*joined, *self.watched)))

    @property
    def bare_disk(self) -> Path | None:
        """The device, if the file system lies directly on one disk; None with a layout, or without a device."""
        return self.device.path if self.device and self.watched == (self.device.kernel_name,) else None

    @property
    def raw(self) -> Path | None:
        """The device, if the workload works on it and not on files; otherwise None."""
        return self.device.path if self.device and self.driver and not self.driver.mounted else None

    @property
    def abilities(self) -> frozenset[str]:
        """What mount options need besides features (``FileSystem.overruled``): attributes, what its disks can, and what
        mkfs leaves to the kernel."""
        found = {f"+{letter}" for letter in self.spec.attributes}
        if "lazy_itable_init" in self.spec.mkfs_options:
            found.add("mkfs option lazy_itable_init")
        if self.device is None or sysfs.has_dax(self.device.path):
            found.add("a disk with DAX")
        if self.device is not None and self.device.discard and sysfs.discards(self.device.path):
            found.add("discards")
        if self.device is None or sysfs.caches_writes(self.device.path):
            found.add("a write cache")
        return frozenset(found)

    @property
    def source(self) -> str:
        """The name by which the file system's commands get the device; empty without one."""
        return source_name(self.device, self.pool) if self.device else ""

    def flush(self) -> None:
        """Write all dirty data to the device."""
        if self.raw:
            mounts.sync(self.raw)
        else:
            mounts.flush(self.target or self.work)

    def fill_cache(self, size_bytes: int) -> None:
        """Read all files into the page cache, or the first ``size_bytes`` of a device without a file system."""
        if self.raw:
            page_cache.fill_from_device(self.raw, size_bytes)
        else:
            page_cache.fill_from(self.work)

    def drop_caches(self) -> None:
        """Drop the page cache of its devices after unmounting, which has already dropped the file system's."""
        for node in self.nodes:
            page_cache.drop_device(node)

    def room_check(self) -> Callable[[], None]:
        """Make a check to call while a workload runs. It raises NoSpaceError if shared space, or memory under it, runs
        out.

        The directory of reports, an existing directory, and sparse images have no size limit of their own.
        """
        shared = [self.workspace.runtime] if self.target else [self.workspace.runtime, self.work]
        left_bytes = (memory.total_bytes() or 0) // LEFT_OVER
        in_memory = any(memory.holds(place) for place in (*shared, *(each.image for each in self.growths)))

        def check_left() -> None:
            for place in shared:
                images.check_room(place, 0)
            for growth in self.growths:
                images.check_growth(growth)
            if in_memory:
                images.check_memory(left_bytes)

        return check_left

    def mount(self) -> None:
        """Mount it, and run the study's own command for after a mount. UnsafeError if another user could exchange the
        workload's directory: a link in its place would lead root elsewhere."""
        self._mount()
        has_links = self.driver is not None and Ability.SYMLINKS not in self.driver.limits.lacks
        if self.target and has_links and (why := path_owners.stranger(self.target)):
            raise UnsafeError(
                f"not used: {why}, the root directory of the file system",
                where=self.spec.name,
                hint="leave its owner and mode as they are: no root_owner, uid, umask or mode",
            )
        if self.spec.after_mount:
            self.work.mkdir(mode=0o700, exist_ok=True)
            argv = initial_content.command_argv(self.spec.after_mount, str(self.work))
            self.workspace.run("prepare", argv, cwd=self.work)

    def _mount(self) -> None:
        check_parts(self.parts)
        if self.device:
            self.device.check()
            drop_buffers((self.device, *self.parts))
        if self.plan and self.device and self.target:
            if self.pool:
                self.pool.to_import()
            command = partial(parsed_stack(self.spec).mount_argv, self.plan, self.source, str(self.target))
            settled, plain = command(settled=True), command()
            if settled != plain:
                try:
                    self.workspace.run("mount", settled, failure=MountError)
                except MountError:
                    pass  # an older kernel does not know the option; any other error occurs again
                else:
                    return
            self.workspace.run("mount", plain, failure=MountError)

    def before_run(self, undo: ExitStack) -> None:
        """Do what the layout does when the files of the trial are there, such as a snapshot. ``undo`` removes it."""
        if self.plan is None:
            return
        for argv in self.plan.after_run:
            undo.callback(self.workspace.run, "detach", argv, check=False)
        for argv in self.plan.before_run:
            self.workspace.run("prepare", argv, failure=LayoutError)

    def unmount(self) -> bool:
        """Unmount it and keep the device, so that nothing stays cached. Returns False if fslab did not mount it."""
        if self.raw:
            page_cache.drop_buffers(self.raw)
            return True
        if self.target is None or self.device is None:
            return False
        mounts.unmount(self.target, self.devices)
        if self.pool:
            self.pool.export()
        mounts.wait_released(self.device.path)
        return True


def source_name(device: StackDevice, imported: Pool | None) -> str:
    """Return the name by which the file system's commands get the device."""
    return imported.nodes[0] if imported else str(device.path)


def check_parts(parts: Iterable[StackDevice]) -> None:
    """Raise UnsafeError unless all parts are still the devices that were provided."""
    for part in parts:
        part.check()


def drop_buffers(devices: Iterable[StackDevice]) -> None:
    """Write what tools left in the page cache of the devices, and drop it. It stays while a process has one open."""
    for path in {each.path for each in devices}:
        page_cache.drop_buffers(path)
