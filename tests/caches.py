"""Makes tests fail that drop the machine's caches without permission.

Dropped caches disturb the trials of all other tests: their next reads come from the disk. Tests measure with ``cache:
warm``. Tests that must drop caches are marked ``alone``.
"""

from __future__ import annotations

import sys

from fslab.system.cache import DROP_CACHES

_may_drop = True


def allow(allowed: bool) -> None:
    """Allow or forbid this process to drop the caches."""
    global _may_drop  # noqa: PLW0603 - an audit hook belongs to the whole process
    _may_drop = allowed


def allowed() -> bool:
    """Return whether this process may drop the caches now."""
    return _may_drop


def guard() -> None:
    """Install an audit hook that raises AssertionError if drop_caches is opened without permission.

    Audit hooks cannot be removed: this lasts until the process ends.
    """
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and not _may_drop and str(arguments[0]) == str(DROP_CACHES):
        raise AssertionError(
            "drops the machine's caches: write 'cache: warm' in the study, or mark it 'alone'"
        )
