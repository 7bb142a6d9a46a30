"""Build a storage stack for one trial on an ExitStack: medium, layout, file system and mount.

The ExitStack undoes everything in reverse order, also after errors and signals.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from fslab.cell import StackSpec
from fslab.errors import MkfsError, ToolMissingError, UnsafeError, UnsupportedError
from fslab.storage import WORK, StackDevice, Workspace, initial_content, mount_point, zpool
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import LayoutPlan
from fslab.storage.mounted_stack import Stack, check_parts, drop_buffers, source_name
from fslab.storage.parsed_stack import parsed_stack
from fslab.storage.zpool import Pool
from fslab.system import kernel, mountinfo, mounts, proc, sysfs
from fslab.system.files import opened

STRIPES = ("stripe", "sunit", "swidth")


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
    check_parts(parts)
    device = layout.assemble(parsed.layout_options, parts, workspace, undo, make=make, keep=keep)
    plan = parsed.layout_plan([str(part.path) for part in parts], workspace.campaign)
    devices = [str(device.path), *plan.members]
    plan = zpool.with_nodes(driver, plan, workspace.campaign, workspace.turn)
    imported = zpool.provide(driver, devices, plan, workspace, undo)
    if make:
        if (journal := parsed.journal(plan)) and journal.make:
            _make(list(journal.make), workspace, parts)
        discard = device.discard and (driver.mounted or sysfs.discards(device.path))
        if argv := parsed.mkfs_argv(plan, source_name(device, imported), discard=discard):
            _make(argv, workspace, (*parts, device))
        if imported:
            imported.export()
        if workspace.attached is None and layout.undo_kind is None:
            for each in parsed.each_medium_options():
                medium.made(each, workspace)
        if made is not None:
            drop_buffers((device, *parts))
            made()
    told = {
        "geometry": spec.geometry.value,
        "mkfs_told_of_stripes": parsed.geometry_options(plan) or None,
    }
    device = replace(device, facts={**device.facts, **told})
    return _mounted(spec, workspace, device, parts, driver, plan, imported, undo)


def _make(argv: list[str], workspace: Workspace, parts: Iterable[StackDevice]) -> None:
    check_parts(parts)
    workspace.run("mkfs", argv, failure=MkfsError, within=mounts.without_dead())


def check_supported(driver: FileSystem, *, where: str) -> None:
    """Raise UnsupportedError if the kernel lacks this file system. Can load a module."""
    if driver.mounted and not kernel.has_filesystem(driver.mount_type):
        release = kernel.release()
        why = driver.kernels.why_missing(release)
        raise UnsupportedError(
            f"this kernel ({release}) has no {driver.mount_type}{f': {why}' if why else ''}",
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
    nodes = tuple(dict.fromkeys(each.path for each in (device, *parts)))
    workspace.will_mount(target, undo, nodes)
    target.mkdir(mode=0o700, exist_ok=True)
    stack = Stack(
        workspace=workspace, spec=spec, work=target / WORK if driver.mounted else target, filesystem=driver.name,
        device=device, parts=tuple(parts), driver=driver, plan=plan, pool=imported,
        target=target if driver.mounted else None,
        nodes=nodes,
        watched=tuple(part.kernel_name for part in parts),
        buffered=any(part.buffered for part in parts),
        growths=tuple(part.grows for part in parts if part.grows),
    )  # fmt: skip
    if stack.raw:
        _hold(stack.raw, undo)
    stack.mount()
    if stack.raw:
        return stack
    found = {"stripes_in_use": _stripes(target), **_made(driver, stack.source, target)}
    stack.device = replace(device, facts={**device.facts, **found})
    stack.work.mkdir(mode=0o700, exist_ok=True)
    if spec.attributes:
        shown = initial_content.set_attributes(spec.attributes, stack.work, workspace)
        stack.device = replace(stack.device, facts={**stack.device.facts, "attributes": shown})
    if spec.filled:
        initial_content.fill(spec.filled, target)
    if _is_empty(stack.work):
        stack.empty_bytes = initial_content.usage(target)[1]
    return stack


def _is_empty(directory: Path) -> bool:
    """Return whether a directory has no entry. Does not change its access time, which the run would write otherwise."""
    with opened(directory, os.O_DIRECTORY | os.O_NOATIME) as descriptor, os.scandir(descriptor) as entries:
        return next(entries, None) is None


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


def _made(driver: FileSystem, device: str, target: Path) -> dict[str, Any]:
    """Return the features that mkfs really made, and the sizes that it did not have from the study; None: unknown."""
    argv = driver.features_argv(device, str(target))
    try:
        done = proc.run(argv, check=False, within=mounts.without_dead()) if argv else None
    except ToolMissingError:
        done = None
    if done is None or done.returncode != 0:
        return {"features": None}
    features = sorted(driver.feature_words(done.stdout) - driver.kernel_features)
    return {"features": features, "sizes": dict(driver.sizes_made(done.stdout))}


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
    mount = mountinfo.containing(provided)
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
