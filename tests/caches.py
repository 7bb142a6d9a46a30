"""Makes tests fail that drop the machine's caches without permission, and holds no memory for the runs of tests.

Dropped caches disturb the trials of all other tests: their next reads come from the disk. Tests measure with ``cache:
warm``. Tests that must drop caches are marked ``alone``. To hold memory for a run takes seconds of CPU time, and only
makes figures more even.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fslab.system import warm_memory
from fslab.system.page_cache import DROP_CACHES

_PATH = str(DROP_CACHES)
_may_drop = True


def allow(allowed: bool) -> None:
    """Allow or forbid this process to drop the caches."""
    global _may_drop  # noqa: PLW0603 - an audit hook belongs to the whole process
    _may_drop = allowed


def allowed() -> bool:
    """Return whether this process may drop the caches now."""
    return _may_drop


def guard() -> None:
    """Install an audit hook that raises AssertionError if drop_caches is opened without permission. Hold no memory.

    Audit hooks cannot be removed: this lasts until the process ends.
    """
    sys.addaudithook(_check)
    setattr(warm_memory, "is_reported", _is_reported)  # noqa: B010 - mypy forbids to assign a function


_known = warm_memory.is_reported


def _is_reported(root: Path | None = None) -> bool:
    """Return what a tree of sysfs says, and that the memory of this machine stays in use."""
    return root is not None and _known(root)


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and not _may_drop and str(arguments[0]) == _PATH:
        raise AssertionError(
            "drops the machine's caches: write 'cache: warm' in the study, or mark it 'alone'"
        )
