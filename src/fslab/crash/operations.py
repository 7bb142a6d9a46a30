"""Operations on a sequence's directory, by their text: the effect of each on the tree, and the system calls that
perform it."""

from __future__ import annotations

import errno
import mmap
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES, PART_BYTES, PARTS, ZERO, Place
from fslab.crash.steps import Effect, Operation, Run
from fslab.crash.tree import DIRECTORY_MODE, FILE_MODE, Inode, Tree, directory
from fslab.system import cache as caches
from fslab.system import syscalls
from fslab.system.syscalls import Fallocate, Rename

EVICT = "evict inodes"
NEW_PARTS = 2 * PARTS  # of a new file with contents
_FLAGS = {"": 0, " with O_DIRECT": os.O_DIRECT, " with O_SYNC": os.O_SYNC}
_SHIFTING = {Fallocate.COLLAPSE_RANGE, Fallocate.INSERT_RANGE}
_NAME = r"([a-z](?:/[a-z]){0,2})"


def _bytes(sequence: int, inode: int, parts: range, generation: int) -> bytes:
    places = (Place(sequence=sequence, inode=inode, part=part) for part in parts)
    return b"".join(contents.part(place, generation) for place in places)


def _pwrite(file: str, parts: Callable[[Inode], range], flags: int = 0) -> Run:
    """Return a function that writes these parts. ``parts`` gets the inode as it is afterwards."""

    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        which = parts(after.inode(file))
        data = _bytes(sequence, after.names[file], which, generation)
        descriptor = os.open(directory / file, os.O_WRONLY | os.O_CREAT | flags, FILE_MODE)
        try:
            with mmap.mmap(-1, len(data)) as aligned:  # O_DIRECT needs an aligned buffer
                aligned[:] = data
                os.pwritev(descriptor, [aligned], which.start * PART_BYTES)
        finally:
            os.close(descriptor)

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
                os.pwrite(opened.fileno(), bytes(size), at)

    return run


def _create(text: str, file: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        os.close(os.open(directory / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))

    return Operation(
        name=text, makes=(file,), target=file, run=run, effect=lambda tree, _: tree.added(file, Inode())
    )


def _written(file: str) -> Effect:
    return lambda tree, new: tree.added(file, Inode().written(0, NEW_PARTS, new))


def _write(text: str, file: str) -> Operation:
    run = _pwrite(file, lambda inode: range(len(inode.parts)))
    return Operation(name=text, makes=(file,), target=file, run=run, effect=_written(file))


def _append(text: str, half: str, file: str, flags: str) -> Operation:
    count = 1 if half else PARTS
    return Operation(
        name=text, needs=(file,), target=file, whole="O_DIRECT" in flags,
        run=_pwrite(file, lambda inode: range(len(inode.parts) - count, len(inode.parts)), _FLAGS[flags]),
        effect=_changes(file, lambda inode, new: inode.written(len(inode.parts), count, new)),
    )  # fmt: skip


def _overwrite(text: str, half: str, file: str, flags: str) -> Operation:
    parts = range(1, 2) if half else range(PARTS)
    synced = "O_SYNC" in flags
    return Operation(
        name=text, needs=(file,), target=None if synced else file, whole="O_DIRECT" in flags,
        run=_pwrite(file, lambda _: parts, _FLAGS[flags]), durable=(file, parts) if synced else None,
        effect=_changes(file, lambda inode, new: inode.written(parts.start, len(parts), new)),
    )  # fmt: skip


def _store(text: str, file: str, synced: str) -> Operation:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        with (directory / file).open("r+b") as opened, mmap.mmap(opened.fileno(), BLOCK_BYTES) as mapped:
            mapped[:] = _bytes(sequence, after.names[file], range(PARTS), generation)
            if synced:
                mapped.flush()  # msync(MS_SYNC)

    return Operation(
        name=text, needs=(file,), least=PARTS, target=None if synced else file, run=run,
        durable=(file, range(PARTS)) if synced else None,
        effect=_changes(file, lambda inode, new: inode.written(0, PARTS, new)),
    )  # fmt: skip


def _truncate(text: str, file: str, size: str) -> Operation:
    parts = 1 if size == "half a" else int(size) * PARTS
    return Operation(
        name=text, needs=(file,), least=0 if parts else 1, target=file,
        run=lambda directory, *_: os.truncate(directory / file, parts * PART_BYTES),
        effect=_changes(file, lambda inode, _: inode.resized(parts)),
    )  # fmt: skip


def _allocate(text: str, file: str, blocks: str) -> Operation:
    parts = int(blocks) * PARTS

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, parts * PART_BYTES)

    return Operation(
        name=text, needs=(file,), target=file, run=run,
        effect=_changes(file, lambda inode, _: inode.resized(max(parts, len(inode.parts)))),
    )  # fmt: skip


def _allocate_beyond(text: str, file: str) -> Operation:
    """Does nothing if the file system lacks the mode."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b") as opened:
            _fallocated(opened.fileno(), Fallocate.KEEP_SIZE, 0, 5 * BLOCK_BYTES)

    return Operation(name=text, needs=(file,), target=file, run=run, effect=lambda tree, _: tree)


def _punch(text: str, place: str, file: str) -> Operation:
    def parts(inode: Inode) -> range:
        end = len(inode.parts)
        if place == "the last block of ":
            return range((end - 1) // PARTS * PARTS, end)
        return range(1, PARTS) if place else range(min(PARTS, end))

    return Operation(
        name=text, needs=(file,), least=PARTS if place else 1, target=file,
        run=_zeros(Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE, file, parts),
        effect=_changes(file, lambda inode, _: inode.written(parts(inode).start, len(parts(inode)), ZERO)),
    )  # fmt: skip


def _zero(text: str, file: str) -> Operation:
    return Operation(
        name=text, needs=(file,), least=1, target=file,
        run=_zeros(Fallocate.ZERO_RANGE, file, lambda _: range(PARTS)),
        effect=_changes(file, lambda inode, _: inode.written(0, PARTS, ZERO)),
    )  # fmt: skip


def _collapse(text: str, file: str) -> Operation:
    """Removes the first block. If the file system lacks the mode, all blocks are written again, as an application
    must."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b", buffering=0) as opened:
            if not _fallocated(opened.fileno(), Fallocate.COLLAPSE_RANGE, 0, BLOCK_BYTES):
                rest = opened.read()[BLOCK_BYTES:]
                os.pwrite(opened.fileno(), rest, 0)
                opened.truncate(len(rest))

    return Operation(
        name=text, needs=(file,), least=PARTS + 1, target=file, shifts=True, run=run,
        effect=_changes(file, lambda inode, _: inode.shifted(-PARTS)),
    )  # fmt: skip


def _insert(text: str, file: str) -> Operation:
    """Inserts a hole of one block at the start. If the file system lacks the mode, all blocks are written again."""

    def run(directory: Path, *_: object) -> None:
        with (directory / file).open("r+b", buffering=0) as opened:
            if not _fallocated(opened.fileno(), Fallocate.INSERT_RANGE, 0, BLOCK_BYTES):
                os.pwrite(opened.fileno(), bytes(BLOCK_BYTES) + opened.read(), 0)

    return Operation(
        name=text, needs=(file,), least=1, target=file, shifts=True, run=run,
        effect=_changes(file, lambda inode, _: inode.shifted(PARTS)),
    )  # fmt: skip


def _set_attribute(text: str, file: str) -> Operation:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        value = contents.attribute(sequence, after.names[file], generation)
        os.setxattr(directory / file, contents.ATTRIBUTE, value)

    return Operation(
        name=text, needs=(file,), target=file, run=run,
        effect=_changes(file, lambda inode, new: replace(inode, attribute=new)),
    )  # fmt: skip


def _remove_attribute(text: str, file: str) -> Operation:
    return Operation(
        name=text, needs=(file,), removed=True, target=file,
        run=lambda directory, *_: os.removexattr(directory / file, contents.ATTRIBUTE),
        effect=_changes(file, lambda inode, _: replace(inode, attribute=None)),
    )  # fmt: skip


def _chmod(text: str, name: str) -> Operation:
    def mode(inode: Inode, new: int) -> Inode:
        usual = DIRECTORY_MODE if inode.kind == "directory" else FILE_MODE
        return replace(inode, mode=usual | new & 0o7)

    return Operation(
        name=text, needs=(name,), kinds=("file", "directory"), target=name, effect=_changes(name, mode),
        run=lambda place, _, after, __: (place / name).chmod(after.inode(name).mode),
    )  # fmt: skip


def _link(text: str, old: str, new: str) -> Operation:
    return Operation(
        name=text, needs=(old,), kinds=("file", "fifo", "symlink"), makes=(new,), target=new,
        effect=lambda tree, _: tree.named(new, tree.names[old]),
        run=lambda place, *_: os.link(place / old, place / new, follow_symlinks=False),
    )  # fmt: skip


def _symlink(text: str, target: str, name: str) -> Operation:
    return Operation(
        name=text,
        makes=(name,),
        run=lambda place, *_: (place / name).symlink_to(target),
        effect=lambda tree, _: tree.added(name, Inode(kind="symlink", target=target)),
    )


def _rename(text: str, old: str, over: str, new: str) -> Operation:
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


def _exchange(text: str, one: str, other: str) -> Operation:
    apart = not (f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"))
    return Operation(
        name=text, needs=(one, other), kinds=(), target=one, allowed=lambda _: apart,
        effect=lambda tree, _: tree.exchanged(one, other),
        run=lambda place, *_: syscalls.rename(place / one, place / other, Rename.EXCHANGE),
    )  # fmt: skip


def _unlink(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("file", "fifo", "symlink"), effect=lambda tree, _: tree.unnamed(name),
        run=lambda place, *_: (place / name).unlink(),
    )  # fmt: skip


def _unlink_synced(text: str, name: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        with (directory / name).open("rb") as file:
            (directory / name).unlink()
            os.fsync(file.fileno())

    return Operation(name=text, needs=(name,), gone=name, run=run, effect=lambda tree, _: tree.unnamed(name))


def _mkdir(text: str, name: str) -> Operation:
    return Operation(
        name=text, makes=(name,), target=name, effect=lambda tree, _: tree.added(name, directory()),
        run=lambda place, *_: (place / name).mkdir(DIRECTORY_MODE),
    )  # fmt: skip


def _rmdir(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("directory",), allowed=lambda tree: not tree.below(name),
        effect=lambda tree, _: tree.unnamed(name), run=lambda place, *_: (place / name).rmdir(),
    )  # fmt: skip


def _mkfifo(text: str, name: str) -> Operation:
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


def _link_unnamed(text: str, name: str) -> Operation:
    """If the file system has no unnamed files, an ordinary one is written."""

    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        data = _bytes(sequence, after.names[name], range(NEW_PARTS), generation)
        descriptor = _unnamed((directory / name).parent, data)
        if descriptor is None:
            _write(text, name).run(directory, sequence, after, generation)
            return
        try:  # src_dir_fd: without it Python calls link(2), which does not follow the link in /proc
            os.link(f"/proc/self/fd/{descriptor}", directory / name, src_dir_fd=descriptor)
        finally:
            os.close(descriptor)

    return Operation(name=text, makes=(name,), target=name, run=run, effect=_written(name))


def _sync_unnamed(text: str) -> Operation:
    def run(directory: Path, *_: object) -> None:
        descriptor = _unnamed(directory, bytes(BLOCK_BYTES))
        if descriptor is not None:
            os.fsync(descriptor)
            os.close(descriptor)

    return Operation(name=text, run=run, effect=lambda tree, _: tree)


def _evict(text: str) -> Operation:
    return Operation(name=text, run=lambda *_: caches.drop_inodes(), effect=lambda tree, _: tree)


_FORMS: tuple[tuple[str, Callable[..., Operation]], ...] = (
    (f"create {_NAME}", _create),
    (f"write {_NAME}", _write),
    (f"append (half a block to )?{_NAME}()", _append),
    (f"append (){_NAME}( with O_DIRECT)", _append),
    (f"overwrite (half a block of )?{_NAME}()", _overwrite),
    (f"overwrite (){_NAME}( with O_SYNC| with O_DIRECT)", _overwrite),
    (f"store to {_NAME} with mmap( and msync)?", _store),
    (f"truncate {_NAME} to ([0-9]|half a) blocks?", _truncate),
    (f"fallocate {_NAME} to ([1-9]) blocks?", _allocate),
    (f"fallocate {_NAME} beyond its end", _allocate_beyond),
    (f"punch a hole into (half a block of |the last block of )?{_NAME}", _punch),
    (f"zero a range of {_NAME}", _zero),
    (f"collapse a range of {_NAME}", _collapse),
    (f"insert a range into {_NAME}", _insert),
    (f"setxattr {_NAME}", _set_attribute),
    (f"removexattr {_NAME}", _remove_attribute),
    (f"chmod {_NAME}", _chmod),
    (f"link {_NAME} {_NAME}", _link),
    (f"link a temporary file as {_NAME}", _link_unnamed),
    ("fsync a temporary file", _sync_unnamed),
    (f"symlink {_NAME} {_NAME}", _symlink),
    (f"rename {_NAME} (over )?{_NAME}", _rename),
    (f"exchange {_NAME} {_NAME}", _exchange),
    (f"unlink {_NAME}", _unlink),
    (f"unlink {_NAME} and fsync it", _unlink_synced),
    (f"mkdir {_NAME}", _mkdir),
    (f"rmdir {_NAME}", _rmdir),
    (f"mkfifo {_NAME}", _mkfifo),
    (EVICT, _evict),
)

# The forms for people: "half a block of " in "overwrite (half a block of )?NAME()" becomes "[half a block of ]".
FORMS = tuple(
    re.sub(r"\(([^()|]+)\)\?", r"[\1]", form.replace(_NAME, "NAME")).replace("()", "") for form, _ in _FORMS
)

# What sequences are made of.
METADATA = (
    "create n", "truncate a to 1 block", "truncate a to 0 blocks", "truncate a to 5 blocks", "setxattr a",
    "removexattr a", "link a l", "symlink a s", "rename a r", "rename s t", "rename a d/r", "rename b over a",
    "rename n over a", "unlink a", "unlink a and fsync it", "mkdir m",
)  # fmt: skip
_NAMES = (
    "create a", "create d/n", "chmod a", "chmod d", "link a d/l", "link a temporary file as n", "rename r a",
    "rename b a", "rename d/f e/f", "rename d g", "rename e d/e", "exchange a b", "exchange a d/f", "exchange d e",
    "unlink l", "unlink b", "unlink d/f", "mkdir e/m", "rmdir e", "mkfifo p",
)  # fmt: skip
_CONTENTS = (
    "write n", "append a", "append a with O_DIRECT", "append half a block to a", "overwrite a",
    "overwrite half a block of a", "overwrite a with O_SYNC", "overwrite a with O_DIRECT", "store to a with mmap",
    "store to a with mmap and msync", "fallocate a to 5 blocks", "fallocate a beyond its end", "punch a hole into a",
    "punch a hole into half a block of a", "zero a range of a", "collapse a range of a", "insert a range into a",
    "truncate a to half a block",
)  # fmt: skip
ALL = (*METADATA, *_NAMES, *_CONTENTS)
SYNCS = frozenset({"fsync a temporary file"})  # operations whose text begins like a sync
NEAR = frozenset(
    {*METADATA, *_NAMES, *(text for text in _CONTENTS if text.startswith(("punch", "truncate")))}
)


@cache
def operation(text: str) -> Operation:
    """Return the operation that this text describes. ValueError if it describes none."""
    for form, make in _FORMS:
        if match := re.fullmatch(form, text, re.ASCII):
            return make(text, *(group or "" for group in match.groups()))
    raise ValueError(f"invalid step '{text}'")
