"""Prove that a block device is blank: every byte of it is read.

Samples are not enough: they can miss 62 of 100 MiB of data. Only reads.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.system import sysfs
from fslab.system.files import opened
from fslab.units import format_size

LIMIT_S = 60.0
TELL_EVERY_S = 5.0
CHUNK_BYTES = 4 << 20
PIECE_BYTES = 16 << 10
SAMPLES = 1024
# Erased flash reads as 00 or as ff.
BLANKS = (bytes(CHUNK_BYTES), b"\xff" * CHUNK_BYTES)

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _DeviceState:
    """The identity of a device, and how much had been written to it (``own``) and to its whole disk (``disk``)."""

    number: str
    sequence: str | None
    own: tuple[str, ...]
    disk: tuple[str, ...]

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
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        before = _state(device, descriptor)
        if before is not None and _proved.get(before.number) == before:
            return _read(descriptor, _samples(size))
        forget(device)
        begun = time.monotonic()
        places = _everything(device, size, tell, begun, LIMIT_S)
        if reason := _read(descriptor, places):
            return reason
        if before is not None:
            if not before.unwritten(_state(device, descriptor)):
                return "was written while it was read"
            _proved[before.number] = before
    except _NotReadError as error:
        return str(error)
    except OSError as error:
        raise UnsafeError(
            f"cannot be read ({error.strerror}), so it may contain data", where=str(device),
            hint="choose another device",
        ) from error  # fmt: skip
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
    with opened(device) as descriptor:
        proved, now = _proved.pop(sysfs.device_number(device), None), _state(device, descriptor)
    if proved is not None and not proved.unwritten(now):
        raise UnsafeError(
            "was written after it was found to be blank", where=str(device),
            hint="stop what writes to it, or choose another device",
        )  # fmt: skip


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
    last = max(0, size - PIECE_BYTES)
    yield from ((last * index // SAMPLES, min(PIECE_BYTES, size)) for index in range(SAMPLES + 1))


def _read(descriptor: int, places: Iterator[tuple[int, int]]) -> str | None:
    for offset, length in places:
        content = _content(descriptor, length, offset)
        # The content is read only once, so it must not evict files of other programs from the page cache.
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)
        if not _blank(content):
            return "is not blank: it contains data without a known signature (encrypted?)"
    return None


def _content(descriptor: int, length: int, offset: int) -> bytes:
    """Return exactly ``length`` bytes. Before a bad sector, the kernel returns fewer without an error."""
    content = os.pread(descriptor, length, offset)
    while len(content) < length:
        more = os.pread(descriptor, length - len(content), offset + len(content))
        if not more:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        content += more
    return content


def _blank(content: bytes) -> bool:
    if any(content == blank[: len(content)] for blank in BLANKS):
        return True
    pieces = (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
    return all(any(piece == blank[: len(piece)] for blank in BLANKS) for piece in pieces)


def _state(device: Path, descriptor: int) -> _DeviceState | None:
    """Return the state of a device. None if the kernel does not count writes or has no sequence number for the disk."""
    os.fsync(descriptor)  # the kernel does not count data as written while it is only in memory
    block = sysfs.block_directory(device)
    disk = block.parent if (block / "partition").exists() else block
    sequence, own, whole = sysfs.text(disk / "diskseq"), _written(block), _written(disk)
    if sequence is None or own is None or whole is None or sysfs.text(disk / "queue/iostats") != "1":
        return None
    return _DeviceState(number=sysfs.device_number(device), sequence=sequence, own=own, disk=whole)


def _written(block: Path) -> tuple[str, ...] | None:
    """Return the sectors written and discarded (Documentation/block/stat.rst), None if unknown. Not the requests,
    because flushes are counted as requests too."""
    counts = (sysfs.text(block / "stat") or "").split()
    return (counts[6], counts[13]) if len(counts) >= 15 else None
