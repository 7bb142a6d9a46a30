"""The last check before mkfs: whether a block device may be overwritten.

Only reads. Always refuses a device that is in use. Refuses a device with data, unless the user named it with --wipe.
"""

import fcntl
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from fslab.errors import BusyError, UnsafeError
from fslab.storage import blank_check, device_overlap
from fslab.system import device_writers, files, loop_devices, mountinfo, proc, sysfs
from fslab.system.tools import Tool, require

# Names of the disk, its position or its partition. Not by-uuid and by-label: a copy of the disk has the same names, and
# mkfs removes them. Not by-diskseq: its numbers start again at each boot.
STABLE = ("/dev/disk/by-id/", "/dev/disk/by-path/", "/dev/disk/by-partuuid/", "/dev/mapper/", "/dev/md/")
CLAIM_DEADLINE_S = 5.0
BRIEF_S = 1.0
WIPEFS = Tool(program="wipefs", package="util-linux")


def check_name(path: str) -> None:
    """Raise UnsafeError if ``path`` can name another disk after the next boot."""
    if ".." in Path(path).parts:
        raise UnsafeError("a device path must not contain '..'", where=path, hint=_stable_hint(path))
    if not path.startswith(STABLE):
        raise UnsafeError(
            "not a stable device name: after a reboot or a re-plug it can mean another disk",
            where=path,
            hint=_stable_hint(path),
        )


def check_unused(path: str) -> Path:
    """Return the real device node. UnsafeError if the device is in use; --wipe does not override this.

    In use: mounted, swap, held by LVM, md or dm, with LVM snapshots, under a loop device, exported, read-only, or open
    for writing.
    """
    device = block_device(path)
    block = sysfs.block_directory(device)
    numbers = device_overlap.numbers(block)
    _check_mounts(numbers, path)
    for each in device_overlap.same_bytes(block):
        if holders := [holder.name for holder in sorted((each / "holders").glob("*"))]:
            raise UnsafeError(
                f"is held by {', '.join(holders)} (LVM, md or dm)", where=path, hint="choose another device"
            )
    if snapshots := device_overlap.snapshots(block):
        raise UnsafeError(
            f"has LVM snapshots, which would be lost when they are full: {', '.join(snapshots)}",
            where=path,
            hint="choose another device, or remove the snapshots",
        )
    if sysfs.number(block / "ro") == 1:
        raise UnsafeError("is read-only", where=path, hint="choose another device")
    nodes = _nodes(device)
    _unless_brief(lambda: _check_exclusive(nodes, path))
    _unless_brief(lambda: _check_writers(numbers, path))
    return device


def claim(path: str) -> tuple[int, ...]:
    """Lock a device against other campaigns. Return the descriptors that hold the locks, the device's first.

    Its other names are locked too, such as another loop device on the same image; and for a partition, the whole disk,
    shared. BusyError if another campaign or program has locked one of them. flock(2) also keeps udev from probing the
    device (systemd.io, "Locking Block Device Access"); udev itself can hold the lock for a moment.
    """
    device = block_device(path)
    found: list[int] = []
    try:
        for node in _nodes(device):
            found.append(_locked(node, fcntl.LOCK_EX, path))
            block = sysfs.block_directory(node)
            if (whole := sysfs.disk(block)) != block:
                found.append(_locked(Path("/dev") / whole.name, fcntl.LOCK_SH, path))
    except BaseException:
        release(found)
        raise
    return tuple(found)


def release(claimed: Iterable[int]) -> None:
    """Release the lock: close the descriptors that :func:`claim` returned."""
    for descriptor in claimed:
        os.close(descriptor)


def _nodes(device: Path) -> list[Path]:
    """Return the nodes of a device and of others with the same bytes, the device's own first."""
    block = sysfs.block_directory(device)
    others = dict.fromkeys(each.name for each in device_overlap.same_extent(block) if each != block)
    return [device, *(Path("/dev") / name for name in others)]


def _locked(device: Path, kind: int, path: str) -> int:
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    if files.locked(descriptor, kind, wait_s=CLAIM_DEADLINE_S):
        return descriptor
    os.close(descriptor)
    holder = device_writers.locker(device)
    raise BusyError(
        f"another campaign or program has locked this device{f': process {holder}' if holder else ''}",
        where=path,
        hint="wait for it, or stop it",
    )


def check_unclaimed(path: str) -> None:
    """Raise BusyError if another campaign or program has locked the device. Does not keep a lock."""
    release(claim(path))


def check_apart(paths: Iterable[str]) -> None:
    """Raise UnsafeError if two of these devices share bytes.

    Examples: a disk and its partition, two names or two paths of one disk, a volume and a disk that it lies on.
    """
    blocks = {path: sysfs.block_directory(block_device(path)) for path in paths}
    for (path, block), (other, its) in itertools.combinations(blocks.items(), 2):
        below, others = device_overlap.numbers(block), device_overlap.numbers(its)
        if device_overlap.number(block) in others or device_overlap.number(its) in below:
            raise UnsafeError(f"overlaps with {path}", where=other, hint="name disks that do not overlap")


def check_blank(path: str, wipe: Iterable[str], tell: blank_check.Tell, node: Path | None = None) -> None:
    """Raise UnsafeError unless the device is proved to be blank or --wipe names it. ``node``: of the device, if it is
    known.

    Blank: no partitions, no signature, and no data in any byte. ``tell`` gets progress messages if this takes long.
    """
    device = node or block_device(path)
    if sysfs.device_number(device) in {_source_number(named) for named in wipe}:
        blank_check.forget(device)  # it may have been written since
        return
    block = sysfs.block_directory(device)
    reason = None
    if partitions := [part.name for part in device_overlap.partitions(block)]:
        reason = f"has partitions: {', '.join(partitions)}"
    elif image := sysfs.text(sysfs.disk(block) / "loop/backing_file"):
        reason = f"is a loop device that fslab did not create, on {image}"
    elif signatures := _signatures(device):
        reason = f"contains data: {', '.join(signatures)}"
    else:
        reason = blank_check.reason_not_blank(device, tell)
    if reason:
        raise UnsafeError(
            reason, where=path, hint=f"if all of its data may be destroyed: fslab run … --wipe {path}"
        )


def block_device(path: str) -> Path:
    """Return the node of a device that a study names. UnsafeError unless it is a block device. Does not open it."""
    real = Path(os.path.realpath(path))
    try:
        mode = real.stat().st_mode
    except (OSError, ValueError) as error:
        raise UnsafeError(
            f"no such device ({getattr(error, 'strerror', None) or error})",
            where=path,
            hint=f"ls -l {Path(path).parent}",
        ) from error
    if not stat.S_ISBLK(mode):
        raise UnsafeError("is not a block device", where=path, hint="use a 'loop' medium for an image file")
    return real


def _check_mounts(numbers: set[str], path: str) -> None:
    for mount in mountinfo.mounted():
        if mount.device in numbers or (mount.node and _source_number(mount.node) in numbers):
            raise UnsafeError(
                f"is mounted at {mount.target}", where=path, hint="choose another device, or unmount it"
            )
    for swap in _swaps():
        if _source_number(swap) in numbers:
            raise UnsafeError("is in use as swap", where=path, hint="choose another device")
    _check_loops(numbers, path)
    _check_exports(numbers, path)


# What the kernel opens without O_EXCL and without a process. Files below /sys/kernel/config, and the name in each.
_EXPORTS = {
    "NVMe target": ("nvmet/subsystems/*/namespaces/*/device_path", "(.+)"),
    "LIO, such as by iSCSI": ("target/core/fileio_*/*/info", r"File: (.+?)  Size: "),
    "USB gadget": ("usb_gadget/*/functions/mass_storage.*/lun.*/file", "(.+)"),
}


def _check_exports(numbers: set[str], path: str) -> None:
    for by, (files_of, pattern) in _EXPORTS.items():
        for file in sorted((sysfs.SYS / "kernel/config").glob(files_of)):
            named = re.search(pattern, sysfs.text(file) or "")
            if named and _source_number(named[1]) in numbers:
                raise UnsafeError(f"is exported ({by})", where=path, hint="choose another device")
    for device in (sysfs.SYS / "class/rnbd-server/ctl/devices").glob("*/block_dev"):
        if sysfs.text(device / "dev") in numbers:
            raise UnsafeError("is exported (RNBD)", where=path, hint="choose another device")


def _check_loops(numbers: set[str], path: str) -> None:
    """Raise UnsafeError if a loop device lies on one of the devices, or can do so. Compares numbers: a name can lead to
    another file by now, or in another mount namespace."""
    for name in loop_devices.attached():
        found = device_overlap.backing(sysfs.SYS / "block" / name)
        itself = sysfs.text(sysfs.SYS / "block" / name / "dev") in numbers
        if found is not None and found.block in numbers and not itself:
            raise UnsafeError(
                f"is in use by the loop device {name}", where=path, hint="choose another device"
            )


def _unless_brief(check: Callable[[], None]) -> None:
    """Repeat a failing check for BRIEF_S: a device that is open only for a moment is not in use.

    For example, losetup(8) briefly opens a device that another process has just taken.
    """
    deadline = (
        None  # counts from the first failure: on a busy machine, a single check can take longer than BRIEF_S
    )
    while True:
        try:
            return check()
        except UnsafeError:
            deadline = deadline or time.monotonic() + BRIEF_S
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _check_exclusive(nodes: Iterable[Path], path: str) -> None:
    # O_EXCL on a block device fails while the kernel or a program holds it: mounted in any mount namespace, part of a
    # multi-device btrfs, swap, md, dm (open(2), "O_EXCL").
    for node in nodes:
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            raise UnsafeError(
                f"is in use ({node}: {error.strerror})",
                where=path,
                hint="choose another device, or stop what uses it",
            ) from error


def _check_writers(numbers: set[str], path: str) -> None:
    # Not every program that writes to a device opens it with O_EXCL.
    if writers := device_writers.writers(numbers):
        raise UnsafeError(
            f"is open for writing by process {', '.join(map(str, writers))}, such as a virtual machine or a database",
            where=path,
            hint="choose another device, or stop that process",
        )


def _source_number(source: str) -> str | None:
    try:
        found = os.stat(source)  # noqa: PTH116 - follows links on purpose: a link to a device is that device
    except (OSError, ValueError):
        return None
    return sysfs.major_minor(found.st_rdev) if stat.S_ISBLK(found.st_mode) else None


def _swaps(table: Path = Path("/proc/swaps")) -> list[str]:
    lines = (sysfs.text(table) or "").splitlines()[1:]
    return [line.split()[0].replace("\\040", " ") for line in lines if line.split()]


def identified(device: Path) -> list[tuple[str, str]]:
    """Return the type and the UUID of each signature that has one."""
    found = (line.split() for line in _wipefs(device, "TYPE,UUID"))
    return list(dict.fromkeys((words[0], words[1]) for words in found if len(words) == 2))


def _signatures(device: Path) -> list[str]:
    return [line.split()[0] for line in _wipefs(device, "TYPE,OFFSET")]


def _wipefs(device: Path, columns: str) -> list[str]:
    blank_check.settle(device)
    argv = [require(WIPEFS), "--no-act", "--noheadings", "--output", columns, str(device)]
    return [line for line in proc.run(argv, timeout_s=60).stdout.splitlines() if line.split()]


def _stable_hint(path: str) -> str:
    # realpath, not resolve: a dangling or circular link is not this device, and must not raise an error.
    real = os.path.realpath(path)
    links = [str(link) for place in STABLE for link in sorted(Path(place).glob("*"))]
    if named := next((link for link in links if os.path.realpath(link) == real), None):
        return f"use the name {named}"
    volume = re.fullmatch(r"/dev/([^/]+)/([^/]+)", path)
    if volume and volume[1] not in {"disk", "mapper", "md"}:  # LVM doubles each '-' of a name (lvm(8), NAMES)
        return f"use the name /dev/mapper/{'-'.join(part.replace('-', '--') for part in volume.groups())}"
    return (
        "use a name below /dev/disk/by-id, by-path or by-partuuid; for LVM, LUKS and multipath /dev/mapper/NAME; "
        "for an array /dev/md/NAME"
    )
