"""Find mounts, unmount and wait for the kernel, and flush.

This module does not mount; the drivers of the file systems do.
"""

import contextlib
import errno
import os
import time
from collections.abc import Container, Iterable
from pathlib import Path

from fslab.errors import MountError, ToolTimeoutError
from fslab.system import mountinfo, page_cache, proc, syscalls, sysfs
from fslab.system.files import opened
from fslab.system.mountinfo import Mount

PROC = Path("/proc")
UNMOUNT_DEADLINE_S = 20.0
ANSWER_S = 10.0
_BRIEF_S = 1.0
_HIDE = 'while [ "$1" != -- ]; do umount --lazy "$1"; shift; done; shift; exec "$@"'
_silent: set[tuple[int, Path]] = set()  # a process that asks them is kept by the kernel: each is asked once


def at(target: Path) -> Mount | None:
    """Return the mount whose mount point is exactly ``target`` (the topmost, if several), or None."""
    real = target.resolve()
    lines = mountinfo.OWN.read_bytes().split(b"\n")
    # Only the line of that mount is parsed: this is asked before and after each of a trial's.
    line = next((each for each in reversed(lines) if mountinfo.target_of(each) == os.fsencode(real)), None)
    return None if line is None else Mount.of(line)


def answers(path: Path, limit_s: float | None = None) -> bool:
    """Return whether the server of a network or FUSE file system answers what ``path`` is; by default in ``ANSWER_S``.

    Another process asks: the kernel may let nothing end it, SIGKILL included, before the server answers.
    """
    try:
        proc.run(["stat", "--", str(path)], check=False, timeout_s=ANSWER_S if limit_s is None else limit_s)
    except ToolTimeoutError:
        return False
    return True


def check_servers(paths: Iterable[str | Path]) -> None:
    """Raise MountError if a path, as it is written, leads through a mount whose server does not answer.

    Asked by this process, the path would keep it until the server answers, and Ctrl-C would have no effect. Links are
    not followed: to read them is to ask.
    """
    places = {each: Path(os.path.abspath(each)) for each in paths}  # noqa: PTH100 - resolve() follows links
    for mount in filter(lambda each: each.is_served, mountinfo.mounted()):
        there = [each for each, place in places.items() if place.is_relative_to(mount.target)]
        if there and not answers(mount.target):
            raise MountError(
                f"lies on {mount.target}, whose server does not answer within {ANSWER_S:g} s",
                where=str(there[0]),
                hint="start the server again, unmount it (umount -f -l), or choose another place",
            )


def device_under(mount: Mount) -> str | None:
    """Return the kernel name of a mount's device, or None.

    The device number of a btrfs mount belongs to no block device, so that of the mount's source is used. Without udev,
    the source of a mapped device is a node of its own, not a link to ``dm-N``.
    """
    block = sysfs.SYS / "dev/block" / mount.device
    if not block.exists() and mount.node and Path(mount.node).is_block_device():
        block = sysfs.SYS / "dev/block" / sysfs.device_number(Path(mount.node))
    return block.resolve().name if block.exists() else None


def lower_devices(name: str) -> list[str]:
    """Return the devices directly below a block device: the disk of a partition, the parts of a volume, and the device
    under the file system that the image of a loop device lies on."""
    block = (sysfs.SYS / "class/block" / name).resolve()
    found = [each.name for each in sorted(block.glob("slaves/*"))]
    if (block / "partition").exists():
        found.append(block.parent.name)
    if backing := sysfs.text(block / "loop/backing_file"):
        device = device_under(mountinfo.containing(Path(backing)))
        found += [device] if device else []
    return found


def unmount(
    target: Path, devices: Container[str] | None = (), *, deadline_s: float = UNMOUNT_DEADLINE_S
) -> None:
    """Unmount what fslab mounted at ``target``, if it is mounted; wait while it is busy, MountError at the deadline.
    Can be called twice.

    ``devices``: kernel names of those that it can be mounted from. Without a device, its source has fslab's name. None:
    from any, in a mount namespace of fslab's own. MountError if something else is mounted there, or over it.
    """
    ends = time.monotonic() + deadline_s
    while there := [mount for mount in mountinfo.mounted() if mount.target == target.resolve()]:
        if len(there) > 1 or not (devices is None or _is_from(there[0], devices)):
            raise MountError(
                f"not unmounted: another program mounted {there[-1].source} ({there[-1].filesystem}) there",
                where=str(target),
                hint=f"umount {target}; then: fslab clean",
            )
        done = proc.run(["umount", str(target)], check=False, timeout_s=300)
        if done.returncode == 0:
            continue
        if time.monotonic() > ends:
            raise MountError(
                f"cannot unmount: {done.stderr.strip()}",
                where=str(target),
                hint=f"end the processes that use it (fuser -vm {target}), then: fslab clean",
            )
        time.sleep(0.1)


def _is_from(mount: Mount, devices: Container[str]) -> bool:
    if mount.source.startswith("/dev/"):
        return device_under(mount) in devices or Path(mount.source).name in devices  # a disk that was removed
    return mount.source.startswith("fslab")


def wait_released(device: Path) -> None:
    """Wait until ``device`` is mounted nowhere, and drop its cached pages, which stay while a process has it open. At
    the deadline raise MountError with the processes that hold it.

    umount(8) also succeeds if another mount namespace has a copy of the mount, but then the cache stays.
    """
    ends = time.monotonic() + UNMOUNT_DEADLINE_S
    while _is_held(device):
        if time.monotonic() > ends:
            who = ", ".join(_mounted_by(device)) or "an unknown process"
            raise MountError(
                f"still mounted in the mount namespace of {who}",
                where=str(device),
                hint="end that process, or let it unmount",
            )
        time.sleep(0.05)
    with contextlib.suppress(OSError):  # a device that no longer exists has none
        page_cache.drop_buffers(device)


def _is_held(device: Path) -> bool:
    """Return whether the kernel refuses O_EXCL (open(2)), as it does while the device is mounted."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY  # a device that no longer exists is not held
    return False


def _mounted_by(device: Path) -> list[str]:
    """Return one process of each mount namespace in which the device is mounted, with its name."""
    found: dict[Path, str] = {}
    real = os.path.realpath(device)
    for process in PROC.glob("[0-9]*"):
        try:
            mounted = mountinfo.mounted(process / "mountinfo")
            if any(mount.node and os.path.realpath(mount.node) == real for mount in mounted):
                name = sysfs.text(process / "comm")
                found.setdefault((process / "ns/mnt").readlink(), f"process {process.name} ({name})")
        except OSError:
            continue  # the process has ended, or may not be read
    return list(found.values())


def without_dead() -> tuple[str, ...]:
    """Return the words before a command that looks at all mounts, as mkfs.xfs, xfs_info and mkfs.btrfs do: it gets a
    mount namespace without those in ``dead``. Empty if there are none."""
    if not (targets := dead()):
        return ()
    return (
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        _HIDE,
        "sh",
        *map(str, targets),
        "--",
    )


def dead() -> list[Path]:
    """Return where something is mounted whose network or FUSE server does not answer: it itself, or a loop device whose
    image has such a server, or one that has ended."""
    every = mountinfo.mounted()
    silent = [mount.target for mount in every if _is_silent(mount)]
    loops = (
        (mount.target, _image_of(mount.source)) for mount in every if mount.source.startswith("/dev/loop")
    )
    return [*silent, *(target for target, image in loops if image and _is_unreachable(image, silent))]


def _is_silent(mount: Mount) -> bool:
    known = (mount.number, mount.target)
    if mount.is_served and known not in _silent and not answers(mount.target, _BRIEF_S):
        _silent.add(known)
    return known in _silent


def _image_of(loop: str) -> Path | None:
    image = sysfs.text(sysfs.SYS / "class/block" / Path(loop).name / "loop/backing_file")
    return Path(image) if image else None


def _is_unreachable(image: Path, silent: Iterable[Path]) -> bool:
    if any(image.is_relative_to(target) for target in silent):
        return True
    try:
        image.stat()
    except OSError as error:
        return error.errno in {errno.ENOTCONN, errno.ESTALE, errno.EIO}
    return False


def flush(directory: Path) -> None:
    """Write all dirty data of the file system under ``directory`` to its device: syncfs(2)."""
    with opened(directory, os.O_DIRECTORY) as descriptor:
        syscalls.syncfs(descriptor, directory)


def sync(path: Path) -> None:
    """Call fsync on a file or a directory."""
    with opened(path) as descriptor:
        os.fsync(descriptor)
