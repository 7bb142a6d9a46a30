"""A log: records appended to one file or to segments, synced after each or never.

With ``sync: fdatasync`` it is the write-ahead log of a database. With ``segment: 64m``, too, it is that of etcd:
preallocated files of that size, cut off when they are full (etcd-io/etcd, server/storage/wal/wal.go, ``cut``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path
from typing import Literal

from fslab.applications import (
    Contract,
    DurableApplication,
    Records,
    RecoveredData,
    Settings,
    setting,
)
from fslab.storage.crash_promises import Promise, Promises
from fslab.system import files, mounts
from fslab.units import parse_duration, parse_size

FILE = "log"  # the first one. The names of later segments end with the number of their first record
_SEGMENT = re.compile(rf"{FILE}(?:\.\d+)?", re.ASCII)
_UNSYNCED = 20  # times as many records as a run that waits for the disk


class LogFileLoad(Records):
    """A transaction is one write(2) at the end of the log, and fdatasync(2) if `sync` says so. With `interval`, the
    latency, without the pause, is the first figure: the rate is what it asks for, also on a slower disk. Afterwards all
    records must be as written. The log of etcd: `{tool: log-file, sync: fdatasync, segment: 64m}`, with a `size` of
    about 2 KiB; its metric is `etcd_disk_wal_fsync_duration_seconds`, its documentation demands a p99 below 10 ms."""

    sync: Literal["none", "fdatasync"] = setting(
        "none", "what makes a record durable: fdatasync(2) after each, or nothing"
    )
    segment: Literal["none", "16k", "16m", "64m"] = setting(
        "none",
        "write to preallocated files of this size, one after the other: a full one is truncated and synced, and the "
        "next one is made, renamed and synced with its directory; none: one file, that grows",
    )
    interval: Literal["0s", "10ms", "100ms", "1s"] = setting("0s", "the pause after each record")

    @property
    def is_held_back(self) -> bool:
        return parse_duration(self.interval) > 0

    @property
    def guessed_rate(self) -> float:
        return 1 / max(1 / super().guessed_rate, parse_duration(self.interval))

    @property
    def space_bytes(self) -> int:
        written = self.most * self.size_bytes * (1 if self.sync == "fdatasync" else _UNSYNCED)
        return written + 2 * _segment_bytes(self.segment)


class LogFile(DurableApplication):
    """A record that was not synced may go; one that was may not."""

    summary = "log of a database or of etcd: appended records, with or without fdatasync"
    transaction_s = 0.002  # an append, and the marks that record its start and end
    Load = LogFileLoad
    continues = "the pauses of a log file go by the clock"

    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return the promise of fdatasync(2), if each record is synced. A new segment needs that of its directory."""
        durable = _SYNCED if settings["segment"] == "none" else promises.directories
        return Contract(durable=durable if settings["sync"] == "fdatasync" else _NOTHING, consistent=_NOTHING)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        (directory / FILE).touch()

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        with closing(_Log(directory, settings)) as log:
            yield log.append

    def pause_s(self, settings: Settings) -> float:
        return parse_duration(settings["interval"])

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Look for each record at the offset where it was written."""
        there: set[int] = set()
        for path in (each for each in directory.iterdir() if _SEGMENT.fullmatch(each.name)):
            found = path.read_bytes()
            number = int(path.suffix[1:] or 1)
            start, end = 0, len(found.rstrip(b"\0"))  # the rest was preallocated, or its data is lost
            while start < end:
                record = contents(number)
                if found.startswith(record, start):
                    there.add(number)
                number, start = number + 1, start + len(record)
        return RecoveredData(transactions=frozenset(there))


class _Log:
    """The segment that is written to, opened without a buffer."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory, self._synced = directory, settings["sync"] == "fdatasync"
        self._segment_bytes = _segment_bytes(settings["segment"])
        self._file = self._opened(directory / FILE)

    def append(self, number: int, record: bytes) -> None:
        """Write a record, and sync it. It can fill a segment and more: then that is cut, as etcd does."""
        files.write_all(self._file.fileno(), record)
        if self._segment_bytes and self._file.tell() >= self._segment_bytes:
            self._cut(number + 1)
        else:
            self._sync()

    def close(self) -> None:
        self._file.close()

    def _cut(self, first: int) -> None:
        """Begin the segment that has the record ``first``, and its number in the name."""
        self._file.truncate()
        self._sync()
        self._file.close()
        new = self._directory / f"{FILE}.new"
        self._file = self._opened(new)
        self._sync()
        new.rename(self._directory / f"{FILE}.{first:08}")
        if self._synced:
            mounts.sync(self._directory)

    def _opened(self, path: Path) -> FileIO:
        path.touch()
        file = FileIO(path, "r+")
        if self._segment_bytes:
            os.posix_fallocate(file.fileno(), 0, self._segment_bytes)
        return file

    def _sync(self) -> None:
        if self._synced:
            os.fdatasync(self._file.fileno())


def _segment_bytes(segment: str) -> int:
    return 0 if segment == "none" else parse_size(segment)


_SYNCED = Promise(given=True, source="fdatasync(2): the data and the size of the file are on the disk")
_NOTHING = Promise(
    given=False, source="write(2): a successful return does not make the data durable; fsync(2) does"
)
