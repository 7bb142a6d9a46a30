"""Operations on a sequence's directory: the effect of each on the tree, and the system calls that perform it."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES, Place
from fslab.crash.steps import Operation
from fslab.crash.tree import Inode, Tree
from fslab.system import syscalls
from fslab.system.syscalls import Fallocate

_SHIFTING = {Fallocate.COLLAPSE_RANGE, Fallocate.INSERT_RANGE}


def _write(file: str, block: int, flags: int = 0) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        place = Place(sequence=sequence, inode=after.names[file], block=block)
        descriptor = os.open(directory / file, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        try:
            with mmap.mmap(-1, BLOCK_BYTES) as aligned:  # O_DIRECT needs an aligned buffer
                aligned[:] = contents.block(place, generation)
                os.pwritev(descriptor, [aligned], block * BLOCK_BYTES)
        finally:
            os.close(descriptor)

    return run


def _store(*, synchronize: bool) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        place = Place(sequence=sequence, inode=after.names["a"], block=0)
        with (directory / "a").open("r+b") as file, mmap.mmap(file.fileno(), BLOCK_BYTES) as mapped:
            mapped[:] = contents.block(place, generation)
            if synchronize:
                mapped.flush()  # msync(MS_SYNC)

    return run


def _fallocate(mode: Fallocate, blocks: int) -> Callable[[Path, int, Tree, int], None]:
    """Return a function that calls fallocate(2) for the first ``blocks`` blocks of a.

    If the file system lacks the mode, the function writes zeros, as posix_fallocate(3) does; for KEEP_SIZE alone it
    does nothing.
    """

    def run(directory: Path, *_: object) -> None:
        size = blocks * BLOCK_BYTES
        with (directory / "a").open("r+b", buffering=0) as file:
            if mode == Fallocate.ALLOCATE:
                os.posix_fallocate(file.fileno(), 0, size)
            elif not _is_done(file.fileno(), mode, size) and mode != Fallocate.KEEP_SIZE:
                os.pwrite(file.fileno(), bytes(size), 0)

    return run


def _is_done(descriptor: int, mode: Fallocate, size: int) -> bool:
    """Call fallocate(2) for the first ``size`` bytes. Return False if the file system lacks the mode, or if it cannot
    shift so few bytes: its unit of allocation is larger."""
    lacking = {errno.EOPNOTSUPP, errno.EINVAL} if mode in _SHIFTING else {errno.EOPNOTSUPP}
    try:
        syscalls.fallocate(descriptor, mode, 0, size)
    except OSError as error:
        if error.errno not in lacking:
            raise
        return False
    return True


def _collapse(directory: Path, *_: object) -> None:
    """Remove the first block of a. If the file system lacks the mode, write all blocks anew, as an application must."""
    with (directory / "a").open("r+b", buffering=0) as file:
        if not _is_done(file.fileno(), Fallocate.COLLAPSE_RANGE, BLOCK_BYTES):
            rest = file.read()[BLOCK_BYTES:]
            os.pwrite(file.fileno(), rest, 0)
            file.truncate(len(rest))


def _insert(directory: Path, *_: object) -> None:
    """Insert a hole of one block at the start of a. If the file system lacks the mode, write all blocks anew."""
    with (directory / "a").open("r+b", buffering=0) as file:
        if not _is_done(file.fileno(), Fallocate.INSERT_RANGE, BLOCK_BYTES):
            os.pwrite(file.fileno(), bytes(BLOCK_BYTES) + file.read(), 0)


def _shifts(blocks: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, _: tree.changed(tree.names["a"], tree.inode("a").shifted(blocks))


def _attribute(directory: Path, sequence: int, after: Tree, generation: int) -> None:
    value = contents.attribute(sequence, after.names["a"], generation)
    os.setxattr(directory / "a", contents.ATTRIBUTE, value)


def _attributes(tree: Tree, generation: int | None) -> Tree:
    return tree.changed(tree.names["a"], replace(tree.inode("a"), attribute=generation))


def _zeroes(tree: Tree, _: int) -> Tree:
    return _writes("a", 0)(tree, contents.ZERO)


def _create(directory: Path, sequence: int, after: Tree, generation: int) -> None:
    for block in range(len(after.inode("n").blocks)):
        _write("n", block)(directory, sequence, after, generation)


def _unlink_synced(directory: Path, *_: object) -> None:
    """Remove the name of a while it is open, and call fsync on it."""
    with (directory / "a").open("rb") as file:
        (directory / "a").unlink()
        os.fsync(file.fileno())


def _touch(directory: Path, *_: object) -> None:
    os.close(os.open(directory / "n", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _writes(file: str, block: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, generation: tree.changed(
        tree.names[file], tree.inode(file).written(block, generation)
    )


def _resizes(file: str, blocks: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, _: tree.changed(tree.names[file], tree.inode(file).resized(blocks))


def _grows(file: str, blocks: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, new: _resizes(file, max(blocks, len(tree.inode(file).blocks)))(tree, new)


def _renames(old: str, new: str) -> Callable[[Tree, int], Tree]:
    return lambda tree, _: tree.unnamed(old).named(new, tree.names[old])


def _appends(tree: Tree, generation: int) -> Tree:
    return _writes("a", len(tree.inode("a").blocks))(tree, generation)


def _append(flags: int = 0) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        _write("a", len(after.inode("a").blocks) - 1, flags)(directory, sequence, after, generation)

    return run


OPERATIONS = (
    Operation(
        name="create n", metadata=True, makes=("n",), target="n", run=_touch,
        effect=lambda tree, _: tree.added("n", Inode()),
    ),
    Operation(
        name="write n", makes=("n",), target="n", run=_create,
        effect=lambda tree, new: tree.added("n", Inode().written(0, new).written(1, new)),
    ),
    Operation(name="append a", needs=("a",), target="a", run=_append(), effect=_appends),
    Operation(name="append a with O_DIRECT", needs=("a",), target="a", run=_append(os.O_DIRECT), effect=_appends),
    Operation(name="overwrite a", needs=("a",), target="a", run=_write("a", 0), effect=_writes("a", 0)),
    Operation(
        name="overwrite a with O_SYNC", needs=("a",), run=_write("a", 0, os.O_SYNC), effect=_writes("a", 0),
        durable=("a", 0),
    ),
    Operation(
        name="overwrite a with O_DIRECT", needs=("a",), target="a", run=_write("a", 0, os.O_DIRECT),
        effect=_writes("a", 0),
    ),
    Operation(
        name="store to a with mmap", needs=("a",), least=1, target="a", run=_store(synchronize=False),
        effect=_writes("a", 0),
    ),
    Operation(
        name="store to a with mmap and msync", needs=("a",), least=1, run=_store(synchronize=True),
        effect=_writes("a", 0), durable=("a", 0),
    ),
    Operation(
        name="truncate a to 1 block", metadata=True, needs=("a",), target="a", effect=_resizes("a", 1),
        run=lambda directory, *_: os.truncate(directory / "a", BLOCK_BYTES),
    ),
    Operation(
        name="truncate a to 0 blocks", metadata=True, needs=("a",), least=1, target="a", effect=_resizes("a", 0),
        run=lambda directory, *_: os.truncate(directory / "a", 0),
    ),
    Operation(
        name="truncate a to 5 blocks", metadata=True, needs=("a",), target="a", effect=_resizes("a", 5),
        run=lambda directory, *_: os.truncate(directory / "a", 5 * BLOCK_BYTES),
    ),
    Operation(
        name="fallocate a to 5 blocks", needs=("a",), target="a", effect=_grows("a", 5),
        run=_fallocate(Fallocate.ALLOCATE, 5),
    ),
    Operation(
        name="fallocate a beyond its end", needs=("a",), target="a", effect=lambda tree, _: tree,
        run=_fallocate(Fallocate.KEEP_SIZE, 5),
    ),
    Operation(
        name="punch a hole into a", needs=("a",), least=1, target="a", effect=_zeroes,
        run=_fallocate(Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE, 1),
    ),
    Operation(
        name="zero a range of a", needs=("a",), least=1, target="a", effect=_zeroes,
        run=_fallocate(Fallocate.ZERO_RANGE, 1),
    ),
    Operation(
        name="collapse a range of a", needs=("a",), least=2, target="a", shifts=True, effect=_shifts(-1), run=_collapse,
    ),
    Operation(
        name="insert a range into a", needs=("a",), least=1, target="a", shifts=True, effect=_shifts(1), run=_insert,
    ),
    Operation(name="setxattr a", metadata=True, needs=("a",), target="a", run=_attribute, effect=_attributes),
    Operation(
        name="removexattr a", metadata=True, needs=("a",), removed=True, target="a",
        effect=lambda tree, _: _attributes(tree, None),
        run=lambda directory, *_: os.removexattr(directory / "a", contents.ATTRIBUTE),
    ),
    Operation(
        name="link a l", metadata=True, needs=("a",), makes=("l",), target="l",
        effect=lambda tree, _: tree.named("l", tree.names["a"]),
        run=lambda directory, *_: os.link(directory / "a", directory / "l"),
    ),
    Operation(
        name="symlink a s", metadata=True, makes=("s",), run=lambda directory, *_: (directory / "s").symlink_to("a"),
        effect=lambda tree, _: tree.added("s", Inode(kind="symlink", target="a")),
    ),
    Operation(
        name="rename a r", metadata=True, needs=("a",), makes=("r",), target="r", effect=_renames("a", "r"),
        run=lambda directory, *_: (directory / "a").rename(directory / "r"),
    ),
    Operation(
        name="rename s t", metadata=True, needs=("s",), makes=("t",), kind="symlink", effect=_renames("s", "t"),
        run=lambda directory, *_: (directory / "s").rename(directory / "t"),
    ),
    Operation(
        name="rename a d/r", metadata=True, needs=("a", "d"), makes=("d/r",), target="d/r", effect=_renames("a", "d/r"),
        run=lambda directory, *_: (directory / "a").rename(directory / "d/r"),
    ),
    Operation(
        name="rename b over a", metadata=True, needs=("a", "b"), target="a", effect=_renames("b", "a"),
        run=lambda directory, *_: (directory / "b").rename(directory / "a"),
    ),
    Operation(
        name="rename n over a", metadata=True, needs=("a", "n"), target="a", effect=_renames("n", "a"),
        run=lambda directory, *_: (directory / "n").rename(directory / "a"),
    ),
    Operation(
        name="unlink a", metadata=True, needs=("a",), effect=lambda tree, _: tree.unnamed("a"),
        run=lambda directory, *_: (directory / "a").unlink(),
    ),
    Operation(
        name="unlink a and fsync it", metadata=True, needs=("a",), gone="a", run=_unlink_synced,
        effect=lambda tree, _: tree.unnamed("a"),
    ),
    Operation(
        name="mkdir m", metadata=True, makes=("m",), target="m", run=lambda directory, *_: (directory / "m").mkdir(),
        effect=lambda tree, _: tree.added("m", Inode(kind="directory")),
    ),
)  # fmt: skip
