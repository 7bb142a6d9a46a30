"""Space that the workload's files take: blocks in use beside the size of the files, after the run.

Calls statvfs(3) and stat(2) on each file, outside the measured time. Only reads.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, figures
from fslab.system import trees
from fslab.system.files import opened
from fslab.units import Unit

_LIMIT_S = 0.5  # enough for 100,000 files whose inodes are cached


class SpaceOfFiles(Probe):
    """``space_used``: blocks in use after the run, less those in use before the workload had files: data and metadata,
    with copies and compression as the file system counts them. ``files_size``: the sum of the sizes of the files; a
    file with several names counts once. ``space_per_byte``: their ratio. Unknown if files were already there, or if
    they are too many to look at in half a second."""

    summary = "space that the workload's files take (statvfs)"
    moments = (SnapshotMoment.SYNCED,)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the blocks in use in bytes, and the sum of sizes. Nothing if it is unknown what was in use before."""
        if target.empty_bytes is None:
            return {}
        found = os.statvfs(target.directory)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize - target.empty_bytes
        return {"used": used, "size": _size(target.directory)}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the ratio. It is unknown without files."""
        seen = taken[SnapshotMoment.SYNCED]
        used, size = seen.get("used"), seen.get("size")
        if used is None:
            return ProbeFinding(values={})
        ratio = used / size if size and used >= 0 else None
        return ProbeFinding(
            values=figures(Unit.BYTES, space_used=used, files_size=size)
            | figures(Unit.RATIO, space_per_byte=ratio)
        )


def _size(directory: Path) -> int | None:
    """Return the sum of the sizes of all files below a directory, also in subvolumes, but not in what is mounted there;
    None if that takes too long."""
    deadline = time.monotonic() + _LIMIT_S
    total, waiting = 0, [directory]
    linked: set[tuple[int, int]] = set()  # subvolumes of btrfs have the same inode numbers
    device, mount = None, ""
    while waiting:
        if time.monotonic() > deadline:
            return None
        place = waiting.pop()
        # Without O_NOATIME, each directory would get an access time, which is written to the device.
        with (
            opened(place, os.O_DIRECTORY | os.O_NOATIME | os.O_NOFOLLOW) as descriptor,
            os.scandir(descriptor) as entries,
        ):
            of_place = os.fstat(descriptor).st_dev
            if device is None:
                device, mount = of_place, trees.mount_of(descriptor)
            elif of_place != device and trees.mount_of(descriptor) != mount:
                continue
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(place / entry.name)
                elif entry.is_file(follow_symlinks=False) and (found.st_dev, found.st_ino) not in linked:
                    total += found.st_size
                    if found.st_nlink > 1:
                        linked.add((found.st_dev, found.st_ino))
    return total
