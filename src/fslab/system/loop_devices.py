"""Loop devices: the command that attaches an image, whether it has direct I/O, and detaching, which waits for its end.

Must not detach a device whose backing file is not the given image.
"""

import contextlib
import errno
import fcntl
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import MountError, ToolFailedError, UnsupportedError
from fslab.system import proc, sysfs
from fslab.system.files import opened

DETACH_DEADLINE_S = 10.0
CONTROL = Path("/dev/loop-control")
REMEDY = "modprobe loop; a container needs the host's /dev (docker run --privileged -v /dev:/dev)"
# include/uapi/linux/loop.h; struct loop_info64 begins with lo_device, lo_inode and lo_rdevice.
LOOP_GET_STATUS64 = 0x4C05
LOOP_INFO64_BYTES = 232
LOOP_CTL_ADD = 0x4C80
LOOP_CTL_REMOVE = 0x4C81
LOOP_CTL_GET_FREE = 0x4C82


def check_supported() -> None:
    """Raise UnsupportedError if there are no loop devices here."""
    if not CONTROL.exists():
        raise UnsupportedError(
            "there are no loop devices here",
            where=str(CONTROL),
            hint=f"{REMEDY}; or use a 'device' or 'directory' medium",
        )


def attach_argv(
    image: Path, *, direct: bool, device: Path | None = None, sector_bytes: int | None = None
) -> list[str]:
    """Return the losetup(8) command that attaches ``image`` to ``device``, or to the first free one, and prints its
    path. ``sector_bytes``: its logical block size; None: the kernel's default."""
    where = ["--find"] if device is None else [str(device)]
    sector = [] if sector_bytes is None else ["--sector-size", str(sector_bytes)]
    return ["losetup", *where, "--show", f"--direct-io={'on' if direct else 'off'}", *sector, str(image)]


def allows_direct_io(image: Path) -> bool:
    """Return whether the file system under ``image`` supports O_DIRECT (tmpfs since Linux 6.6). Otherwise losetup
    with direct I/O fails."""
    try:
        with opened(image, os.O_DIRECT):
            return True
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise


def attached_to(image: Path, sys: Path = sysfs.SYS) -> list[Path]:
    """Return the loop devices whose backing file is ``image``, deleted or not. Its directory may have any name."""
    real = image.parent.resolve() / image.name
    return [Path("/dev") / name for name in attached(sys) if _lies_on(name, real, sys)]


def _lies_on(name: str, image: Path, sys: Path = sysfs.SYS) -> bool:
    return sysfs.text(sys / "block" / name / "loop/backing_file") in {str(image), f"{image} (deleted)"}


def attached(sys: Path = sysfs.SYS) -> list[str]:
    """Return the names of the loop devices that are attached."""
    # Without a Path for each: the kernel keeps the devices that it has made, often hundreds.
    block = f"{sys}/block"
    names = sorted(name for name in sysfs.names(block) if name.startswith("loop"))
    return [name for name in names if os.path.exists(f"{block}/{name}/loop/backing_file")]  # noqa: PTH110


@dataclass(frozen=True, kw_only=True, slots=True)
class Backing:
    """What a loop device lies on, by the kernel's word and not by a name. ``file``: device and inode number, as in
    stat(2). ``block``: ``major:minor`` if it is a block device. ``whole``: from its first to its last byte."""

    file: tuple[int, int]
    block: str | None
    whole: bool


def backing(descriptor: int) -> Backing:
    """Return what an open loop device lies on. OSError (ENXIO) if it is not attached."""
    status = fcntl.ioctl(descriptor, LOOP_GET_STATUS64, bytes(LOOP_INFO64_BYTES))
    device, inode, number, offset, limit = struct.unpack_from("=QQQQQ", status)
    block = sysfs.major_minor(number) if number else None
    return Backing(file=(device, inode), block=block, whole=not offset and not limit)


def backing_of(device: Path) -> Backing | None:
    """Return what a loop device lies on; None if it is not attached. OSError if its node in /dev is missing, or is that
    of another device: then what it lies on is unknown."""
    with opened(device) as descriptor:
        number = os.fstat(descriptor).st_rdev
        if sysfs.text(sysfs.SYS / "block" / device.name / "dev") != sysfs.major_minor(number):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), str(device))
        try:
            return backing(descriptor)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
    return None


def uses_direct_io(device: Path) -> bool:
    """Return whether the kernel really bypasses the page cache of the backing file (sysfs ``loop/dio``)."""
    return sysfs.text(sysfs.block_directory(device) / "loop/dio") == "1"


def forbid_discard(device: Path) -> None:
    """Make the device refuse discards: they would punch holes into the fully written image.

    Each write to the limit waits until the kernel has stopped the device's queue, so a limit that is already 0 is not
    written again.
    """
    limit = sysfs.block_directory(device) / "queue/discard_max_bytes"
    if sysfs.text(limit) != "0":
        limit.write_text("0")


READ_AHEAD_KIB = 128  # of a new device: VM_READAHEAD_PAGES, include/linux/pagemap.h


def forget_read_ahead(device: Path) -> None:
    """Give a device without an image the read-ahead of a new one.

    The kernel keeps the largest that the device ever had (block/blk-settings.c, blk_apply_bdi_limits; Linux 6.18): an
    image on a rotational disk raises it to 2.5 MiB, for all later images in memory, too.
    """
    amount = sysfs.SYS / "block" / device.name / "queue/read_ahead_kb"
    if sysfs.number(amount) != READ_AHEAD_KIB:
        amount.write_text(str(READ_AHEAD_KIB))


RENEWED = "loop device"  # kind of journal entries
NAME = re.compile(r"/dev/loop\d+")


def renew(device: Path) -> None:
    """Replace a device by a new one of the same number, unless it is in use.

    Where discards were forbidden, they stay forbidden for every later image, whoever attaches it, and cannot be allowed
    again: with the limit, the granularity became 0, and the kernel takes only multiples of it (Linux 6.18).
    """
    number = int(device.name.removeprefix("loop"))
    with contextlib.suppress(OSError), opened(CONTROL, os.O_RDWR) as control:
        fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        fcntl.ioctl(control, LOOP_CTL_ADD, number)


def free() -> Path:
    """Return a loop device without an image; the kernel adds one if all have one. Another process may take it first."""
    with opened(CONTROL, os.O_RDWR) as control:
        return Path(f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}")


@contextmanager
def added() -> Iterator[Path]:
    """Add a new loop device, and remove it at the end of the block. An old one may be unusable: once discard was
    forbidden, it stays forbidden for every image. Another process that looks for a free device may take it first."""
    with opened(CONTROL, os.O_RDWR) as control:
        number = fcntl.ioctl(control, LOOP_CTL_ADD, -1)
        try:
            yield Path(f"/dev/loop{number}")
        finally:
            with contextlib.suppress(OSError):  # in use
                fcntl.ioctl(control, LOOP_CTL_REMOVE, number)


def detach(image: Path) -> None:
    """Detach every loop device on ``image`` and wait until the kernel has detached it. MountError, ToolFailedError or
    OSError at the deadline. Can be called twice."""
    deadline = time.monotonic() + DETACH_DEADLINE_S
    devices = attached_to(image)
    while devices:
        for device in devices:
            try:
                _detach(device, image)
            except (ToolFailedError, OSError):  # or another process was faster
                if attached_to(image) and time.monotonic() > deadline:
                    raise
        if devices := attached_to(image):
            if time.monotonic() > deadline:
                raise MountError("the loop device cannot be detached", where=str(image), hint="fslab clean")
            time.sleep(0.02)


def _detach(device: Path, image: Path) -> None:
    # While it is open, the device cannot get another image between the check and losetup.
    with opened(device):
        if _lies_on(device.name, image.parent.resolve() / image.name):
            proc.run(["losetup", "--detach", str(device)], timeout_s=30)
