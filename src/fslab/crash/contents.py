"""Stamped parts of blocks: every sector holds its file, part and generation, so that contents after a power cut can be
distinguished from zeros, older contents and bytes of other files."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

BLOCK_BYTES = 4096
PARTS = 2  # of a block
PART_BYTES = BLOCK_BYTES // PARTS
SECTOR_BYTES = 512
ZERO = 0  # the generation of a part that was never written
MAGIC = b"FSLABCR1"
STALE = b"FSLABOLD" * (SECTOR_BYTES // 8)  # a sector of the disk before any file of a test was there
ATTRIBUTE = "user.fslab"  # the name of the extended attribute that operations set and remove
_HEAD = struct.Struct("<8s5I")


class Stamp(NamedTuple):
    """What a part was written as: its generation, and its number in the file then. Shifted parts keep both."""

    generation: int
    number: int


HOLE = Stamp(ZERO, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A part of a file of a sequence."""

    sequence: int
    inode: int
    part: int


@lru_cache(maxsize=8192)
def part(place: Place, generation: int) -> bytes:
    """Return the 2 KiB of a part in this generation."""
    if generation == ZERO:
        return bytes(PART_BYTES)
    sectors = range(PART_BYTES // SECTOR_BYTES)
    return b"".join(_sector(place, generation, number) for number in sectors)


def attribute(sequence: int, inode: int, generation: int) -> bytes:
    """Return the value of the extended attribute in this generation."""
    return f"{MAGIC.decode()} file {inode} of sequence {sequence}, generation {generation}".encode()


def _sector(place: Place, generation: int, number: int) -> bytes:
    head = _HEAD.pack(MAGIC, place.sequence, place.inode, place.part, generation, number)
    digest = hashlib.sha256(head).digest()
    return head + (digest * (SECTOR_BYTES // len(digest)))[: SECTOR_BYTES - len(head)]


def describe(sector: bytes) -> str:
    """Describe the contents of an unexpected sector."""
    if not any(sector):
        return "zeros"
    if sector == STALE[: len(sector)]:
        return "bytes that were on the disk before the test"
    if sector.startswith(MAGIC) and len(sector) >= _HEAD.size:
        _, sequence, inode, number, generation, _ = _HEAD.unpack_from(sector)
        return f"generation {generation} of half block {number} of file {inode} of sequence {sequence}"
    return "bytes that were written to no file"
