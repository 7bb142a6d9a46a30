"""The disk of a virtual machine in a file: an image that QEMU writes to at random places, and flushes when asked to.

The requests are those of qemu-io(1), one after the other, without a guest. Each sector begins with the number of its
write, so that the image tells which ones it has, also those under later ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from fslab import scaling
from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Records,
    RecoveredData,
    Settings,
    promised,
    repeated,
    setting,
)
from fslab.applications import _qemu as qemu
from fslab.applications import _untrusted_data as untrusted
from fslab.applications._servers import DamagedError
from fslab.filesystem_abilities import Ability
from fslab.storage.crash_promises import Promises
from fslab.units import SomeSize, parse_size, shown_size

FILE = "places"  # what ``Places.of`` reads
SECTOR_BYTES = 512
_HEADER_BYTES = 16
MOST_BYTES = 64 << 20  # of a slot
_MOST_WRITES = 50_000_000
_MASK = (1 << 64) - 1
_FILLED_AT_ONCE = 1 << 20
_FILLED_PER_S = 100e6
_METADATA_BYTES = 16 << 20
_CLUSTERS = {1 << bit for bit in range(12, 22)}


class VmImageLoad(Records):
    """`qemu-io`, as the user `nobody`, writes blocks of `size` to random places of an image of `qemu-img`, or reads
    them. A transaction is `batch` writes and a flush, as a guest sends it for fsync(2); or one read. Afterwards
    `qemu-img check` must find nothing, and the whole contents must be right. On btrfs, compare also with `attributes:
    C` of the stack (nodatacow)."""

    laid_out = frozenset({"operation", "format", "preallocation", "cluster_size", "image", "size"})
    reading, writing = frozenset({"read"}), frozenset({"write"})

    operation: Literal["write", "read"] = Field(
        "write",
        description="what a transaction does; the image that is read was written from its start to its end",
    )
    image: SomeSize = Field("1g", description="size of the virtual disk")
    size: SomeSize = Field("4k", description="size of a write or read; a multiple of 512")
    batch: int = Field(1, ge=1, le=1_000_000, description="writes before a flush")
    cluster_size: SomeSize | None = Field(
        None, description="qcow2: unit of allocation, a power of two from 4k to 2m; QEMU's default is 64k"
    )
    format: Literal["raw", "qcow2"] = setting(
        "raw",
        "raw: the file has the disk's blocks; qcow2: clusters, allocated when they are first written, and their tables",
    )
    preallocation: Literal["off", "metadata", "falloc", "full"] = setting(
        "off",
        "off: a sparse file; metadata: the tables of qcow2, for raw the same as off; falloc: space, by "
        "posix_fallocate(3); full: zeros are written",
    )
    cache_mode: Literal["writeback", "none", "writethrough", "directsync", "unsafe"] = setting(
        "writeback",
        "of QEMU: through the host's page cache, or (none) with O_DIRECT; both sync the file when the guest "
        "flushes. writethrough, directsync: the same with a sync after each write. unsafe: no sync at all",
    )

    @property
    def slots(self) -> int:
        return parse_size(self.image) // self.size_bytes

    @property
    def direct(self) -> bool:
        return self.cache_mode in {"none", "directsync"}

    @property
    def guessed_rate(self) -> float:
        return 8_000.0 if self.reads else 3000.0 / (1 + self.batch / 10)

    @property
    def prepare_s(self) -> float:
        written = self.reads or self.preallocation == "full"
        return super().prepare_s + (parse_size(self.image) / _FILLED_PER_S if written else 0)

    @property
    def space_bytes(self) -> int:
        return parse_size(self.image) + _METADATA_BYTES

    def scaled(self, factor: float) -> scaling.Changes:
        image = scaling.size(self.image, factor, least_bytes=64 * self.size_bytes, unit_bytes=SECTOR_BYTES)
        return {**super().scaled(factor), "image": image}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        most = min(MOST_BYTES, parse_size(self.image))
        if self.size_bytes % SECTOR_BYTES or self.size_bytes > most:
            raise ValueError(f"'size' must be a multiple of {SECTOR_BYTES}, and at most {shown_size(most)}")
        if self.format == "raw" and self.cluster_size is not None:
            raise ValueError("'cluster_size' is not supported by format: raw")
        if self.cluster_size is not None and parse_size(self.cluster_size) not in _CLUSTERS:
            raise ValueError("'cluster_size' must be a power of two from 4k to 2m")
        if self.reads and self.batch != 1:
            raise ValueError("'batch' is not supported by operation: read")
        return self


class VmImage(DurableApplication):
    """What was written before a flush is there, if the cache mode does not ignore flushes."""

    summary = "image of a virtual machine's disk (raw, qcow2): random writes and reads by QEMU"
    tools = (qemu.IMG, qemu.IO)
    abilities = frozenset({Ability.CHOWN})
    Load = VmImageLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises. A sector may be old, new or zeros until a flush, but nothing else."""
        flushed = settings["cache_mode"] != "unsafe"
        kept = promised(
            "qemu(1), -drive cache=", flushed,
            "data is on the disk after a flush of the guest; writethrough and directsync: after each write",
            "unsafe: flushes of the guest are ignored",
        )  # fmt: skip
        return Contract(
            durable=kept,
            consistent=kept if settings["format"] == "qcow2" and not flushed else promises.unexposed,
        )

    def prepare(self, drive: DriveRequest) -> None:
        """Create the image; that which is read has all its blocks."""
        load = drive.load
        clusters = parse_size(load.cluster_size) if load.cluster_size else None
        slots = load.slots
        places = Places(
            directory=drive.directory, format=load.format, size=load.size_bytes, slots=slots,
            filled=slots if load.reads else 0, seed=drive.seed,
        )  # fmt: skip
        places.made(load.preallocation, clusters)
        each = max(1, _FILLED_AT_ONCE // places.size)
        with qemu.opened(drive.directory, load.format, "writeback") as image:
            for first in range(1, places.filled + 1, each):
                numbers = range(first, min(first + each, places.filled + 1))
                data = b"".join(block_of(number, drive.contents(number)) for number in numbers)
                image.write((first - 1) * places.size, data)
            image.flush()

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create an image so small that some of the few transactions of a crash test write over others."""
        places = Places(
            directory=directory, format=settings["format"], size=16 << 10, slots=32, filled=0, seed=1
        )
        places.made(settings["preallocation"])

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Open the image as a virtual machine does that is running. A transaction is a write and a flush."""
        places = Places.of(directory)
        with qemu.opened(directory, settings["format"], settings["cache_mode"]) as image:

            def commit(number: int, contents: bytes) -> None:
                image.write(places.offset(number), block_of(number, contents))
                image.flush()

            yield commit

    def drive(self, drive: DriveRequest) -> Driven:
        load, places = drive.load, Places.of(drive.directory)
        random = drive.random()
        with qemu.opened(drive.directory, load.format, load.cache_mode) as image:

            def read(number: int) -> None:  # noqa: ARG001
                image.read(random.randrange(places.slots) * places.size, places.size)

            def write(number: int) -> None:
                first = places.filled + 1 + (number - 1) * load.batch
                for each in range(first, first + load.batch):
                    image.write(places.offset(each), block_of(each, drive.contents(each)))
                image.flush()

            driven = repeated(drive, read if load.reads else write)
        last = places.filled + (driven.count * load.batch if load.writes else 0)
        return self.verified(drive, driven, range(1, last + 1), "writes")

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Check the image, and read all that is written in it."""
        try:
            places = Places.of(directory)
            problem = untrusted.image_problem(directory / qemu.IMAGE, places.format)
            if problem is None and places.format == "qcow2":
                problem = qemu.bad_image(directory)
            if problem is not None:
                return RecoveredData(problem=problem)
            return RecoveredData(transactions=frozenset(places.written(contents)))
        except (ValueError, DamagedError) as error:
            return RecoveredData(problem=f"damaged: {error}")


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


@lru_cache(4096)  # contents come from a pool, and cutting them takes longer than all else between two writes
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
