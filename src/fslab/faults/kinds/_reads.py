"""Read files while a place on the disk that the read needs has a fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from fslab.faults import FILES, Attempt
from fslab.faults.ground import Ground, error_of


def attempts(
    ground: Ground, effect: str, *, data: bool, undo: bool = False, **more: Any
) -> Iterator[Attempt]:
    """Read each file with a cold cache and a fault, at its data or at one place of the metadata that leads to it.

    ``undo``: restore the disk after each attempt, because the fault changes the disk permanently.
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
