"""Writes to the request queue of a disk what the kernel cannot know of it, or does not adapt."""

from pathlib import Path

from fslab.system import sysfs

_DEFAULT = "-1"


def set_rotational(device: Path, *, rotational: bool) -> None:
    """Say whether a disk is a hard disk: file systems and schedulers adapt to that."""
    queue = sysfs.queue_directory(sysfs.block_directory(device))
    (queue / "rotational").write_text("1" if rotational else "0")
    adapt_throttling(device)


def adapt_throttling(device: Path) -> None:
    """Let writeback throttling aim at the latency of what a disk is: 75 ms for a hard disk, 2 ms for others.

    It keeps that of what the disk was first (block/blk-wbt.c, wbt_default_latency_nsec). So it is set to the default
    again, unless it is off, or this kernel has none.
    """
    latency = sysfs.queue_directory(sysfs.block_directory(device)) / "wbt_lat_usec"
    if sysfs.number(latency):
        latency.write_text(_DEFAULT)
