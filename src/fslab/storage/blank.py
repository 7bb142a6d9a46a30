"""Prove that a block device is blank: every byte of it is read.

Samples are not enough: they can miss 62 of 100 MiB of data. Only reads.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsafeError
from fslab.system import sysfs
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
    """The identity of a disk, and how much had been written to it."""

    number: str
    sequence: str | None
    written: tuple[str, ...]


_proved: dict[str, _DeviceState] = {}
"""Devices that this process has read completely, and their state before it."""


def reason_not_blank(device: Path, tell: Tell) -> str | None:
    """Return why the device is not proved to be blank. None if every byte was read and there was no data.

    Reading ends after LIMIT_S; the device is then not proved to be blank. A device that this process has read
    completely, and that was not written since by the kernel's own count, is only sampled.
    """
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        os.fsync(descriptor)  # the kernel does not count data as written while it is only in memory
        before = _state(device)
        if before is not None and _proved.get(before.number) == before:
            return _read(descriptor, _samples(size))
        begun = time.monotonic()
        places = _everything(device, size, tell, begun, LIMIT_S)
        if reason := _read(descriptor, places):
            return reason
        if before is not None and before == _state(device):
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
    yield from ((last * index // SAMPLES, PIECE_BYTES) for index in range(SAMPLES + 1))


def _read(descriptor: int, places: Iterator[tuple[int, int]]) -> str | None:
    for offset, length in places:
        content = os.pread(descriptor, length, offset)
        # The content is read only once, so it must not evict files of other programs from the page cache.
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)
        if not _blank(content):
            return "is not blank: it contains data without a known signature (encrypted?)"
    return None


def _blank(content: bytes) -> bool:
    if any(content == blank[: len(content)] for blank in BLANKS):
        return True
    pieces = (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
    return all(any(piece == blank[: len(piece)] for blank in BLANKS) for piece in pieces)


def _state(device: Path) -> _DeviceState | None:
    """Return the state of a device. None if the kernel does not count writes or has no sequence number for the disk."""
    block = sysfs.block_directory(device)
    disk = block.parent if (block / "partition").exists() else block
    sequence, counts = sysfs.text(disk / "diskseq"), (sysfs.text(disk / "stat") or "").split()
    if sequence is None or len(counts) < 15 or sysfs.text(disk / "queue/iostats") != "1":
        return None
    # Documentation/block/stat.rst: sectors written, sectors discarded. Not the requests, because flushes are counted
    # as requests too.
    written = (counts[6], counts[13])
    return _DeviceState(number=sysfs.device_number(device), sequence=sequence, written=written)
