"""Operations on a file's contents, size, attribute, mode, owner and time: effects on the tree, and system calls."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES, PART_BYTES, PARTS, ZERO, Place
from fslab.crash.steps import Effect, Operation, Run
from fslab.crash.tree import DIRECTORY_MODE, FILE_MODE, Inode, Tree
from fslab.system import syscalls
from fslab.system.files import closed_after, write_all
from fslab.system.syscalls import Fallocate

NEW_PARTS = 2 * PARTS  # of a new file with contents
_FLAGS = {
    "": 0, " with O_DIRECT": os.O_DIRECT, " with O_SYNC": os.O_SYNC,
    " with O_SYNC and O_DIRECT": os.O_SYNC | os.O_DIRECT,
}  # fmt: skip
_SHIFTING = {Fallocate.COLLAPSE_RANGE, Fallocate.INSERT_RANGE}


def data_of(sequence: int, inode: int, parts: range, generation: int) -> bytes:
    """Return what an operation of this generation writes to these parts of a file."""
    places = (Place(sequence=sequence, inode=inode, part=part) for part in parts)
    return b"".join(contents.part(place, generation) for place in places)


def _pwrite(file: str, parts: Callable[[Inode], range], flags: int = 0) -> Run:
    """Return a function that writes these parts. ``parts`` gets the inode as it is afterwards."""

    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        which = parts(after.inode(file))
        data = data_of(sequence, after.names[file], which, generation)
        place = os.open(directory / file, os.O_WRONLY | os.O_CREAT | flags, FILE_MODE)
        with closed_after(place), mmap.mmap(-1, len(data)) as aligned:  # O_DIRECT needs an aligned buffer
            aligned[:] = data
            write_all(place, aligned, which.start * PART_BYTES)

    return run


def _changes(file: str, change: Callable[[Inode, int], Inode]) -> Effect:
    return lambda tree, new: tree.changed(tree.names[file], change(tree.inode(file), new))


def _fallocated(descriptor: int, mode: Fallocate, at: int, size: int) -> bool:
    """Call fallocate(2) for ``size`` bytes from byte ``at`` on. Return False if the file system lacks the mode, or if
    it cannot shift so few bytes: its unit of allocation is larger."""
    lacking = {errno.EOPNOTSUPP, errno.EINVAL} if mode in _SHIFTING else {errno.EOPNOTSUPP}
    try:
        syscalls.fallocate(descriptor, mode, at, size)
    except OSError as error:
        if error.errno not in lacking:
            raise
        return False
    return True


def _zeros(mode: Fallocate, file: str, parts: Callable[[Inode], range]) -> Run:
    """Return a function that makes these parts zeros. If the file system lacks the mode, it writes zeros."""

    def run(directory: Path, _sequence: int, after: Tree, _generation: int) -> None:
        which = parts(after.inode(file))
        at, size = which.start * PART_BYTES, len(which) * PART_BYTES
        with (directory / file).open("r+b", buffering=0) as opened:
            if not _fallocated(opened.fileno(), mode, at, size):
                write_all(opened.fileno(), bytes(size), at)

    return run


def written(file: str) -> Effect:
    """Return the effect of making a file with contents."""
    return lambda tree, new: tree.added(file, Inode().written(0, NEW_PARTS, new))


def write(text: str, file: str) -> Operation:
    run = _pwrite(file, lambda inode: range(len(inode.parts)))
    return Operation(name=text, makes=(file,), target=file, run=run, effect=written(file))


def append(text: str, half: str, file: str, flags: str) -> Operation:
    count = 1 if half else PARTS
    synced = "O_SYNC" in flags

    def parts(inode: Inode) -> range:
        return range(len(inode.parts) - count, len(inode.parts))

    return Operation(
        name=text, needs=(file,), target=None if synced else file, whole="O_DIRECT" in flags,
        run=_pwrite(file, parts, _FLAGS[flags]), durable=(file, parts) if synced else None,
        effect=_changes(file, lambda inode, new: inode.written(len(inode.parts), count, new)),
    )  # fmt: skip


def overwrite(text: str, half: str, file: str, flags: str) -> Operation:
    parts = range(1, 2) if half else range(PARTS)
    synced = "O_SYNC" in flags
    return Operation(
        name=text, needs=(file,), target=None if synced else file, whole="O_DIRECT" in flags,
        run=_pwrite(file, lambda _: parts, _FLAGS[flags]), durable=(file, lambda _: parts) if synced else None,
        effect=_changes(file, lambda inode, new: inode.written(parts.start, len(parts), new)),
    )  # fmt: skip


def store(text: str, file: str, synced: str) -> Operation:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        with (directory / file).open("r+b") as opened, mmap.mmap(opened.fileno(), BLOCK_BYTES) as mapped:
            mapped[:] = data_of(sequence, after.names[file], range(PARTS), generation)
            if synced:
                mapped.flush()  # msync(MS_SYNC)

    return Operation(
        name=text, needs=(file,), least=PARTS, target=None if synced else file, run=run,
        durable=(file, lambda _: range(PARTS)) if synced else None,
        effect=_changes(file, lambda inode, new: inode.written(0, PARTS, new)),
    )  # fmt: skip


def truncate(text: str, file: str, size: str) -> Operation:
    parts = 1 if size == "half a" else int(size) * PARTS
    return Operation(
        name=text, needs=(file,), least=0 if parts else 1, target=file,
        run=lambda directory, *_: os.truncate(directory / file, parts * PART_BYTES),
        effect=_changes(file, lambda inode, _: inode.resized(parts)),
    )  # fmt: skip


def allocate(text: str, file: str, blocks: str) -> Operation:
    parts = int(blocks) * PARTS

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, parts * PART_BYTES)

    return Operation(
        name=text, needs=(file,), target=file, run=run,
        effect=_changes(file, lambda inode, _: inode.resized(max(parts, len(inode.parts)))),
    )  # fmt: skip


def allocate_beyond(text: str, file: str) -> Operation:
    """Does nothing if the file system lacks the mode."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b") as opened:
            _fallocated(opened.fileno(), Fallocate.KEEP_SIZE, 0, 5 * BLOCK_BYTES)

    effect = _changes(file, lambda inode, _: replace(inode, time=None))
    return Operation(name=text, needs=(file,), target=file, run=run, effect=effect)


def punch(text: str, place: str, file: str) -> Operation:
    def parts(inode: Inode) -> range:
        end = len(inode.parts)
        if place == "the last block of ":
            return range((end - 1) // PARTS * PARTS, end)
        if place == "all of ":
            return range(end)
        return range(1, PARTS) if place else range(min(PARTS, end))

    return Operation(
        name=text, needs=(file,), least=PARTS if place else 1, target=file,
        run=_zeros(Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE, file, parts),
        effect=_changes(file, lambda inode, _: inode.written(parts(inode).start, len(parts(inode)), ZERO)),
    )  # fmt: skip


def zero(text: str, file: str) -> Operation:
    return Operation(
        name=text, needs=(file,), least=1, target=file,
        run=_zeros(Fallocate.ZERO_RANGE, file, lambda _: range(PARTS)),
        effect=_changes(file, lambda inode, _: inode.written(0, PARTS, ZERO)),
    )  # fmt: skip


def collapse(text: str, file: str) -> Operation:
    """Removes the first block. If the file system lacks the mode, all blocks are written again, as an application
    must."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b", buffering=0) as opened:
            if not _fallocated(opened.fileno(), Fallocate.COLLAPSE_RANGE, 0, BLOCK_BYTES):
                rest = opened.read()[BLOCK_BYTES:]
                write_all(opened.fileno(), rest, 0)
                opened.truncate(len(rest))

    return Operation(
        name=text, needs=(file,), least=PARTS + 1, target=file, shifts=True, run=run,
        effect=_changes(file, lambda inode, _: inode.shifted(-PARTS)),
    )  # fmt: skip


def insert(text: str, file: str) -> Operation:
    """Inserts a hole of one block at the start. If the file system lacks the mode, all blocks are written again."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b", buffering=0) as opened:
            if not _fallocated(opened.fileno(), Fallocate.INSERT_RANGE, 0, BLOCK_BYTES):
                write_all(opened.fileno(), bytes(BLOCK_BYTES) + opened.read(), 0)

    return Operation(
        name=text, needs=(file,), least=1, target=file, shifts=True, run=run,
        effect=_changes(file, lambda inode, _: inode.shifted(PARTS)),
    )  # fmt: skip


def set_attribute(text: str, file: str) -> Operation:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        value = contents.attribute(sequence, after.names[file], generation)
        os.setxattr(directory / file, contents.ATTRIBUTE, value)

    return Operation(
        name=text, needs=(file,), target=file, run=run,
        effect=_changes(file, lambda inode, new: replace(inode, attribute=new)),
    )  # fmt: skip


def remove_attribute(text: str, file: str) -> Operation:
    return Operation(
        name=text, needs=(file,), removed=True, target=file,
        run=lambda directory, *_: os.removexattr(directory / file, contents.ATTRIBUTE),
        effect=_changes(file, lambda inode, _: replace(inode, attribute=None)),
    )  # fmt: skip


def chmod(text: str, name: str) -> Operation:
    def mode(inode: Inode, new: int) -> Inode:
        usual = DIRECTORY_MODE if inode.kind == "directory" else FILE_MODE
        return replace(inode, mode=usual | new & 0o7)

    return Operation(
        name=text, needs=(name,), kinds=("file", "directory"), target=name, effect=_changes(name, mode),
        run=lambda place, _, after, __: (place / name).chmod(after.inode(name).mode),
    )  # fmt: skip


def chown(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("file", "directory"), target=name,
        effect=_changes(name, lambda inode, new: replace(inode, owner=new)),
        run=lambda place, _, after, __: os.chown(place / name, (owner := after.inode(name).owner), owner),
    )  # fmt: skip


def set_time(text: str, file: str) -> Operation:
    return Operation(
        name=text, needs=(file,), target=file, effect=_changes(file, lambda inode, new: replace(inode, time=new)),
        run=lambda place, _, __, generation: os.utime(place / file, (generation, generation)),
    )  # fmt: skip
