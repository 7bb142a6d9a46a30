"""The text that makes a promise: of POSIX, of a manual page, or of the file system's own documentation."""

from __future__ import annotations

from fslab.crash.findings import POSIX, SYNC, WRITE, Kind
from fslab.crash.history import SETUP, History
from fslab.crash.steps import Sync


def source(history: History, step: int, kind: Kind) -> str:
    """Return the source of the promise that a finding of this ``kind`` breaks. ``step`` made the promise.

    POSIX promises data after fsync. Names and extended attributes are promised by the file system only.
    """
    if step == SETUP:
        return SYNC
    made, promises = history.steps[step - 1], history.promises
    if made.sync is Sync.SYNC:
        return SYNC
    if made.operation is not None and made.operation.durable is not None:
        return WRITE
    if kind is Kind.LOST_ATTRIBUTE:
        return promises.attributes.source if promises.attributes.given else POSIX
    if kind not in {Kind.LOST_NAME, Kind.RESURRECTED}:
        return POSIX
    if made.sync is Sync.DIRECTORY:
        return promises.directories.source
    return (promises.names if made.operation is None else promises.removal).source
