"""Writes what the kernel cannot know of a disk that a program serves to its request queue."""

from pathlib import Path

from fslab.system import sysfs

_DEFAULT = "-1"


def set_rotational(device: Path, *, rotational: bool) -> None:
    """Say whether a disk is a hard disk: file systems and schedulers adapt to that.

    Writeback throttling does not: it keeps the latency that it aims at, 75 ms for a hard disk and 2 ms for others, of
    what the disk was first (block/blk-wbt.c, wbt_default_latency_nsec). So it is set to the default again, unless it
    is off, or this kernel has none.
    """
    queue = sysfs.queue_directory(sysfs.block_directory(device))
    (queue / "rotational").write_text("1" if rotational else "0")
    if sysfs.number(latency := queue / "wbt_lat_usec"):
        latency.write_text(_DEFAULT)
