"""A recorder of cameras: streams that are appended to segments for ever, and whose oldest segments are deleted.

Pieces go to the streams in turn: cameras of one bit rate deliver in turn, whether a recorder has one process for each
(ffmpeg's segments) or one for all. Threads that write as fast as they can would let single streams run ahead, and lay
out longer runs of one stream than a recorder does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from fslab import scaling
from fslab.applications import (
    Contract,
    Driven,
    DriveRequest,
    DurableApplication,
    Records,
    RecoveredData,
    Settings,
    has_other_bytes,
    setting,
)
from fslab.storage.crash_promises import Promise, Promises
from fslab.system.files import write_all
from fslab.units import SomeSize

FILE = "store"  # the numbers of a store: nothing else tells ``look`` what is kept
_DISK_BYTES_PER_S = 150e6  # a hard disk's, for the plan
_LEAST_PIECES, _MOST_PIECES = 4, 10_000_000


class RecorderLoad(Records):
    """A transaction is one write(2) of a piece to the segment of the next stream, with the sync that `sync` asks for.
    The first piece of a segment makes it, and deletes the oldest if there are more than `keep`. Afterwards the kept
    segments, and no others, must be as written. Without a sync, a store smaller than the dirty pages that the kernel
    allows is measured in memory."""

    sync: Literal["no", "segment", "interval", "each"] = setting(
        "no",
        "fsync(2): never, as ffmpeg's segments; of each segment when it is full; also within a segment, after every "
        "`interval` pieces; or after each piece",
    )
    size: SomeSize = Field("256k", description="size of a piece")
    streams: int = Field(8, ge=1, le=1000, description="number of cameras")
    segment: int = Field(64, ge=1, le=100_000, description="pieces of a segment; 64 of 256k are 16 MiB")
    keep: int = Field(16, ge=2, le=100_000, description="segments that are kept of each stream")
    interval: int = Field(8, ge=1, le=100_000, description="pieces until a sync, with `sync: interval`")

    laid_out = frozenset({"sync", "streams", "segment", "keep", "interval"})

    @property
    def guessed_rate(self) -> float:
        return _DISK_BYTES_PER_S / max(1, self.size_bytes)

    @property
    def space_bytes(self) -> int:
        """What is kept, and the new segment of each stream; less if so much is not written."""
        pieces = self.streams * (self.keep + 1) * self.segment
        return self.size_bytes * min(pieces, self.transactions or pieces)

    def scaled(self, factor: float) -> scaling.Changes:
        """Scale the segments with the work, so that as many are deleted."""
        segment = scaling.count(self.segment, factor, least=_LEAST_PIECES)
        return {**super().scaled(factor), "segment": segment}


class Recorder(DurableApplication):
    """What was synced before a later piece was written is there if that piece is."""

    summary = "recorder of cameras: streams appended for ever, the oldest deleted"
    Load = RecorderLoad

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promises. fsync(2) of a segment must also keep its name: a recorder syncs no directory."""
        durable = {"no": _UNSYNCED, "each": promises.names}.get(settings["sync"], _LATER)
        named = settings["sync"] == "no" or promises.names.given
        return Contract(durable=durable, consistent=promises.unexposed if named else promises.names)

    def prepare(self, drive: DriveRequest) -> None:
        load = drive.load
        every = _every(load.sync, load.segment, load.interval)
        _Store.made(drive.directory, streams=load.streams, segment=load.segment, keep=load.keep, every=every)

    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Make a store that deletes segments within the few transactions of a crash test."""
        _Store.made(directory, streams=2, segment=4, keep=2, every=_every(settings["sync"], 4, 2))

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:  # noqa: ARG002
        """Yield a function that appends a piece. One segment of each stream is open."""
        store = _Store.of(directory)
        files: dict[int, FileIO] = {}

        def append(number: int, contents: bytes) -> None:
            stream, segment, piece = store.place(number)
            file = files[stream] = files[stream] if piece else store.begin(stream, segment)
            write_all(file.fileno(), contents)
            full = piece + 1 == store.segment
            if store.every and (full or (piece + 1) % store.every == 0):
                os.fsync(file.fileno())
            if full:
                files.pop(stream).close()

        try:
            yield append
        finally:
            for file in files.values():
                file.close()

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Read the segments that are kept. Of those that are not, a power cut may have brought some back."""
        there: set[int] = set()
        begun = 0
        try:
            store = _Store.of(directory)
            for stream in range(store.streams):
                newest = max(store.segments(stream), default=-1)
                found = {*store.read(stream, newest, contents)}
                there |= found
                begun = max(begun, store.numbers(stream, newest)[0], max(found, default=0))
        except ValueError as error:
            return RecoveredData(problem=f"damaged: {error}")
        lost = min((number for number in store.synced(begun) if number not in there), default=None)
        told = None if lost is None else f"piece {lost} was synced before piece {begun} began, and is missing"
        return RecoveredData(transactions=frozenset(there), problem=told)

    def drive(self, drive: DriveRequest) -> Driven:
        """Append pieces, and check them; then also that the oldest segments were deleted, and no others."""
        driven = super().drive(drive)
        return driven.checked(driven.problem or _Store.of(drive.directory).other_segments(driven.count))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Store:
    """Which piece is where. ``segment``: pieces of a segment; ``every``: pieces from one sync to the next, 0: none."""

    directory: Path
    streams: int
    segment: int
    keep: int
    every: int

    @classmethod
    def made(cls, directory: Path, *, streams: int, segment: int, keep: int, every: int) -> None:
        (directory / FILE).write_text(f"{streams} {segment} {keep} {every}\n")
        for stream in range(streams):
            (directory / str(stream)).mkdir()

    @classmethod
    def of(cls, directory: Path) -> Self:
        """Read the numbers of a store. ValueError if they are none."""
        streams, segment, keep, every = map(int, (directory / FILE).read_text("ascii").split())
        if min(streams, segment, keep) < 1 or every < 0:
            raise ValueError(f"invalid numbers in '{FILE}'")
        return cls(directory=directory, streams=streams, segment=segment, keep=keep, every=every)

    def place(self, number: int) -> tuple[int, int, int]:
        """Return the stream of a piece, its segment, and its place in that."""
        return (number - 1) % self.streams, *divmod((number - 1) // self.streams, self.segment)

    def numbers(self, stream: int, segment: int) -> range:
        """Return the numbers of a segment's pieces."""
        first = segment * self.segment * self.streams + stream + 1
        return range(first, first + self.segment * self.streams, self.streams)

    def kept(self, newest: int) -> range:
        return range(max(0, newest - self.keep + 1), newest + 1)

    def begin(self, stream: int, segment: int) -> FileIO:
        """Make a segment, and delete the one that is then no longer kept."""
        file = FileIO(self._path(stream, segment), "x")
        if segment >= self.keep:
            self._path(stream, segment - self.keep).unlink()
        return file

    def read(self, stream: int, newest: int, contents: Callable[[int], bytes]) -> Iterator[int]:
        """Yield the pieces of a stream that exist, or were deleted. ValueError for bytes that were never written."""
        kept = self.kept(newest)
        for segment in range(newest + 1):
            path, numbers = self._path(stream, segment), self.numbers(stream, segment)
            # The next segment, whose name is lost, may already have replaced the oldest one.
            if segment not in kept or (segment == newest - self.keep + 1 and not path.exists()):
                yield from numbers
            elif path.exists():
                yield from _pieces(path, numbers, contents)

    def synced(self, begun: int) -> Iterator[int]:
        """Yield the pieces that were synced before the piece ``begun`` began."""
        for stream in range(self.streams if self.every else 0):
            before = range(stream + 1, begun, self.streams)
            full, more = divmod(len(before), self.segment)
            yield from before[: full * self.segment + more // self.every * self.every]

    def other_segments(self, count: int) -> str | None:
        """Return which stream has other segments than it should have after ``count`` pieces; None if none has."""
        for stream in range(self.streams):
            newest = (len(range(stream + 1, count + 1, self.streams)) - 1) // self.segment
            found, kept = self.segments(stream), set(self.kept(newest))
            if found != kept:
                return f"stream {stream} has other segments than {min(kept)} to {max(kept)}"
        return None

    def segments(self, stream: int) -> set[int]:
        found = {int(path.name) for path in (self.directory / str(stream)).iterdir()}
        if found and (max(found) + 1) * self.segment > _MOST_PIECES:  # of a store from another machine
            raise ValueError(f"a segment with the number {max(found)}")
        return found

    def _path(self, stream: int, segment: int) -> Path:
        return self.directory / str(stream) / f"{segment:06}"


def _pieces(path: Path, numbers: Iterable[int], contents: Callable[[int], bytes]) -> Iterator[int]:
    """Yield the pieces of a segment that are as written. Of others, a part or zeros may be there, but nothing else."""
    with path.open("rb") as file:
        for number in numbers:
            written = contents(number)
            found = file.read(len(written))
            if found == written:
                yield number
            elif has_other_bytes(found, written):
                raise ValueError(f"piece {number} has other contents than were written")
        if file.read(1):
            raise ValueError(f"{path.name} of stream {path.parent.name} is longer than a segment")


def _every(sync: str, segment: int, interval: int) -> int:
    """Return the pieces of a segment from one sync to the next; 0: none is synced."""
    return {"no": 0, "segment": segment, "interval": interval, "each": 1}[sync]


_UNSYNCED = Promise(given=False, source="write(2): a successful return does not make the data durable")
_LATER = Promise(given=False, source="fsync(2): what is written after it is not yet on the disk")
