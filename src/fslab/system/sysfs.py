"""Reads of /sys and /proc as values: unknown is None. Writes nothing."""

import os
from pathlib import Path
from typing import Any

SYS = Path("/sys")


def text(path: Path) -> str | None:
    """The stripped content of a file, or None if it cannot be read.

    It may name a file of another user, in bytes that are no UTF-8.
    """
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    """The content of a file as a whole number, or None."""
    content = text(path)
    return int(content) if content is not None and content.lstrip("-").isdigit() else None


def selected(path: Path) -> str | None:
    """The chosen word of a file such as ``mq-deadline [none]``."""
    content = text(path)
    if content is None:
        return None
    return content.partition("[")[2].partition("]")[0] or content or None


def device_number(device: Path) -> str:
    """``major:minor`` of a block device node; OSError if there is none."""
    number = os.stat(device).st_rdev  # noqa: PTH116 - a plain stat, follows links as open(2) would
    return f"{os.major(number)}:{os.minor(number)}"


def block_directory(device: Path, sys: Path = SYS) -> Path:
    """The /sys/class/block directory of a block device, by its number, whatever its name is."""
    return (sys / "dev/block" / device_number(device)).resolve()


def queue_directory(block: Path) -> Path:
    """The request queue of a disk, or of the disk that a partition is on."""
    own = block / "queue"
    return own if own.is_dir() else block.parent / "queue"


def geometry(device: Path) -> dict[str, Any]:
    """What the kernel says of a block device: sizes in bytes, scheduler, cache; None where it is silent."""
    return geometry_of(block_directory(device))


def geometry_of(block: Path) -> dict[str, Any]:
    """The same, given the device's own directory below /sys."""
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
        "model": text(disk / "device/model"),
        "firmware": text(disk / "device/firmware_rev") or text(disk / "device/rev"),
    }


def _yes(value: int | None) -> bool | None:
    return None if value is None else bool(value)
