"""Whoever drops the machine's caches spoils the trials of all others, and what they read next comes from the disk.

Tests measure with ``cache: warm``; those that must drop are marked ``alone``, and the others fail if they do.
"""

from __future__ import annotations

import sys

from fslab.system.cache import DROP_CACHES

_may_drop = True


def allow(allowed: bool) -> None:
    """Whether this process may drop the caches from now on."""
    global _may_drop  # noqa: PLW0603 - an audit hook is the process's
    _may_drop = allowed


def allowed() -> bool:
    """Whether the test that runs now may."""
    return _may_drop


def guard() -> None:
    """Refuse in this process, for good, to open the file by which caches are dropped unless that is allowed."""
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and not _may_drop and str(arguments[0]) == str(DROP_CACHES):
        raise AssertionError(
            "drops the machine's caches: write 'cache: warm' in the study, or mark it 'alone'"
        )
