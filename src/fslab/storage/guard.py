"""The last check before mkfs: may this block device be overwritten?

Only reads. Always refuses a device that is in use. Refuses a device with data, unless the user named it with --wipe.
"""

import fcntl
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fslab.errors import BusyError, UnsafeError
from fslab.storage import blank, shared
from fslab.system import descriptors, loops, mounts, proc, sysfs
from fslab.system.tools import Tool, require

# Names of the disk, its place or its partition. Those of its content (by-uuid, by-label) a copy of the disk has
# too, and mkfs takes them away; by-diskseq counts anew at each boot.
STABLE = ("/dev/disk/by-id/", "/dev/disk/by-path/", "/dev/disk/by-partuuid/", "/dev/mapper/", "/dev/md/")
CLAIM_DEADLINE_S = 5.0
BRIEF_S = 1.0
WIPEFS = Tool(program="wipefs", package="util-linux")


def check_name(path: str) -> None:
    """UnsafeError unless ``path`` is a name that cannot mean another disk after the next boot."""
    if ".." in Path(path).parts:
        raise UnsafeError("a device path must not contain '..'", where=path, hint=_stable_hint(path))
    if not path.startswith(STABLE):
        raise UnsafeError(
            "not a stable device name: after a reboot or a re-plug it can mean another disk", where=path,
            hint=_stable_hint(path),
        )  # fmt: skip


def check_unused(path: str) -> Path:
    """The real device node, or UnsafeError if it is mounted, swap, held, under a loop device, or written by
    somebody. No --wipe overrides it."""
    device = _block_device(path)
    block = sysfs.block_directory(device)
    numbers = shared.numbers(block)
    _check_mounts(numbers, path)
    for each in shared.beside(block):
        if holders := [holder.name for holder in sorted((each / "holders").glob("*"))]:
            raise UnsafeError(
                f"is held by {', '.join(holders)} (LVM, md or dm)", where=path, hint="choose another device"
            )
    if sysfs.number(block / "ro") == 1:
        raise UnsafeError("is read-only", where=path, hint="choose another device")
    _unless_brief(lambda: _check_exclusive(device, path))
    _unless_brief(lambda: _check_writers(numbers, path))
    return device


def claim(path: str) -> tuple[int, ...]:
    """Descriptors, that of the device first, that keep other campaigns off it until they are closed; BusyError if one
    has it, or a device with the same bytes: of a partition the whole disk is locked as well, shared.

    flock(2) on the device also keeps udev from probing it (systemd.io, "Locking Block Device Access");
    udev itself may hold the lock for a moment.
    """
    device = _block_device(path)
    found: list[int] = []
    try:
        found.append(_locked(device, fcntl.LOCK_EX, path))
        block = sysfs.block_directory(device)
        if (whole := shared.disk(block)) != block:
            found.append(_locked(Path("/dev") / whole.name, fcntl.LOCK_SH, path))
    except BaseException:
        release(found)
        raise
    return tuple(found)


def release(claimed: Iterable[int]) -> None:
    """Give up what :func:`claim` returned."""
    for descriptor in claimed:
        os.close(descriptor)


def _locked(device: Path, kind: int, path: str) -> int:
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    deadline = time.monotonic() + CLAIM_DEADLINE_S
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                os.close(descriptor)
                holder = descriptors.locker(device)
                raise BusyError(
                    f"another campaign or program has locked this device{f': process {holder}' if holder else ''}",
                    where=path, hint="wait for it, or stop it",
                ) from error  # fmt: skip
            time.sleep(0.05)
        else:
            return descriptor


def check_unclaimed(path: str) -> None:
    """BusyError if somebody else has claimed it, or holds a lock on it. Keeps nothing."""
    release(claim(path))


def check_apart(paths: Iterable[str]) -> None:
    """UnsafeError if two of these devices share bytes: a disk and its partition, two names or two paths of one disk, a
    volume and what it lies on."""
    blocks = {path: sysfs.block_directory(_block_device(path)) for path in paths}
    for (path, block), (other, its) in itertools.combinations(blocks.items(), 2):
        if shared.number(block) in shared.numbers(its) or shared.number(its) in shared.numbers(block):
            raise UnsafeError(f"overlaps with {path}", where=other, hint="name disks that do not overlap")


def check_blank(path: str, wipe: Iterable[str], tell: blank.Tell) -> None:
    """UnsafeError unless the device is proved to be blank, or --wipe names it: no partitions, no signature, and every
    byte read. ``tell`` is told how far that is when it takes long."""
    device = _block_device(path)
    if sysfs.device_number(device) in {_source_number(named) for named in wipe}:
        return
    block = sysfs.block_directory(device)
    reason = None
    if partitions := [part.name for part in shared.partitions(block)]:
        reason = f"has partitions: {', '.join(partitions)}"
    elif image := sysfs.text(shared.disk(block) / "loop/backing_file"):
        reason = f"is a loop device that fslab did not create, on {image}"
    elif signatures := _signatures(device):
        reason = f"contains data: {', '.join(signatures)}"
    else:
        reason = blank.reason_not_blank(device, tell)
    if reason:
        raise UnsafeError(
            reason, where=path, hint=f"if all of its data may be destroyed: fslab run … --wipe {path}"
        )  # fmt: skip


def _block_device(path: str) -> Path:
    real = Path(os.path.realpath(path))
    try:
        mode = real.stat().st_mode
    except (OSError, ValueError) as error:
        raise UnsafeError(
            f"no such device ({getattr(error, 'strerror', None) or error})",
            where=path,
            hint="ls -l /dev/disk/by-id",
        ) from error
    if not stat.S_ISBLK(mode):
        raise UnsafeError("is not a block device", where=path, hint="use a 'loop' medium for an image file")
    return real


def _check_mounts(numbers: set[str], path: str) -> None:
    for mount in mounts.mounted():
        if mount.device in numbers or _source_number(mount.source) in numbers:
            raise UnsafeError(
                f"is mounted at {mount.target}", where=path, hint="choose another device, or unmount it"
            )
    for swap in _swaps():
        if _source_number(swap) in numbers:
            raise UnsafeError("is in use as swap", where=path, hint="choose another device")
    for user in _loops_on(numbers):
        raise UnsafeError(f"is in use by the loop device {user}", where=path, hint="choose another device")
    for namespace in sorted(sysfs.SYS.glob("kernel/config/nvmet/subsystems/*/namespaces/*/device_path")):
        if _source_number(sysfs.text(namespace) or "") in numbers:  # the kernel opens it, and not exclusively
            raise UnsafeError("is exported (NVMe target)", where=path, hint="choose another device")


def _loops_on(numbers: set[str]) -> Iterator[str]:
    """Names of the loop devices that lie on one of the devices. By number: what losetup was told can be any name."""
    for backing in sorted(sysfs.SYS.glob("block/loop*/loop/backing_file")):
        name = backing.parent.parent.name
        try:
            number = loops.backing_device(Path("/dev") / name)
        except OSError:  # detached meanwhile, or without a node
            number = _source_number((sysfs.text(backing) or "").removesuffix(" (deleted)"))
        if number in numbers:
            yield name


def _unless_brief(check: Callable[[], None]) -> None:
    """What holds a device for a moment does not use it: losetup(8) opens one that another process has just taken."""
    deadline = None  # from the first time on: on a busy machine a look alone may take longer
    while True:
        try:
            return check()
        except UnsafeError:
            deadline = deadline or time.monotonic() + BRIEF_S
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _check_exclusive(device: Path, path: str) -> None:
    # O_EXCL on a block device fails while the kernel or a program holds it: mounted anywhere, also in another
    # mount namespace, part of a multi-device btrfs, swap, md, dm (open(2), "O_EXCL").
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        raise UnsafeError(
            f"is in use ({error.strerror})", where=path, hint="choose another device, or stop what uses it"
        ) from error


def _check_writers(numbers: set[str], path: str) -> None:
    # Not all that write to a device ask for it exclusively.
    if writers := descriptors.writers(numbers):
        raise UnsafeError(
            f"is open for writing by process {', '.join(map(str, writers))}, such as a virtual machine or a database",
            where=path, hint="choose another device, or stop that process",
        )  # fmt: skip


def _source_number(source: str) -> str | None:
    try:
        found = os.stat(source)  # noqa: PTH116 - follows links on purpose: a link to a device is that device
    except (OSError, ValueError):
        return None
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}" if stat.S_ISBLK(found.st_mode) else None


def _swaps(table: Path = Path("/proc/swaps")) -> list[str]:
    lines = (sysfs.text(table) or "").splitlines()[1:]
    return [line.split()[0].replace("\\040", " ") for line in lines if line.split()]


def _signatures(device: Path) -> list[str]:
    done = proc.run(
        [require(WIPEFS), "--no-act", "--noheadings", "--output", "TYPE,OFFSET", str(device)], timeout_s=60
    )
    return [line.split()[0] for line in done.stdout.splitlines() if line.split()]


def _stable_hint(path: str) -> str:
    # realpath, not resolve: a link that leads nowhere or to itself is no error, just not this device.
    real = os.path.realpath(path)
    links = sorted(str(link) for link in Path("/dev/disk").glob("by-*/*") if os.path.realpath(link) == real)
    links = [link for link in links if link.startswith(STABLE)]
    if links:
        return f"use the name {links[0]}"
    return "use a name below /dev/disk/by-id (ls -l /dev/disk/by-id)"
