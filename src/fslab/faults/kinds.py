"""The faults, and what is done to files while the disk has them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from fslab.faults import FILES, Attempt, fault
from fslab.faults.struck_files import FILE_BYTES, Ground, error_of
from fslab.system import files, mounts
from fslab.system.mounts import sync

_NEW = "new"
_GENERATION = 2
_LARGEST, _LEAST = 64 << 20, 4 << 10
_NAMES = 20_000
_FILLER, _NAMES_DIRECTORY = "filler", "names"


@fault("a bit of a file's data flips")
def bit_rot_data(ground: Ground) -> Iterator[Attempt]:
    """One bit of the file data that is read flips permanently; the disk returns the data with success."""
    return _read_each(ground, "bit-rot", data=True, undo=True, op="read", times=1)


@fault("a bit flips in a file's metadata")
def bit_rot_metadata(ground: Ground) -> Iterator[Attempt]:
    """One bit of an inode, a directory or a tree flips permanently. A second copy is not changed."""
    return _read_each(ground, "bit-rot", data=False, undo=True, op="read", times=1)


@fault("a place with data of a file cannot be read")
def read_error_data(ground: Ground) -> Iterator[Attempt]:
    """A latent sector error: each read of the place fails until it is written again."""
    return _read_each(ground, "latent", data=True)


@fault("a place with a file's metadata cannot be read")
def read_error_metadata(ground: Ground) -> Iterator[Attempt]:
    """A latent sector error in an inode, a directory or a tree. A second copy is not changed."""
    return _read_each(ground, "latent", data=False)


def _read_each(
    ground: Ground, effect: str, *, data: bool, undo: bool = False, **more: Any
) -> Iterator[Attempt]:
    """Read each file with a cold cache and a fault, at its data or at one place of the metadata that leads to it.

    ``undo``: restore the disk after each attempt, because the fault changes the disk permanently.
    """
    for number in range(FILES):
        with ground.undone() if undo else nullcontext():
            attempt = _read(ground, number, effect, data=data, undo=undo, **more)
        if attempt is not None:
            yield attempt


def _read(ground: Ground, number: int, effect: str, *, data: bool, undo: bool, **more: Any) -> Attempt | None:
    path, seen = ground.path(number), [True]
    ground.remount()
    places = [each for each in ground.requests("read", path.read_bytes) if each.data is data]
    if not places:
        return None
    ground.remount()
    armed = ground.arm(effect, where=places[(ground.seed + number) % len(places)], **more)
    error = error_of(lambda: seen.append(ground.has(path, 1)))
    struck = ground.struck(armed)
    ground.disarm()
    if not struck:
        return None
    return Attempt(path=ground.relative(path), error=error, right=seen[-1], before=1, undone=undo)


@fault("one flush of each new file fails")
def flush_error(ground: Ground) -> Iterator[Attempt]:
    """The disk cannot empty its cache: one flush fails for each new file. Writes succeed."""
    return _write_each(ground, lambda: ground.arm("error", op="flush", times=1))


@fault("one write for each new file fails: of data, metadata or journal")
def write_error_once(ground: Ground) -> Iterator[Attempt]:
    """The first write to the disk for a new file fails, as with a short transport error."""
    return _write_each(ground, lambda: ground.arm("error", op="write", times=1))


@fault("all writes fail from one moment on")
def write_error_all(ground: Ground) -> Iterator[Attempt]:
    """Reads still succeed, as on a disk that has become read-only."""
    ground.arm("error", op="write")
    return (_write(ground, path) for path in _new_paths(ground))


def _allocate(ground: Ground) -> None:
    """Create files with allocated space. Without fallocate(2), posix_fallocate(3) writes to them."""
    for path in _new_paths(ground):
        with path.open("w+b", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, FILE_BYTES)


@fault("data of a file cannot be written, metadata can", prepare=_allocate)
def write_error_data(ground: Ground) -> Iterator[Attempt]:
    """Overwrite files whose space is allocated, while writes to the places of their data fail.

    The places are found by writing the files once and then restoring the disk. Shows what fsync returns, and what a
    second fsync returns: Rebello et al., Can Applications Recover from fsync Failures? USENIX ATC 2020.
    """
    paths = _new_paths(ground)

    def write() -> None:
        for path in paths:
            ground.write(path, _GENERATION)
            sync(path)

    with ground.undone():
        places = [each for each in ground.requests("write", write) if each.data]
    for place in places:
        ground.arm("error", op="write", where=place)
    return (_write(ground, path) for path in paths)


def _write_each(ground: Ground, arm: Callable[[], int]) -> Iterator[Attempt]:
    """Arm the fault again for each new file, and attempt to write it. Yield only attempts that met the fault."""
    for path in _new_paths(ground):
        armed = arm()
        made = _write(ground, path)
        if ground.struck(armed):
            yield made
        ground.disarm()


def _write(ground: Ground, path: Path) -> Attempt:
    """Write the new generation and sync it. After an error sync once more, as a program that retries does."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        files.write_all(descriptor, ground.bytes_of(path, _GENERATION))
        os.fsync(descriptor)
    except OSError as error:
        later = descriptor >= 0 and error_of(lambda: os.fsync(descriptor)) is None
        text = os.strerror(error.errno or 0)
        return Attempt(path=ground.relative(path), error=text, now=_GENERATION, later=later)
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return Attempt(path=ground.relative(path), now=_GENERATION)


def _new_paths(ground: Ground) -> Sequence[Path]:
    """Return the path of one new file beside each file."""
    return [ground.path(number).with_name(_NEW) for number in range(FILES)]


def _write_new(ground: Ground) -> None:
    for path in _new_paths(ground):
        ground.write(path, _GENERATION)


def _empty(ground: Ground) -> None:
    """Delete the files that fill the disk."""
    error_of((ground.directory / _FILLER).unlink)
    error_of(lambda: shutil.rmtree(ground.directory / _NAMES_DIRECTORY))
    error_of(lambda: mounts.flush(ground.directory))


@fault("files are replaced by rename while no space is left", prepare=_write_new, end=_empty)
def full_disk(ground: Ground) -> Iterator[Attempt]:
    """The new contents are durable under another name before the disk is full. The rename needs no data block."""
    _fill(ground)
    return (_replace(ground, number) for number in range(FILES))


def _replace(ground: Ground, number: int) -> Attempt:
    path = ground.path(number)

    def replace() -> None:
        path.with_name(_NEW).replace(path)
        sync(path.parent)

    return Attempt(path=ground.relative(path), error=error_of(replace), now=_GENERATION, before=1)


def _fill(ground: Ground) -> None:
    """Fill the disk with allocated blocks, then with names."""
    with (ground.directory / _FILLER).open("w+b", buffering=0) as file:
        size, at = _LARGEST, 0
        while size >= _LEAST:
            if _is_full(partial(os.posix_fallocate, file.fileno(), at, size)):
                size //= 2
            else:
                at += size
        _is_full(partial(os.fsync, file.fileno()))
    names = ground.directory / _NAMES_DIRECTORY
    if not _is_full(names.mkdir):
        any(_is_full((names / f"{number:0200d}").touch) for number in range(_NAMES))


def _is_full(work: Callable[[], object]) -> bool:
    try:
        work()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return True
    return False
