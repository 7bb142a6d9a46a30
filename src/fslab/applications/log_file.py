"""A log file, appended to and never synced: how much data a power cut loses, and how old that data is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fslab.applications import Application, Contract, RecoveredData, Settings
from fslab.storage.promises import Promise, Promises
from fslab.units import parse_duration

FILE = "log"
_WRITE_S = 0.002  # an append, and the marks that record its start and end


class LogFile(Application):
    """A transaction is one write(2) at the end of the file, then a pause."""

    summary = "a log file without fsync: how much of it is lost in a power cut, and how old that is"
    settings = {"interval": ("0s", "10ms", "100ms", "1s")}

    def contract(self, settings: Settings, promises: Promises) -> Contract:  # noqa: ARG002
        return Contract(durable=_NOTHING, consistent=_NOTHING)

    def lay_out(self, directory: Path, settings: Settings) -> None:  # noqa: ARG002
        (directory / FILE).touch()

    @contextmanager
    def opened(self, directory: Path, settings: Settings) -> Iterator[Callable[[int, bytes], None]]:
        """Yield a function that appends to one unbuffered file, then pauses."""
        interval_s = parse_duration(settings["interval"])
        with (directory / FILE).open("ab", buffering=0) as file:

            def append(number: int, contents: bytes) -> None:  # noqa: ARG001
                file.write(contents)
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


_NOTHING = Promise(
    given=False, source="write(2): a successful return does not make the data durable; fsync(2) does"
)
