"""Build a storage stack for one trial on an ExitStack: medium, layout, file system and mount.

The ExitStack undoes everything in reverse order, also after errors and signals.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fslab.cell import StackSpec
from fslab.errors import MkfsError, MountError, ToolMissingError, UnsafeError, UnsupportedError
from fslab.storage import WORK, Growth, StackDevice, Workspace, content, images, mount_point, pool
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import LayoutPlan
from fslab.storage.parsed_stack import parsed_stack
from fslab.storage.pool import Pool
from fslab.system import cache, kernel, memory, mounts, proc, sysfs

LEFT_OVER = 8  # a workload must leave 1/8 of the memory free; until the next check it can write 2 GB/s
STRIPES = ("stripe", "sunit", "swidth")


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
    def source(self) -> str:
        """The name by which the file system's commands get the device; empty without one."""
        return _named(self.device, self.pool) if self.device else ""

    def flush(self) -> None:
        """Write all dirty data to the device."""
        if self.raw:
            mounts.sync(self.raw)
        else:
            mounts.flush(self.target or self.work)

    def fill_cache(self, size_bytes: int) -> None:
        """Read all files into the page cache, or the first ``size_bytes`` of a device without a file system."""
        if self.raw:
            cache.fill_from_device(self.raw, size_bytes)
        else:
            cache.fill_from(self.work)

    def drop_caches(self) -> None:
        """Drop the page cache of its devices after unmounting, which has already dropped the file system's."""
        for node in self.nodes:
            cache.drop_device(node)

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
        """Mount it, and run the study's own command for after a mount."""
        self._mount()
        if self.spec.after_mount:
            self.work.mkdir(mode=0o700, exist_ok=True)
            argv = content.command_argv(self.spec.after_mount, str(self.work))
            self.workspace.run("prepare", argv, cwd=self.work)

    def _mount(self) -> None:
        _check(self.parts)
        if self.device:
            _drop_buffers((self.device, *self.parts))
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
            self.workspace.run("prepare", argv)

    def unmount(self) -> bool:
        """Unmount it and keep the device, so that nothing stays cached. Returns False if fslab did not mount it."""
        if self.raw:
            cache.drop_buffers(self.raw)
            return True
        if self.target is None or self.device is None:
            return False
        mounts.unmount(self.target)
        if self.pool:
            self.pool.export()
        mounts.wait_released(self.device.path)
        return True


def build(
    spec: StackSpec,
    workspace: Workspace,
    undo: ExitStack,
    *,
    slot: str,
    make: bool,
    keep: bool = False,
    made: Callable[[], None] | None = None,
) -> Stack:
    """Build the stack and mount it.

    ``slot`` names the images to use. ``make`` False: they already contain the file system. ``keep``: a later trial uses
    it again. ``made``: called when the file system is made, before it is mounted.
    """
    parsed = parsed_stack(spec)
    medium, layout = parsed.medium, parsed.layout
    if not medium.formatted:
        return _on_directory(spec, workspace, medium.provide(parsed.medium_options, workspace, slot, undo))
    driver = FILESYSTEMS.get(spec.filesystem or "")
    check_supported(driver, where=spec.name)
    provided = [
        medium.provide(each, workspace, name, undo)
        if workspace.attached is None
        else workspace.attached[name]
        for each, name in zip(parsed.each_medium_options(), parsed.slots(slot), strict=True)
    ]
    parts = [device for device in provided if isinstance(device, StackDevice)]
    if make and workspace.attached is None:
        medium.recheck(parsed.each_medium_options(), workspace)
    _check(parts)
    device = layout.assemble(parsed.layout_options, parts, workspace, undo, make=make, keep=keep)
    plan = parsed.layout_plan([str(part.path) for part in parts], workspace.campaign)
    devices = [str(device.path), *plan.members]
    plan = pool.named(driver, plan, workspace.campaign, workspace.turn)
    imported = pool.provide(driver, devices, plan, workspace, undo)
    if make:
        if (journal := parsed.journal(plan)) and journal.make:
            _make(list(journal.make), workspace, parts)
        discard = device.discard and (driver.mounted or sysfs.discards(device.path))
        if argv := parsed.mkfs_argv(plan, _named(device, imported), discard=discard):
            _make(argv, workspace, parts)
        if imported:
            imported.export()
        if workspace.attached is None and layout.undo_kind is None:
            for each in parsed.each_medium_options():
                medium.made(each, workspace)
        if made is not None:
            _drop_buffers((device, *parts))
            made()
    told = {
        "geometry": spec.geometry.value,
        "mkfs_told_of_stripes": parsed.geometry_options(plan) or None,
    }
    device = replace(device, facts={**device.facts, **told})
    return _mounted(spec, workspace, device, parts, driver, plan, imported, undo)


def _named(device: StackDevice, imported: Pool | None) -> str:
    """Return the name by which the file system's commands get the device."""
    return imported.nodes[0] if imported else str(device.path)


def _check(parts: Iterable[StackDevice]) -> None:
    """Raise UnsafeError unless all parts are still the devices that were provided."""
    for part in parts:
        part.check()


def _drop_buffers(devices: Iterable[StackDevice]) -> None:
    """Write what tools left in the page cache of the devices, and drop it. It stays while a process has one open."""
    for path in {each.path for each in devices}:
        cache.drop_buffers(path)


def _make(argv: list[str], workspace: Workspace, parts: Iterable[StackDevice]) -> None:
    _check(parts)
    try:
        workspace.run("mkfs", argv, failure=MkfsError)
    except MkfsError as error:
        if dead := mounts.on_dead_disks():
            error.hint = (
                f"a disk whose image is gone is mounted at {dead[0].target}, and some mkfs look at all mounts: "
                f"umount --lazy {dead[0].target}"
            )
        raise


def check_supported(driver: FileSystem, *, where: str) -> None:
    """Raise UnsupportedError if the kernel lacks this file system. Can load a module."""
    if driver.mounted and not kernel.has_filesystem(driver.mount_type):
        release = kernel.release()
        why = driver.kernels.why_missing(release)
        raise UnsupportedError(
            f"not possible: this kernel ({release}) has no {driver.mount_type}{f': {why}' if why else ''}",
            where=where,
            hint=driver.module.remedy
            if driver.module
            else "use another kernel, for example in a guest (--on), or remove the file system from the study",
        )


def _mounted(
    spec: StackSpec,
    workspace: Workspace,
    device: StackDevice,
    parts: list[StackDevice],
    driver: FileSystem,
    plan: LayoutPlan,
    imported: Pool | None,
    undo: ExitStack,
) -> Stack:
    target = mount_point(workspace.runtime, workspace.turn)
    workspace.will_mount(target, undo)
    target.mkdir(mode=0o700, exist_ok=True)
    stack = Stack(
        workspace=workspace, spec=spec, work=target / WORK if driver.mounted else target, filesystem=driver.name,
        device=device, parts=tuple(parts), driver=driver, plan=plan, pool=imported,
        target=target if driver.mounted else None,
        nodes=tuple(dict.fromkeys(each.path for each in (device, *parts))),
        watched=tuple(part.kernel_name for part in parts),
        buffered=any(part.buffered for part in parts),
        growths=tuple(part.grows for part in parts if part.grows),
    )  # fmt: skip
    if stack.raw:
        _hold(stack.raw, undo)
    stack.mount()
    if stack.raw:
        return stack
    found = {"stripes_in_use": _stripes(target), "features": _features(driver, stack.source, target)}
    stack.device = replace(device, facts={**device.facts, **found})
    stack.work.mkdir(mode=0o700, exist_ok=True)
    if spec.attributes:
        shown = content.set_attributes(spec.attributes, stack.work, workspace)
        stack.device = replace(stack.device, facts={**stack.device.facts, "attributes": shown})
    if spec.filled:
        content.fill(spec.filled, target)
    if not any(stack.work.iterdir()):
        stack.empty_bytes = content.usage(target)[1]
    return stack


def _hold(device: Path, undo: ExitStack) -> None:
    """Keep a device open until the end of the trial, so that nothing else can mount or claim it, and so that its page
    cache, like that of files, outlives the tool that filled it: the kernel flushes and drops it at the last close."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise UnsafeError(
            f"is in use ({error.strerror})",
            where=str(device),
            hint="stop what uses it, or choose another device",
        ) from error
    undo.callback(os.close, descriptor)


def _features(driver: FileSystem, device: str, target: Path) -> list[str] | None:
    """Return the features that the file system really has; None if it has no command that lists them."""
    argv = driver.features_argv(device, str(target))
    try:
        done = proc.run(argv, check=False) if argv else None
    except ToolMissingError:
        return None
    return sorted(driver.feature_words(done.stdout)) if done is not None and done.returncode == 0 else None


def _stripes(target: Path) -> dict[str, str] | None:
    """Return the stripes that the file system uses, as its mount options show them; None if they show none.

    ext4 counts in its blocks, XFS in sectors of 512 bytes.
    """
    mount = mounts.at(target)
    options = (option.partition("=") for option in (mount.options if mount else "").split(","))
    return {name: value for name, _, value in options if name in STRIPES} or None


def _on_directory(spec: StackSpec, workspace: Workspace, provided: StackDevice | Path) -> Stack:
    if isinstance(provided, StackDevice):
        raise TypeError(f"{spec.medium.type} says that it is not formatted but provides a device")
    mount = mounts.containing(provided)
    watched = (name,) if (name := mounts.device_under(mount)) else ()
    place: dict[str, Any] = {"mount_options": mount.options}
    if name:
        place |= sysfs.geometry_of((sysfs.SYS / "class/block" / name).resolve())
    return Stack(
        workspace=workspace,
        spec=spec,
        work=provided,
        filesystem=mount.filesystem,
        watched=watched,
        place=place,
    )
