"""A log file: records appended to one file, synced after each or never. A power cut takes what was not synced.

With ``sync: fdatasync`` it is the write-ahead log of a database or of a replicated store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from fslab.applications import Application, Contract, Records, RecoveredData, Settings, setting
from fslab.storage.promises import Promise, Promises
from fslab.units import parse_duration

FILE = "log"
_UNSYNCED = 20  # times as many records as a run that waits for the disk
_WRITE_S = 0.002  # an append, and the marks that record its start and end


class LogFileLoad(Records):
    """A transaction is one write(2) at the end of the file, then fdatasync(2) if `sync` says so, then a pause. The
    latency includes the pause. Afterwards all records are read, and must be as written."""

    sync: Literal["none", "fdatasync"] = setting(
        "none", "what makes a record durable: fdatasync(2) after each, or nothing"
    )
    interval: Literal["0s", "10ms", "100ms", "1s"] = setting("0s", "the pause after each record")

    @property
    def guessed_rate(self) -> float:
        return 1 / max(1 / super().guessed_rate, parse_duration(self.interval))

    @property
    def space_bytes(self) -> int:
        return self.most * self.size_bytes * (1 if self.sync == "fdatasync" else _UNSYNCED)


class LogFile(Application):
    """A record that was not synced may go; one that was may not."""

    summary = "log file: appended records, with or without fdatasync; how many a power cut takes, and how old they are"
    Load = LogFileLoad
    continues = "the pauses of a log file go by the clock"

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        """Return the promise of fdatasync(2), if each record is synced."""
        return Contract(durable=_SYNCED if settings["sync"] == "fdatasync" else _NOTHING, consistent=_NOTHING)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        (directory / FILE).touch()

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Yield a function that appends to one unbuffered file, syncs it if asked to, then pauses."""
        synced = settings["sync"] == "fdatasync"
        interval_s = parse_duration(settings["interval"])
        with (directory / FILE).open("ab", buffering=0) as file:

            def append(number: int, contents: bytes) -> None:  # noqa: ARG001
                file.write(contents)
                if synced:
                    os.fdatasync(file.fileno())
                time.sleep(interval_s)

            yield append

    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Look for each record at the offset where it was written."""
        try:
            found = (directory / FILE).read_bytes()
        except OSError:
            return RecoveredData()
        there: set[int] = set()
        number, start = 1, 0
        while start < len(found):
            record = contents(number)
            if found.startswith(record, start):
                there.add(number)
            number, start = number + 1, start + len(record)
        return RecoveredData(transactions=frozenset(there))

    def seconds_each(self, settings: Settings) -> float:
        return _WRITE_S + parse_duration(settings["interval"])


_SYNCED = Promise(given=True, source="fdatasync(2): the data and the size of the file are on the disk")
_NOTHING = Promise(
    given=False, source="write(2): a successful return does not make the data durable; fsync(2) does"
)
