"""Prove that a block device is blank: every byte of it is read.

Samples are not enough: they can miss 62 of 100 MiB of data. Reads past the page cache, which can be older than the
disk. Only reads.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.storage import device_overlap
from fslab.system import page_cache, sysfs
from fslab.system.files import opened
from fslab.units import format_size

LIMIT_S = 60.0
TELL_EVERY_S = 5.0
CHUNK_BYTES = 4 << 20
PIECE_BYTES = 16 << 10
SAMPLES = 1024
COUNT_TRIES = 100
# Erased flash reads as 00 or as ff.
BLANKS = (bytes(CHUNK_BYTES), b"\xff" * CHUNK_BYTES)

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _DeviceState:
    """The identity of a device, and how much had been written to it (``own``) and to its whole disk (``disk``)."""

    number: str
    sequence: str | None
    own: tuple[int, ...]
    disk: tuple[int, ...]

    def unwritten(self, now: _DeviceState | None) -> bool:
        """Return whether the device is the same and has not been written. Other partitions of its disk do not count."""
        return now is not None and (now.number, now.sequence, now.own) == (
            self.number,
            self.sequence,
            self.own,
        )


_proved: dict[str, _DeviceState] = {}
"""Devices that this process has read completely, and their state before it."""


def reason_not_blank(device: Path, tell: Tell) -> str | None:
    """Return why the device is not proved to be blank. None if every byte was read and there was no data.

    Reading ends after LIMIT_S; the device is then not proved to be blank. A device that this process has read
    completely, and that was not written since by the kernel's own count, is only sampled. A device that is written
    meanwhile is not proved to be blank.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        before = _state(device)
        if before is not None and _proved.get(before.number) == before:
            return _read(descriptor, _samples(size))
        forget(device)
        begun = time.monotonic()
        places = _everything(device, size, tell, begun, LIMIT_S)
        if reason := _read(descriptor, places):
            return reason
        if before is not None:
            if not before.unwritten(_state(device)):
                return "was written while it was read"
            _proved[before.number] = before
    except _NotReadError as error:
        return str(error)
    except OSError as error:
        raise UnsafeError(
            f"cannot be read ({error.strerror}), so it may contain data",
            where=str(device),
            hint="choose another device",
        ) from error
    finally:
        os.close(descriptor)
    return None


def forget(device: Path) -> None:
    """End the proof that the device is blank."""
    _proved.pop(sysfs.device_number(device), None)


def check_unwritten(device: Path) -> None:
    """Raise UnsafeError if the device was proved to be blank and has been written since.

    Ends the proof: call this directly before the device is overwritten.
    """
    proved, now = _proved.pop(sysfs.device_number(device), None), _state(device)
    if proved is not None and not proved.unwritten(now):
        raise UnsafeError(
            "was written after it was found to be blank",
            where=str(device),
            hint="stop what writes to it, or choose another device",
        )


class _NotReadError(Exception):
    """The time limit ended before the whole device was read."""


def _everything(
    device: Path, size: int, tell: Tell, begun: float, limit_s: float
) -> Iterator[tuple[int, int]]:
    told = begun
    for offset in range(0, size, CHUNK_BYTES):
        now = time.monotonic()
        if now - begun >= limit_s:
            raise _NotReadError(
                f"may contain data: only {format_size(offset)} of {format_size(size)} could be read in "
                f"{limit_s:.0f} s; they are blank"
            )
        if now - told >= TELL_EVERY_S:
            told = now
            tell(f"checking that {device} is blank: {offset / size:.0%} read")
        yield offset, min(CHUNK_BYTES, size - offset)


def _samples(size: int) -> Iterator[tuple[int, int]]:
    last = max(0, size - 1) // PIECE_BYTES
    for index in range(SAMPLES + 1):
        offset = last * index // SAMPLES * PIECE_BYTES
        yield offset, min(PIECE_BYTES, size - offset)


def _read(descriptor: int, places: Iterator[tuple[int, int]]) -> str | None:
    with mmap.mmap(-1, CHUNK_BYTES) as buffer:  # O_DIRECT needs aligned memory
        for offset, length in places:
            if not _blank(_content(descriptor, buffer, length, offset)):
                return "is not blank: it contains data without a known signature (encrypted?)"
    return None


def _content(descriptor: int, buffer: mmap.mmap, length: int, offset: int) -> bytes:
    """Return exactly ``length`` bytes. Before a bad sector, the kernel returns fewer without an error."""
    done = 0
    with memoryview(buffer) as view:
        while done < length:
            more = os.preadv(descriptor, [view[done:length]], offset + done)
            if not more:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            done += more
    return buffer[:length]


def _blank(content: bytes) -> bool:
    if any(content == blank[: len(content)] for blank in BLANKS):
        return True
    pieces = (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
    return all(any(piece == blank[: len(piece)] for blank in BLANKS) for piece in pieces)


def settle(device: Path) -> None:
    """Write what is cached of the device, and of all devices through which its bytes can be written, and drop the
    device's own cached pages. Each has a page cache of its own: a partition's does not see what was written to the
    whole disk."""
    block = sysfs.block_directory(device)
    try:
        for each in (*device_overlap.same_bytes(block), *device_overlap.below(block)):
            with opened(Path("/dev") / each.name) as descriptor:
                os.fsync(descriptor)
    except OSError:  # one has no node in /dev, or has an error: write everything
        os.sync()
    page_cache.drop_buffers(Path(os.path.realpath(device)))


def _state(device: Path) -> _DeviceState | None:
    """Return the state of a device. None if the kernel does not count writes or has no sequence number for the disk."""
    settle(device)  # the kernel does not count data as written while it is only in memory
    block = sysfs.block_directory(device)
    disk = sysfs.disk(block)
    sequence, own, whole = sysfs.text(disk / "diskseq"), _own(block), _written(disk)
    if sequence is None or own is None or whole is None or sysfs.text(disk / "queue/iostats") != "1":
        return None
    return _DeviceState(number=sysfs.device_number(device), sequence=sequence, own=own, disk=whole)


def _own(block: Path) -> tuple[int, ...] | None:
    """Return what was written to the bytes of a device: through it, and for a partition, through those that overlap it
    and through the whole disk, but not through other partitions. None if unknown."""
    disk = sysfs.disk(block)
    if disk == block:
        return _written(block)
    parts = device_overlap.partitions(disk)
    same = set(device_overlap.same_bytes(block))
    for _ in range(
        COUNT_TRIES
    ):  # the kernel counts a write to a partition for the disk as well, but not at once
        before, whole, after = _sum(parts), _written(disk), _sum(parts)
        through = _sum([part for part in parts if part in same])
        if before is None or whole is None or through is None:
            return None
        if before == after:
            direct = (all_of - of_parts for all_of, of_parts in zip(whole, before, strict=True))
            return (*through, *direct)
    return None


def _sum(blocks: Iterable[Path]) -> tuple[int, ...] | None:
    found = [_written(block) for block in blocks]
    return tuple(map(sum, zip(*filter(None, found), strict=True))) if all(found) else None


def _written(block: Path) -> tuple[int, ...] | None:
    """Return the sectors written and discarded (Documentation/block/stat.rst), None if unknown. Not the requests,
    because flushes are counted as requests too."""
    counts = (sysfs.text(block / "stat") or "").split()
    return (int(counts[6]), int(counts[13])) if len(counts) >= 15 else None
