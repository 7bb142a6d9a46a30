"""Turns the errors of a database, and of contents that fslab did not write, into StoreErrors."""

import errno
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)

from fslab.errors import StoreDeniedError, StoreError, StoreLostError
from fslab.names import visible
from fslab.system import signals, untrusted_files

_CHUNK_BYTES = 1 << 20
_OF_DISKS = {errno.EIO, errno.ENXIO}
_READING_LIMIT_S = 30.0
STATEMENT_LIMIT_S = 600.0  # of reading: a view in a hostile store can be endless
# What reading raises for content that fslab did not write.
WRONG_CONTENT = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, zlib.error)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn database failures into StoreErrors with the place; pass on all other errors."""
    try:
        with signals.kept():
            yield
    except DBAPIError as error:
        if why := _unreadable(place, str(error.orig)):
            raise StoreLostError(f"cannot be read: {why}", where=place) from error
        said = f"message of the database: {' '.join(str(error.orig).split())}"
        raise _kind(error)(said, where=place, hint=_hint(str(error.orig))) from error
    except StatementError as error:
        raise StoreError(f"cannot store this value: {error.orig}", where=place) from error
    except RecursionError as error:
        raise StoreError("cannot store this value: it is nested too deeply", where=place) from error
    except SQLAlchemyError as error:
        raise StoreError(str(error), where=place) from error


@contextmanager
def checked_contents(place: str, hint: str = "give another store with --store") -> Iterator[None]:
    """Raise StoreError for content that is no campaign or trial of fslab: another user may have written the store."""
    try:
        yield
    except WRONG_CONTENT as error:
        what = str(error) or type(error).__name__
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        what = f"contains data that fslab did not write: {what[:300]}"
        # On one line: it could look like a hint of fslab.
        raise StoreError(visible(what), where=visible(place), hint=visible(hint)) from error


def _unreadable(place: str, said: str) -> str | None:
    """Return why the disk does not return an SQLite store, if it does not; None also if it takes long.

    SQLite reports a read that fails with EIO as a malformed database (SQLITE_IOERR_CORRUPTFS, since 3.34).
    """
    if "malformed" not in said:
        return None
    deadline = time.monotonic() + _READING_LIMIT_S
    for name in (place, f"{place}-wal"):
        try:
            with os.fdopen(untrusted_files.open_regular(os.path.realpath(name)), "rb", buffering=0) as file:
                while file.read(_CHUNK_BYTES) and time.monotonic() < deadline:
                    pass
        except OSError as error:
            if error.errno in _OF_DISKS:
                return error.strerror
    return None


def _kind(error: DBAPIError) -> type[StoreError]:
    if getattr(error.orig, "sqlstate", None) == _DENIED:
        return StoreDeniedError
    return StoreLostError if _passes(error) else StoreError


def _passes(error: DBAPIError) -> bool:
    """Return whether the cause is a condition of the database (PEP 249, OperationalError), not the statement."""
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return error.connection_invalidated
    said = str(error.orig)
    return not any(words in said for words in _LASTING)


def _hint(said: str) -> str | None:
    locked = "another process has locked the store for too long: end it, or try again later"
    endless = f"reading ends after {STATEMENT_LIMIT_S:g} s: if others could write this store, do not use it"
    hints = {
        "disk is full": "free space on the disk of the store",
        "not a database": "this file is not an fslab store; give another path with --store",
        "locked": locked,
        "lock timeout": locked,
        "readonly": "its owner is another user, or it is read-only: run fslab as its owner, or copy it elsewhere",
        "interrupted": endless,
        "statement timeout": endless,
        "permission denied": _DENIED_HINT,
        "already exists": "another program uses this database: create one for fslab (CREATE DATABASE)",
        "unable to open": "this user cannot open the store or its directory: change permissions, or use --store",
    }
    return next((hint for words, hint in hints.items() if words in said), None)


_DENIED_HINT = (
    "the owner of the database lets a role read or measure: fslab store grant; only the owner starts, schedules, "
    "cancels and deletes"
)
_DENIED = "42501"  # PostgreSQL's insufficient_privilege

# Errors that a retry does not solve, but that are also reported as OperationalError.
_LASTING = (
    "readonly", "no such", "not a database", "has no column", "syntax error", "interrupted", "statement timeout",
)  # fmt: skip
