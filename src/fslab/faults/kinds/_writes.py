"""Write and sync new files while the disk has a fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from fslab.faults import FILES, Attempt
from fslab.faults.ground import Ground, error_of

NEW = "new"
GENERATION = 2


def new_paths(ground: Ground) -> list[Path]:
    """Return the path of one new file beside each file."""
    return [ground.path(number).with_name(NEW) for number in range(FILES)]


def attempt(ground: Ground, path: Path) -> Attempt:
    """Write the new generation and sync it. After an error sync once more, as a program that retries does."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(descriptor, ground.bytes_of(path, GENERATION))
        os.fsync(descriptor)
    except OSError as error:
        later = descriptor >= 0 and error_of(lambda: os.fsync(descriptor)) is None
        text = os.strerror(error.errno or 0)
        return Attempt(path=ground.relative(path), error=text, now=GENERATION, later=later)
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return Attempt(path=ground.relative(path), now=GENERATION)


def attempts(ground: Ground, arm: Callable[[], int]) -> Iterator[Attempt]:
    """Arm the fault again for each new file, and attempt to write it. Yield only attempts that met the fault."""
    for path in new_paths(ground):
        fault = arm()
        made = attempt(ground, path)
        if ground.struck(fault):
            yield made
        ground.disarm()
