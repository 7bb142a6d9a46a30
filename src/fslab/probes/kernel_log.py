"""Kernel messages logged during a trial; ``fslab.validity`` decides which of them mean a problem.

Reads ``/dev/kmsg`` from its start without removing records (Documentation/ABI/testing/dev-kmsg).
If the user may not read it, this probe finds nothing.
"""

import os
import re
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work

_RECORD = re.compile(r"^\d+,(\d+),\d+,[^;]*;(.*)$")
_RECORD_BYTES = 8192  # longest record: PRINTKRB_RECORD_MAX is 1024 before 6.5, PRINTK_MESSAGE_MAX 2048 since


class KernelLog(Probe):
    """Lines logged between the snapshot before the run and the one after everything was flushed.

    The log stays open, so that only the first snapshot of a process reads all of it; on some machines it has tens of
    thousands of lines."""

    summary = "kernel messages during the trial"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.FLUSHED)
    source: ClassVar[Path] = Path("/dev/kmsg")
    _descriptor: int | None = None

    def snapshot(self, target: Target) -> Snapshot:  # noqa: ARG002
        """Return the records since the last snapshot; the first snapshot returns all records in the log.

        This takes some 10 µs, for the first snapshot about 1 ms. The records are parsed later, to take no time from the
        run. ``log`` is None if the log may not be read.
        """
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self.source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                return {"log": None}
            weakref.finalize(self, os.close, self._descriptor)
        return {"log": b"".join(_chunks(self._descriptor))}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return the texts of new records, possibly none. Leave ``kernel_log`` out if the log may not be read."""
        before, after = (taken[moment]["log"] for moment in self.moments)
        if before is None or after is None:
            return ProbeFinding(values={})
        last = max((number for number, _ in _records(before)), default=-1)
        return ProbeFinding(
            values={}, texts={"kernel_log": tuple(text for number, text in _records(after) if number > last)}
        )


def _records(log: bytes) -> list[tuple[int, str]]:
    """Return the numbered records, the oldest first."""
    # Lines that start with a blank continue a record with its key=value pairs.
    matches = (_RECORD.match(line) for line in log.decode("utf-8", "replace").splitlines())
    return [(int(match[1]), match[2]) for match in matches if match]


def _chunks(descriptor: int) -> list[bytes]:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(descriptor, _RECORD_BYTES)
        except BrokenPipeError:
            continue  # the record was overwritten; the next read returns the oldest record left
        except OSError:
            return chunks  # EAGAIN: no more
        if not chunk:
            return chunks
        chunks.append(chunk)
