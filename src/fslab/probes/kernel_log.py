"""Errors that the kernel logged during a trial: of file systems, block devices and of the kernel itself.

Reads ``/dev/kmsg`` from its start without taking anything out of it (Documentation/ABI/testing/dev-kmsg).
Where a user may not read it, this probe finds nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from fslab.probes import Finding, Moment, Probe, Snapshot, Target, Work
from fslab.record import Severity, ValidityWarning, WarningKind

SERIOUS = re.compile(
    r"EXT4-fs error|EXT4-fs \([^)]*\): (?:Remounting filesystem read-only|error)|Aborting journal"
    r"|JBD2: .*(?:error|corrupt)"
    r"|XFS \([^)]*\): .*(?:corrupt|I/O error|shut.{0,3}down|Internal error)"
    r"|BTRFS(?: error| critical|: error)|BTRFS warning .*csum failed"
    r"|\bI/O error|critical (?:medium|target|space allocation) error|lost (?:async|sync) page write"
    r"|\bBUG:|kernel BUG at|^WARNING: |\bOops\b|general protection fault|soft lockup"
    r"|blocked for more than \d+ seconds|self-detected stall|Out of memory: Killed",
    re.IGNORECASE,
)
DOUBTFUL = re.compile(
    r"EXT4-fs warning|BTRFS warning|XFS \([^)]*\): .*(?:possible memory allocation deadlock)"
)
_RECORD = re.compile(r"^\d+,(\d+),\d+,[^;]*;(.*)$")
_LOOP = re.compile(r"\bloop\d+\b")
_RECORD_BYTES = 8192  # longest record: PRINTKRB_RECORD_MAX is 1024 before 6.5, PRINTK_MESSAGE_MAX 2048 since
_LINES_SHOWN = 20


class KernelLog(Probe):
    """Lines logged between the snapshot before the run and the one after everything was flushed.

    An error makes the trial invalid; a warning, or an error of a loop device that is not ours (many users
    of a machine may have one), is a reason for doubt.
    """

    summary = "file system, block device and kernel errors in the kernel's log"
    moments: ClassVar[tuple[Moment, ...]] = (Moment.BEFORE, Moment.FLUSHED)
    source: ClassVar[Path] = Path("/dev/kmsg")

    def snapshot(self, target: Target) -> Snapshot:
        """All records that are still in the log, unsifted: that takes some 2 ms, and no time from the run.

        ``records`` is None where the log may not be read.
        """
        return {"records": _records(self.source), "devices": target.devices}

    def derive(self, taken: Mapping[Moment, Snapshot], work: Work) -> Finding:  # noqa: ARG002
        """Warnings of what is new and tells of trouble."""
        before, after = (taken[moment] for moment in self.moments)
        if before["records"] is None or after["records"] is None:
            return Finding(values={})
        last = max((number for number, _ in before["records"]), default=-1)
        new = [text for number, text in after["records"] if number > last]
        errors = [text for text in new if SERIOUS.search(text) and not _elsewhere(text, after["devices"])]
        doubts = [
            text for text in new if text not in errors and (SERIOUS.search(text) or DOUBTFUL.search(text))
        ]
        found = [(Severity.INVALID, errors), (Severity.DOUBT, doubts)]
        return Finding(
            values={}, warnings=tuple(_warning(severity, lines) for severity, lines in found if lines)
        )


def _records(source: Path) -> list[tuple[int, str]] | None:
    """Numbered records that are still in the log, oldest first; None where we may not look."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = b"".join(_chunks(descriptor)).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
    # Lines that start with a blank continue a record with its key=value pairs.
    matches = (_RECORD.match(line) for line in text.splitlines())
    return [(int(match[1]), match[2]) for match in matches if match]


def _chunks(descriptor: int) -> list[bytes]:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(descriptor, _RECORD_BYTES)
        except BrokenPipeError:
            continue  # the record was overwritten meanwhile; the next read goes on with the oldest there is
        except OSError:
            return chunks  # EAGAIN: no more
        if not chunk:
            return chunks
        chunks.append(chunk)


def _elsewhere(text: str, devices: tuple[str, ...]) -> bool:
    named = set(_LOOP.findall(text))
    return bool(named) and bool(devices) and not named & set(devices)


def _warning(severity: Severity, lines: list[str]) -> ValidityWarning:
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    data: dict[str, Any] = {"lines": lines[:_LINES_SHOWN], "count": len(lines)}
    return ValidityWarning(
        kind=WarningKind.KERNEL_ERROR,
        severity=severity,
        message=f"the kernel logged: {lines[0]}{more}",
        hint="look at the kernel log (dmesg) before trusting this device or file system",
        data=data,
    )
