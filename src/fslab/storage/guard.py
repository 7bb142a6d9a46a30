"""The last thing between a user's data and mkfs: may this block device be overwritten?

Looks only. Refuses what is in use in any way, always; refuses what carries data unless the user named
this very device with --wipe.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from fslab.errors import BusyError, UnsafeError
from fslab.system import mounts, proc, sysfs
from fslab.system.tools import Tool, require

# Names of the disk, its place or its partition. Those of its content (by-uuid, by-label) a copy of the disk has
# too, and mkfs takes them away; by-diskseq counts anew at each boot.
STABLE = ("/dev/disk/by-id/", "/dev/disk/by-path/", "/dev/disk/by-partuuid/", "/dev/mapper/", "/dev/md/")
SAMPLES = 1024
EDGE_BYTES = 1 << 20
SAMPLE_BYTES = 16 << 10
CLAIM_DEADLINE_S = 5.0
WIPEFS = Tool(program="wipefs", package="util-linux")


def check_name(path: str) -> None:
    """UnsafeError unless ``path`` is a name that cannot mean another disk after the next boot."""
    if ".." in Path(path).parts:
        raise UnsafeError("a device path must not contain '..'", where=path, hint=_stable_hint(path))
    if not path.startswith(STABLE):
        raise UnsafeError(
            "not a stable device name: after a reboot, a re-plug or a copy it can be another disk", where=path,
            hint=_stable_hint(path),
        )  # fmt: skip


def check_unused(path: str) -> Path:
    """The real device node, or UnsafeError if it is mounted, swap, held, under a loop device, or written by
    somebody. No --wipe overrides it."""
    device = _block_device(path)
    block = sysfs.block_directory(device)
    whole = {sysfs.device_number(device), *(_number(part) for part in _partitions(block))}
    if (block / "partition").exists():
        whole.add(_number(block.parent))
    _check_mounts(whole, path)
    for part in (block, *_partitions(block)):
        if holders := [holder.name for holder in sorted((part / "holders").glob("*"))]:
            raise UnsafeError(
                f"is held by {', '.join(holders)} (LVM, md or dm)", where=path, hint="choose another device"
            )
    if sysfs.number(block / "ro") == 1:
        raise UnsafeError("is read-only", where=path, hint="choose another device")
    _check_exclusive(device, path)
    _check_writers(whole, path)
    return device


def claim(path: str) -> int:
    """A descriptor that keeps other campaigns off the device until it is closed; BusyError if one has it.

    flock(2) on the device also keeps udev from probing it (systemd.io, "Locking Block Device Access");
    udev itself may hold the lock for a moment.
    """
    descriptor = os.open(_block_device(path), os.O_RDONLY | os.O_CLOEXEC)
    deadline = time.monotonic() + CLAIM_DEADLINE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise BusyError(
                    "another campaign uses this device", where=path, hint="wait for it, or end it"
                ) from error
            time.sleep(0.05)
        else:
            return descriptor


def check_blank(path: str, wipe: Iterable[str]) -> None:
    """UnsafeError if the device carries a partition table, a signature or any data, unless --wipe names it."""
    device = _block_device(path)
    if sysfs.device_number(device) in {_source_number(named) for named in wipe}:
        return
    block = sysfs.block_directory(device)
    reason = None
    if partitions := [part.name for part in _partitions(block)]:
        reason = f"has partitions: {', '.join(partitions)}"
    elif sysfs.text(block / "loop/backing_file") is not None:
        reason = f"is a loop device that somebody else set up, on {sysfs.text(block / 'loop/backing_file')}"
    elif signatures := _signatures(device):
        reason = f"carries data: {', '.join(signatures)}"
    elif _has_bytes(device):
        reason = "is not blank: it holds data of a kind that nobody recognises (encrypted, perhaps)"
    if reason:
        raise UnsafeError(
            reason, where=path, hint=f"if all of it may be destroyed: fslab run … --wipe {path}"
        )  # fmt: skip


def _block_device(path: str) -> Path:
    real = Path(path).resolve()
    try:
        mode = real.stat().st_mode
    except OSError as error:
        raise UnsafeError(
            f"no such device ({error.strerror})", where=path, hint="ls -l /dev/disk/by-id"
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
    for backing in sorted(sysfs.SYS.glob("block/loop*/loop/backing_file")):
        if _source_number(sysfs.text(backing) or "") in numbers:
            user = backing.parent.parent.name
            raise UnsafeError(f"is in use: {user} lies on it", where=path, hint="choose another device")


def _check_exclusive(device: Path, path: str) -> None:
    # O_EXCL on a block device fails while the kernel or a program holds it: mounted anywhere, also in another
    # mount namespace, part of a multi-device btrfs, swap, md, dm (open(2), "O_EXCL").
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        raise UnsafeError(
            f"is in use ({error.strerror})", where=path, hint="choose another device, or end what uses it"
        ) from error


def _check_writers(numbers: set[str], path: str) -> None:
    # Not all that write to a device ask for it exclusively.
    if writers := _writers(numbers):
        raise UnsafeError(
            f"is written by process {', '.join(writers)} (a virtual machine, a database?)", where=path,
            hint="choose another device, or end what uses it",
        )  # fmt: skip


def _writers(numbers: set[str], root: Path = Path("/proc")) -> list[str]:
    """Ids of the processes that have one of the devices open for writing."""
    found = set()
    for entry in root.glob("[0-9]*/fd/*"):
        try:
            name = os.readlink(entry)  # noqa: PTH115 - its name only: a stat of any file can hang
            if not name.startswith("/dev/") or _source_number(name) not in numbers:
                continue
            flags = (entry.parent.parent / "fdinfo" / entry.name).read_text().partition("flags:")[2]
        except OSError:
            continue  # ended meanwhile
        if int(flags.split()[0], 8) & os.O_ACCMODE != os.O_RDONLY:
            found.add(entry.parent.parent.name)
    return sorted(found)


def _partitions(block: Path) -> list[Path]:
    return [entry.parent for entry in sorted(block.glob("*/partition"))]


def _number(block: Path) -> str:
    return sysfs.text(block / "dev") or ""


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


def _has_bytes(device: Path) -> bool:
    """Whether the device's first and last MiB, and samples spread evenly between, hold anything.

    Erased flash reads as 00 or ff. Sparse data between the samples is not seen: a blank look is no proof.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        last = max(0, size - EDGE_BYTES)
        places = [(0, EDGE_BYTES), (last, EDGE_BYTES)]
        places += [(last * index // SAMPLES, SAMPLE_BYTES) for index in range(1, SAMPLES)]
        for offset, length in places:
            sample = os.pread(descriptor, length, offset)
            if sample.strip(b"\0") and sample.strip(b"\xff"):
                return True
    finally:
        os.close(descriptor)
    return False


def _stable_hint(path: str) -> str:
    try:
        real = Path(path).resolve()
        links = sorted(str(link) for link in Path("/dev/disk").glob("by-*/*") if link.resolve() == real)
        links = [link for link in links if link.startswith(STABLE)]
    except OSError:
        links = []
    if links:
        return f"name it as {links[0]}"
    return "use a name below /dev/disk/by-id (ls -l /dev/disk/by-id)"
