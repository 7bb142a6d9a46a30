"""Files that are read while a place on the disk is at fault, which their reading needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from fslab.faults import FILES, Attempt
from fslab.faults.ground import Ground, error_of


def attempts(
    ground: Ground, effect: str, *, data: bool, undo: bool = False, **more: Any
) -> Iterator[Attempt]:
    """Each file from a cold cache, with the fault at its data, or at one of the places of metadata that lead to it.

    ``undo``: the disk is restored after each, because the fault stays on it.
    """
    for number in range(FILES):
        with ground.undone() if undo else nullcontext():
            attempt = _attempt(ground, number, effect, data=data, undo=undo, **more)
        if attempt is not None:
            yield attempt


def _attempt(
    ground: Ground, number: int, effect: str, *, data: bool, undo: bool, **more: Any
) -> Attempt | None:
    path, seen = ground.path(number), [True]
    ground.remount()
    places = [each for each in ground.requests("read", path.read_bytes) if each.data is data]
    if not places:
        return None
    ground.remount()
    fault = ground.arm(effect, where=places[(ground.seed + number) % len(places)], **more)
    error = error_of(lambda: seen.append(ground.has(path, 1)))
    struck = ground.struck(fault)
    ground.disarm()
    if not struck:
        return None
    return Attempt(path=ground.relative(path), error=error, right=seen[-1], before=1, undone=undo)
