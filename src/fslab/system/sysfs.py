"""Read values from /sys and /proc; an unknown value is None. Writes nothing."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

SYS = Path("/sys")


def text(path: Path) -> str | None:
    """Return the stripped content of a file, or None if it cannot be read.

    The content may be a file name of another user that is not UTF-8, so it is decoded like a file name.
    """
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return None


def entries(directory: Path) -> list[Path]:
    """Return the entries of a directory; none if it cannot be read, such as that of a process that has ended.

    ``Path.glob`` raises an error if the directory goes while it looks.
    """
    return [directory / name for name in names(str(directory))]


def names(directory: str) -> list[str]:
    """Return the names of the ``entries`` of a directory: quicker, where there are hundreds."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - pathlib's is slower
    except OSError:
        return []


def number(path: Path) -> int | None:
    """Return the content of a file as a whole number, or None."""
    content = text(path)
    return int(content) if content is not None and content.lstrip("-").isdigit() else None


def field(path: Path, name: str) -> str | None:
    """Return the value of the first line ``name: value`` of a file such as /proc/cpuinfo, or None."""
    for line in (text(path) or "").split("\n"):  # a process can have other ends of lines in its name
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def selected(path: Path) -> str | None:
    """Return the selected word of a file such as ``mq-deadline [none]``."""
    content = text(path)
    if content is None:
        return None
    return content.partition("[")[2].partition("]")[0] or content or None


def major_minor(number: int) -> str:
    """Return ``major:minor`` of a device number, as in ``st_rdev``."""
    return f"{os.major(number)}:{os.minor(number)}"


def device_number(device: Path) -> str:
    """Return ``major:minor`` of a block device node. OSError if it does not exist."""
    return major_minor(os.stat(device).st_rdev)  # noqa: PTH116 - a plain stat, follows links as open(2) would


def block_directory(device: Path) -> Path:
    """Return the /sys/class/block directory of a block device, found by its number, whatever its name is."""
    return (SYS / "dev/block" / device_number(device)).resolve()


def disk(block: Path) -> Path:
    """Return the disk that a partition is on, or the disk itself."""
    return block.parent if (block / "partition").exists() else block


def slaves(block: Path) -> list[Path]:
    """Return the devices that a volume or an array lies on."""
    return [slave.resolve() for slave in sorted(entries(block / "slaves"))]


def queue_directory(block: Path) -> Path:
    """Return the request queue of a disk, or of the disk that a partition is on."""
    own = block / "queue"
    return own if own.is_dir() else block.parent / "queue"


def geometry(device: Path) -> dict[str, Any]:
    """Return properties of a block device: sizes in bytes unless named otherwise, scheduler, cache; None if unknown."""
    return geometry_of(block_directory(device))


def geometry_of(block: Path) -> dict[str, Any]:
    """Do the same as :func:`geometry`, for the device's own directory below /sys."""
    queue = queue_directory(block)
    disk = queue.parent
    sectors = number(block / "size")
    return {
        "device": block.name,
        "size_bytes": sectors * 512 if sectors is not None else None,
        "logical_block_bytes": number(queue / "logical_block_size"),
        "physical_block_bytes": number(queue / "physical_block_size"),
        "minimum_io_bytes": number(queue / "minimum_io_size"),
        "optimal_io_bytes": number(queue / "optimal_io_size"),
        "max_request_kib": number(queue / "max_sectors_kb"),
        "rotational": _yes(number(queue / "rotational")),
        "scheduler": selected(queue / "scheduler"),
        "write_cache": text(queue / "write_cache"),
        "fua": _yes(number(queue / "fua")),
        "read_ahead_kib": number(queue / "read_ahead_kb"),
        "nr_requests": number(queue / "nr_requests"),
        "wbt_lat_usec": number(queue / "wbt_lat_usec"),
        "model": text(disk / "device/model"),
        "firmware": text(disk / "device/firmware_rev") or text(disk / "device/rev"),
    }


def btrfs_directory(names: Collection[str | None], sys: Path = SYS) -> Path | None:
    """Return ``/sys/fs/btrfs/UUID`` of the file system, which lists each of its devices; None if it is not btrfs.

    ``names``: of the devices. A file system on LVM or md lists the joined device, not the disks.
    """
    for devices in (sys / "fs/btrfs").glob("*/devices"):
        if not {entry.name for entry in entries(devices)}.isdisjoint(names):
            return devices.parent
    return None


def discards(device: Path) -> bool:
    """Return whether a block device accepts discards."""
    return bool(number(queue_directory(block_directory(device)) / "discard_max_bytes"))


def caches_writes(device: Path) -> bool:
    """Return whether the kernel flushes a block device's cache; true if that is not known."""
    return text(queue_directory(block_directory(device)) / "write_cache") != "write through"


def flushed(name: str) -> bool:
    """Return whether the kernel is known to flush the cache of the block device with this kernel name."""
    return text(queue_directory((SYS / "class/block" / name).resolve()) / "write_cache") == "write back"


def has_dax(device: Path) -> bool:
    """Return whether files on a block device can be mapped without the page cache; true if that is not known."""
    return number(queue_directory(block_directory(device)) / "dax") != 0


def _yes(value: int | None) -> bool | None:
    return None if value is None else bool(value)
