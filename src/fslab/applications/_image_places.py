"""Where the writes to an image are: each sector begins with the number of its write, so that the image tells which ones
it has, also those under later ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from fslab.applications import _qemu as qemu

FILE = "places"  # what ``of`` reads
SECTOR_BYTES = 512
_HEADER_BYTES = 16
MOST_BYTES = 64 << 20  # of a slot
_MOST_WRITES = 50_000_000
_MASK = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Which write is where. ``size``: of a slot, at whose start a write begins; ``slots``: their number;
    ``filled``: how many writes were done in order; ``seed``: of the order of the others."""

    directory: Path
    format: str
    size: int
    slots: int
    filled: int
    seed: int

    def made(self, preallocation: str, cluster_bytes: int | None = None) -> None:
        """Create the image. A raw one has no metadata that could be allocated."""
        has_tables = self.format == "qcow2" or preallocation != "metadata"
        options = {"preallocation": preallocation if has_tables else "off", "cluster_size": cluster_bytes}
        qemu.create(self.directory, self.format, self.size * self.slots, options)
        numbers = (self.size, self.slots, self.filled, self.seed)
        (self.directory / FILE).write_text(f"{self.format} {' '.join(map(str, numbers))}\n")

    @classmethod
    def of(cls, directory: Path) -> Self:
        """Read what ``made`` has written. ValueError if it is something else."""
        disk_format, *told = (directory / FILE).read_text("ascii").split()
        size, slots, filled, seed = map(int, told)
        if disk_format not in {"raw", "qcow2"} or not (0 < size <= MOST_BYTES and 0 <= filled <= slots):
            raise ValueError(f"invalid numbers in '{FILE}'")
        return cls(directory=directory, format=disk_format, size=size, slots=slots, filled=filled, seed=seed)

    def slot(self, number: int) -> int:
        if number <= self.filled:
            return number - 1
        return _mixed(self.seed, number) * self.slots >> 64

    def offset(self, number: int) -> int:
        return self.slot(number) * self.size

    def written(self, contents: Callable[[int], bytes]) -> Iterator[int]:
        """Yield the writes that are there as a whole, or under later ones. ValueError for bytes that were never
        written."""
        latest = {slot: self._numbers(slot, block, contents) for slot, block in self._blocks()}
        for number in range(1, max((max(each) for each in latest.values()), default=0) + 1):
            there = latest.get(self.slot(number), ())
            length = len(there) and -(-len(contents(number)) // SECTOR_BYTES)
            if length and min(there[:length]) >= number:
                yield number

    def _blocks(self) -> Iterator[tuple[int, bytearray]]:
        """Yield each slot that has data, and its bytes."""
        at, block = -1, bytearray()
        with (self.directory / qemu.IMAGE).open("rb", buffering=0) as file:
            for slot, within, length, offset in self._parts():
                if slot != at:
                    if at >= 0:
                        yield at, block
                    at, block = slot, bytearray(self.size)
                found = os.pread(file.fileno(), length, offset)
                block[within : within + len(found)] = found
        if at >= 0:
            yield at, block

    def _parts(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the parts of slots that have data: slot, place in it, length, offset in the file."""
        for extent in qemu.extents(self.directory, self.format):
            start, end = extent.start, extent.start + extent.length
            if end > self.slots * self.size:
                raise ValueError("the image is larger than it was made")
            while start < end:
                slot, within = divmod(start, self.size)
                length = min(end - start, self.size - within)
                yield slot, within, length, extent.offset + start - extent.start
                start += length

    def _numbers(self, slot: int, block: bytearray, contents: Callable[[int], bytes]) -> tuple[int, ...]:
        """Return of each sector the number of its write; 0: none. ValueError for other bytes."""
        found: list[int] = []
        written: dict[int, bytes] = {0: bytes(self.size)}
        for start in range(0, self.size, SECTOR_BYTES):
            sector = block[start : start + SECTOR_BYTES]
            header = sector[:_HEADER_BYTES].strip()
            number = int(header) if header.isdigit() else -1 if any(sector) else 0
            if number not in written:
                known = 0 < number <= _MOST_WRITES and self.slot(number) == slot
                written[number] = block_of(number, contents(number)) if known else b""
            if sector != written[number][start : start + SECTOR_BYTES]:
                raise ValueError(
                    f"sector {start // SECTOR_BYTES} of block {slot} has bytes that were never written there"
                )
            found.append(number)
        return tuple(found)


def block_of(number: int, contents: bytes) -> bytes:
    """Return what a write writes: whole sectors, each with its number."""
    return (b"%15d " % number).join(_between_headers(contents))


@lru_cache(64)  # contents come from a pool, and cutting them takes longer than all else between two writes
def _between_headers(contents: bytes) -> tuple[bytes, ...]:
    sectors = contents.ljust(-(-len(contents) // SECTOR_BYTES) * SECTOR_BYTES, b"\0")
    starts = range(0, len(sectors), SECTOR_BYTES)
    return (b"", *(sectors[start + _HEADER_BYTES : start + SECTOR_BYTES] for start in starts))


def _mixed(seed: int, number: int) -> int:
    """Return 64 bits that look random (SplitMix64; Steele, Lea & Flood, OOPSLA 2014): a generator for each number would
    take a tenth of a write in memory."""
    mixed = (seed << 32) + number * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31
