"""Operations that make, link, rename and remove names: the effect of each on the tree, and its system calls."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fslab.crash import file_operations as files
from fslab.crash.contents import BLOCK_BYTES
from fslab.crash.steps import Operation
from fslab.crash.tree import DIRECTORY_MODE, FILE_MODE, Inode, Tree, directory
from fslab.system import syscalls
from fslab.system.files import closed_after
from fslab.system.syscalls import Rename


def create(text: str, file: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        os.close(os.open(directory / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))

    return Operation(
        name=text, makes=(file,), target=file, run=run, effect=lambda tree, _: tree.added(file, Inode())
    )


def link(text: str, old: str, new: str) -> Operation:
    return Operation(
        name=text, needs=(old,), kinds=("file", "fifo", "symlink"), makes=(new,), target=new,
        effect=lambda tree, _: tree.named(new, tree.names[old]),
        run=lambda place, *_: os.link(place / old, place / new, follow_symlinks=False),
    )  # fmt: skip


def symlink(text: str, target: str, name: str) -> Operation:
    return Operation(
        name=text,
        makes=(name,),
        run=lambda place, *_: (place / name).symlink_to(target),
        effect=lambda tree, _: tree.added(name, Inode(kind="symlink", target=target)),
    )


def rename(text: str, old: str, over: str, new: str) -> Operation:
    def allowed(tree: Tree) -> bool:
        if not over:
            return True
        one, other = tree.inode(old), tree.inode(new)
        return (one.kind == "directory") == (other.kind == "directory") and not tree.below(new)

    apart = not new.startswith(f"{old}/")
    return Operation(
        name=text, needs=(old, *[new] * bool(over)), makes=() if over else (new,), kinds=(), target=new,
        effect=lambda tree, _: tree.moved(old, new), run=lambda place, *_: (place / old).rename(place / new),
        allowed=lambda tree: apart and allowed(tree),
    )  # fmt: skip


def exchange(text: str, one: str, other: str) -> Operation:
    apart = not (f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"))
    return Operation(
        name=text, needs=(one, other), kinds=(), target=one, allowed=lambda _: apart,
        effect=lambda tree, _: tree.exchanged(one, other),
        run=lambda place, *_: syscalls.rename(place / one, place / other, Rename.EXCHANGE),
    )  # fmt: skip


def unlink(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("file", "fifo", "symlink"), effect=lambda tree, _: tree.unnamed(name),
        run=lambda place, *_: (place / name).unlink(),
    )  # fmt: skip


def unlink_synced(text: str, name: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        with (directory / name).open("rb") as file:
            (directory / name).unlink()
            os.fsync(file.fileno())

    return Operation(name=text, needs=(name,), gone=name, run=run, effect=lambda tree, _: tree.unnamed(name))


def mkdir(text: str, name: str) -> Operation:
    return Operation(
        name=text, makes=(name,), target=name, effect=lambda tree, _: tree.added(name, directory()),
        run=lambda place, *_: (place / name).mkdir(DIRECTORY_MODE),
    )  # fmt: skip


def rmdir(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("directory",), allowed=lambda tree: not tree.below(name),
        effect=lambda tree, _: tree.unnamed(name), run=lambda place, *_: (place / name).rmdir(),
    )  # fmt: skip


def mkfifo(text: str, name: str) -> Operation:
    return Operation(
        name=text,
        makes=(name,),
        run=lambda place, *_: os.mkfifo(place / name, FILE_MODE),
        effect=lambda tree, _: tree.added(name, Inode(kind="fifo")),
    )


def _unnamed(directory: Path, data: bytes) -> int | None:
    """Return a descriptor of a new file without a name; None if the file system has none."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR, FILE_MODE)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return None
    os.write(descriptor, data)
    return descriptor


def link_unnamed(text: str, name: str) -> Operation:
    """If the file system has no unnamed files, an ordinary one is written."""

    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        data = files.data_of(sequence, after.names[name], range(files.NEW_PARTS), generation)
        descriptor = _unnamed((directory / name).parent, data)
        if descriptor is None:
            files.write(text, name).run(directory, sequence, after, generation)
            return
        with closed_after(descriptor):
            # src_dir_fd: without it Python calls link(2), which does not follow the link in /proc.
            os.link(f"/proc/self/fd/{descriptor}", directory / name, src_dir_fd=descriptor)

    return Operation(name=text, makes=(name,), target=name, run=run, effect=files.written(name))


def sync_unnamed(text: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        descriptor = _unnamed(directory, bytes(BLOCK_BYTES))
        if descriptor is not None:
            os.fsync(descriptor)
            os.close(descriptor)

    return Operation(name=text, run=run, effect=lambda tree, _: tree)
