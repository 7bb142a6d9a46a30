"""The disk of a virtual machine in a file: an image that QEMU writes to at random places, and flushes when asked to.

The requests are those of qemu-io(1), one after the other, without a guest. ``_image_places``: what is where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
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
    repeated,
    setting,
)
from fslab.applications import _qemu as qemu
from fslab.applications import _untrusted_data as untrusted
from fslab.applications._image_places import MOST_BYTES, SECTOR_BYTES, Places, block_of
from fslab.applications._servers import DamagedError
from fslab.storage.crash_promises import Promise, Promises
from fslab.units import SomeSize, parse_size, shown_size

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
    def filled(self) -> bool:
        return self.operation == "read"

    @property
    def reads(self) -> bool:
        return self.operation == "read"

    @property
    def writes(self) -> bool:
        return self.operation == "write"

    @property
    def direct(self) -> bool:
        return self.cache_mode in {"none", "directsync"}

    @property
    def guessed_rate(self) -> float:
        return 8_000.0 if self.reads else 3000.0 / (1 + self.batch / 10)

    @property
    def prepare_s(self) -> float:
        written = self.filled or self.preallocation == "full"
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
    Load = VmImageLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises. A sector may be old, new or zeros until a flush, but nothing else."""
        flushed = settings["cache_mode"] != "unsafe"
        kept = Promise(given=flushed, source=f"{_CACHE}: {_FLUSHED if flushed else _UNSAFE}")
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
            filled=slots if load.filled else 0, seed=drive.seed,
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
        random = Random(drive.seed)  # noqa: S311 - to be repeated
        with qemu.opened(drive.directory, load.format, load.cache_mode) as image:

            def read(number: int) -> None:  # noqa: ARG001
                image.read(random.randrange(places.slots) * places.size, places.size)

            def write(number: int) -> None:
                first = places.filled + 1 + (number - 1) * load.batch
                for each in range(first, first + load.batch):
                    image.write(places.offset(each), block_of(each, drive.contents(each)))
                image.flush()

            driven = repeated(drive, read if load.reads else write)
        seen = self.look(drive.directory, drive.contents)
        wanted = places.filled + (driven.count * load.batch if load.writes else 0)
        there = len(seen.transactions)
        told = None if there == wanted else f"{there} of {wanted} writes are there"
        return driven.checked(seen.problem or told)

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


_CACHE = "qemu(1), -drive cache="
_FLUSHED = "data is on the disk after a flush of the guest; writethrough and directsync: after each write"
_UNSAFE = "unsafe: flushes of the guest are ignored"
