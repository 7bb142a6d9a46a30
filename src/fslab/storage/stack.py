"""A storage stack for one trial: medium ▸ layout ▸ file system ▸ mount, composed on an ExitStack.

Whatever is made here is undone by the ExitStack in reverse, also on errors and signals. Decides nothing
about when to measure.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fslab.cell import StackSpec
from fslab.errors import MkfsError, MountError, UnsupportedError, UsageError
from fslab.record import Severity, ValidityWarning, WarningKind
from fslab.storage import BlockDevice, Site
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.storage.filesystems import FileSystem
from fslab.storage.layouts import REGISTRY as LAYOUTS
from fslab.storage.media import REGISTRY as MEDIA
from fslab.system import kernel, mounts, sysfs
from fslab.units import format_size

WORK = "work"


@dataclass(kw_only=True, slots=True)
class Stack:
    """A stack that is up.

    ``work`` is the workload's own directory on it; ``device`` is None on a ``directory`` medium;
    ``watched`` are kernel names of the block devices under it, as far as they can be known.
    """

    site: Site
    spec: StackSpec
    work: Path
    filesystem: str
    device: BlockDevice | None = None
    driver: FileSystem | None = None
    target: Path | None = None
    watched: tuple[str, ...] = ()
    warnings: list[ValidityWarning] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """Geometry and settings of the device, for the provenance."""
        return dict(self.device.facts) if self.device else {}

    def flush(self) -> None:
        """Write all dirty data to the device."""
        mounts.flush(self.target or self.work)

    def mount(self) -> None:
        """Mount it (again)."""
        if self.driver and self.device and self.target:
            argv = self.driver.mount_argv(self.spec.mount_options, str(self.device.path), str(self.target))
            self.site.run("mount", argv, failure=MountError)

    def unmount(self) -> bool:
        """Unmount it and keep the device; False where there is nothing of ours to unmount."""
        if self.target is None:
            return False
        mounts.unmount(self.target)
        return True


def check(spec: StackSpec, site: Site) -> None:
    """Raise if this stack cannot be built now. Changes nothing.

    It need not come from a study that was just checked: a campaign's store can be anybody's.
    """
    _check_spec(spec)
    layout = LAYOUTS.get(spec.layout)
    disks = layout.disks(layout.parse_options(spec.layout_options))
    medium = MEDIA.get(spec.medium.type)
    if spec.machine.type != "host":
        medium.check_image(medium.parse_options(spec.medium.options), site, disks=disks)
        return
    medium.check(medium.parse_options(spec.medium.options), site, disks=disks)


def _check_spec(spec: StackSpec) -> None:
    if "/" in spec.medium.name:
        raise UsageError("a medium's name has no slashes: images are named after it", where=spec.medium.name)
    if spec.filesystem is None:
        return
    driver = FILESYSTEMS.get(spec.filesystem)
    try:
        driver.check_mkfs_options(spec.mkfs_options)
        driver.check_mount_options(spec.mount_options)
    except ValueError as error:
        raise UsageError(str(error), where=spec.name) from error


def build(spec: StackSpec, site: Site, undo: ExitStack, *, slot: str, make: bool) -> Stack:
    """Bring the stack up and mount it.

    ``slot`` names the images to use; ``make`` False: they carry the file system already.
    """
    medium = MEDIA.get(spec.medium.type)
    options = medium.parse_options(spec.medium.options)
    if not medium.formatted:
        return _on_directory(spec, site, medium.provide(options, site, slot, undo))
    layout = LAYOUTS.get(spec.layout)
    layout_options = layout.parse_options(spec.layout_options)
    driver = FILESYSTEMS.get(spec.filesystem or "")
    check_supported(driver, where=spec.name)
    disks = layout.disks(layout_options)
    slots = [slot] if disks == 1 else [f"{slot}-{index}" for index in range(disks)]
    provided = [
        medium.provide(options, site, name, undo) if site.attached is None else site.attached[name]
        for name in slots
    ]
    devices = [device for device in provided if isinstance(device, BlockDevice)]
    device = layout.assemble(layout_options, devices, site, undo)
    if make:
        argv = driver.mkfs_argv(spec.mkfs_options, str(device.path), discard=device.discard)
        site.run("mkfs", [*argv, *map(str, device.members)], failure=MkfsError)
    return _mounted(spec, site, device, devices, driver, undo)


def check_supported(driver: FileSystem, *, where: str) -> None:
    """UnsupportedError if fslab or this kernel has no such file system. May load a module."""
    if driver.refusal:
        raise UnsupportedError(f"not possible: {driver.refusal}", where=where)
    if not kernel.has_filesystem(driver.mount_type):
        release = kernel.release()
        why = driver.kernels.why_missing(release)
        raise UnsupportedError(
            f"not possible: this kernel ({release}) has no {driver.mount_type}{f': {why}' if why else ''}",
            where=where,
            hint="use another kernel, for example in a guest (--on), or leave it out",
        )


def _mounted(
    spec: StackSpec,
    site: Site,
    device: BlockDevice,
    parts: list[BlockDevice],
    driver: FileSystem,
    undo: ExitStack,
) -> Stack:
    target = site.runtime / "mnt"
    entry = site.journal.will_create("mount", str(target))
    undo.callback(_leave, target, site, entry)
    target.mkdir(mode=0o700, exist_ok=True)
    stack = Stack(
        site=site, spec=spec, work=target / WORK, filesystem=driver.name, device=device, driver=driver,
        target=target, watched=(device.kernel_name,),
        warnings=[*(warning for part in parts for warning in part.warnings), *_too_small(device, driver)],
    )  # fmt: skip
    stack.mount()
    stack.work.mkdir(mode=0o700, exist_ok=True)
    return stack


def _too_small(device: BlockDevice, driver: FileSystem) -> list[ValidityWarning]:
    fair = driver.fair_size_bytes
    if fair is None or device.size_bytes >= fair:
        return []
    return [
        ValidityWarning(
            kind=WarningKind.VOLUME_SMALL,
            severity=Severity.DOUBT,
            message=f"{driver.name} works on {format_size(device.size_bytes)} and is slower on a volume below "
            f"{format_size(fair)} than on a large one, most of all with metadata",
            hint="raise the size of the medium before you judge it",
            data={"size_bytes": device.size_bytes, "fair_size_bytes": fair},
        )
    ]


def _on_directory(spec: StackSpec, site: Site, provided: BlockDevice | Path) -> Stack:
    if isinstance(provided, BlockDevice):
        raise TypeError(f"{spec.medium.type} says that it is not formatted but provides a device")
    mount = mounts.containing(provided)
    watched = (name,) if (name := _device_under(mount)) else ()
    return Stack(site=site, spec=spec, work=provided, filesystem=mount.filesystem, watched=watched)


def _device_under(mount: mounts.Mount) -> str | None:
    """Kernel name of the device of a mount; btrfs has a number of its own, so there the source tells."""
    block = sysfs.SYS / "dev/block" / mount.device
    if block.exists():
        return block.resolve().name
    source = Path(mount.source)
    return source.resolve().name if source.is_block_device() else None


def _leave(target: Path, site: Site, entry: str) -> None:
    mounts.unmount(target)
    if target.exists():
        target.rmdir()
    site.journal.undone(entry)
