"""Layout of the workload's files on the device: extents and discontinuities, before and after the run.

Calls FIEMAP (Documentation/filesystems/fiemap.rst) on the largest files, outside the measured time. Only reads.
"""

import fcntl
import os
import struct
import time
from array import array
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system.files import opened
from fslab.trial_record import Value
from fslab.units import Unit

_FS_IOC_FIEMAP = 0xC020660B
_BATCH = 512
_LIMIT_S = 0.5e-3
_EXTENT = 56
_LAST = 0x1
_FILES, _ENTRIES = 4, 512
_LEAST_BYTES = 1 << 20
_UNKNOWN_PLACE = 0x2 | 0x4 | 0x200  # UNKNOWN, DELALLOC, DATA_INLINE: no physical address


class Extents(Probe):
    """Counts of up to four files, the largest of 1 MiB and more. ``file_extents`` is the kernel's count: a boundary
    between written and unwritten parts starts a new extent. ``file_pieces`` counts contiguous pieces: a new piece
    starts where the next byte of the file does not follow on the device; a hole starts none if the device addresses
    have the same gap. A count that is not complete after half a millisecond is stopped and unknown;
    ``file_extents_at_least`` is the number counted by then."""

    summary = "extents and discontinuities of the workload's files (FIEMAP)"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.SYNCED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the sums of extents and pieces; nothing without large files, or without FIEMAP in the file system."""
        deadline = None if target.thorough else time.monotonic() + _LIMIT_S
        extents = pieces = 0
        whole = True
        files = _largest(target.directory)
        for file in files:
            try:
                found, complete = _extents(file, deadline)
            except OSError:
                return {}
            extents += len(found)
            pieces += _pieces(found)
            whole = whole and complete
        return {"files": len(files), "extents": extents, "pieces": pieces, "whole": whole} if files else {}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the counts after the run, and those before it unless the number of files has changed."""
        before, after = (taken[moment] for moment in self.moments)
        if not after:
            return ProbeFinding(values={})
        values = _counted(after, "")
        values["file_extents_at_least"] = Value(value=after["extents"], unit=Unit.COUNT)
        if before.get("files") == after["files"]:
            values |= _counted(before, "_before")
        return ProbeFinding(values=values)


def _counted(snapshot: Snapshot, suffix: str) -> dict[str, Value]:
    return {
        f"file_{name}{suffix}": Value(value=snapshot[name] if snapshot["whole"] else None, unit=Unit.COUNT)
        for name in ("extents", "pieces")
    }


def _largest(directory: Path) -> list[Path]:
    """Return the largest files among the first entries. Thousands of small files are not relevant, and take long."""
    if not directory.is_dir():
        return []
    # Without O_NOATIME, the run would write an access time that a trial on a copy, or without this probe, does not.
    with opened(directory, os.O_DIRECTORY | os.O_NOATIME) as descriptor, os.scandir(descriptor) as entries:
        sized = [
            (entry.stat(follow_symlinks=False).st_size, directory / entry.name)
            for entry in islice(entries, _ENTRIES)
            if entry.is_file(follow_symlinks=False)
        ]
    return [path for size, path in sorted(sized, reverse=True)[:_FILES] if size >= _LEAST_BYTES]


def _extents(file: Path, deadline: float | None) -> tuple[list[tuple[int, int, int]], bool]:
    """Return (offset in the file, address on the device, length) of each extent that has an address, and whether the
    list is complete."""
    found: list[tuple[int, int, int]] = []
    # What a command of another user has left running can put a link or a pipe there.
    with opened(file, os.O_NOATIME | os.O_NOFOLLOW | os.O_NONBLOCK) as descriptor:
        for batch, more in _batches(descriptor):
            found += batch
            if more and deadline is not None and time.monotonic() > deadline:
                return found, False
    return found, True


def _batches(descriptor: int) -> Iterator[tuple[list[tuple[int, int, int]], bool]]:
    """Yield extents as (offset in the file, address on the device, length), and whether there may be more."""
    start = 0
    while True:
        request = bytearray(struct.pack("=QQIIII", start, (1 << 64) - 1 - start, 0, 0, _BATCH, 0))
        request += bytes(_EXTENT * _BATCH)
        fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, request)
        (mapped,) = struct.unpack_from("=I", request, 20)
        if not mapped:
            return
        words = array("Q", bytes(request[32 : 32 + _EXTENT * mapped]))
        flags = [word & 0xFFFFFFFF for word in words[5::7]]
        placed = zip(words[0::7], words[1::7], words[2::7], flags, strict=True)
        more = not flags[-1] & _LAST and mapped == _BATCH
        yield (
            [(logical, place, size) for logical, place, size, flag in placed if not flag & _UNKNOWN_PLACE],
            more,
        )
        if not more:
            return
        start = words[-7] + words[-5]


def _pieces(extents: list[tuple[int, int, int]]) -> int:
    shifts = [place - logical for logical, place, _ in extents]
    return len(shifts) and 1 + sum(one != other for one, other in pairwise(shifts))
