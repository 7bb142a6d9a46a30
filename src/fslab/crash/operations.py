"""Operations on a sequence's directory: those that make, link, rename and remove names, with the effect of each on the
tree and its system calls; all of them by their text; and those that sequences are made of."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from fslab.crash import file_operations as files
from fslab.crash.contents import BLOCK_BYTES
from fslab.crash.steps import LackedError, Operation
from fslab.crash.tree import DIRECTORY_MODE, FILE_MODE, Inode, Kind, Tree, directory
from fslab.system import page_cache as caches
from fslab.system import syscalls
from fslab.system.files import closed_after, opened, write_all
from fslab.system.syscalls import Rename

EVICT = "evict"
_NAME = r"([a-z](?:/[a-z]){0,2})"


def _evict(text: str, which: str) -> Operation:
    """The inode of the sequence's directory stays in memory, and those of files with cached pages (Linux 5.16)."""

    def run(directory: Path, _sequence: int, after: Tree, _generation: int) -> None:
        below = (name for name in after.names if which == "files" and after.inode(name).kind == "directory")
        with ExitStack() as in_use:
            for name in ("", *below):
                in_use.enter_context(opened(directory / name))
            caches.drop_inodes()

    return Operation(name=text, run=run, effect=lambda tree, _: tree)


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
    def run(directory: Path, *_: object) -> None:
        try:
            syscalls.rename(directory / one, directory / other, Rename.EXCHANGE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise LackedError from error

    apart = not (f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"))
    return Operation(
        name=text, needs=(one, other), kinds=(), target=one, allowed=lambda _: apart,
        effect=lambda tree, _: tree.exchanged(one, other), run=run,
    )  # fmt: skip


def unlink(text: str, name: str) -> Operation:
    return Operation(
        name=text, needs=(name,), kinds=("file", "fifo", "symlink"), effect=lambda tree, _: tree.unnamed(name),
        run=lambda place, *_: (place / name).unlink(),
    )  # fmt: skip


def remove_synced(text: str, call: str, name: str) -> Operation:
    removal = (rmdir if call == "rmdir" else unlink)(text, name)

    def run(directory: Path, *rest: Any) -> None:
        with opened(directory / name) as descriptor:
            removal.run(directory, *rest)
            os.fsync(descriptor)

    kind: Kind = "directory" if call == "rmdir" else "file"
    return replace(removal, kinds=(kind,), gone=name, run=run)


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
    write_all(descriptor, data)
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


_FORMS: tuple[tuple[str, Callable[..., Operation]], ...] = (
    (f"create {_NAME}", create),
    (f"write {_NAME}", files.write),
    (f"append (half a block to )?{_NAME}()", files.append),
    (f"append (){_NAME}( with O_DIRECT| with O_SYNC| with O_SYNC and O_DIRECT)", files.append),
    (f"overwrite (half a block of )?{_NAME}()", files.overwrite),
    (f"overwrite (){_NAME}( with O_SYNC| with O_DIRECT)", files.overwrite),
    (f"store to {_NAME} with mmap( and msync)?", files.store),
    (f"truncate {_NAME} to ([0-9]|half a) blocks?", files.truncate),
    (f"fallocate {_NAME} to ([1-9]) blocks?", files.allocate),
    (f"fallocate {_NAME} beyond its end", files.allocate_beyond),
    (f"punch a hole into (half a block of |the last block of |all of )?{_NAME}", files.punch),
    (f"zero a range of {_NAME}", files.zero),
    (f"collapse a range of {_NAME}", files.collapse),
    (f"insert a range into {_NAME}", files.insert),
    (f"setxattr {_NAME}", files.set_attribute),
    (f"removexattr {_NAME}", files.remove_attribute),
    (f"chmod {_NAME}", files.chmod),
    (f"chown {_NAME}", files.chown),
    (f"utime {_NAME}", files.set_time),
    (f"link {_NAME} {_NAME}", link),
    (f"link a temporary file as {_NAME}", link_unnamed),
    ("fsync a temporary file", sync_unnamed),
    (f"symlink {_NAME} {_NAME}", symlink),
    (f"rename {_NAME} (over )?{_NAME}", rename),
    (f"exchange {_NAME} {_NAME}", exchange),
    (f"unlink {_NAME}", unlink),
    (f"(unlink|rmdir) {_NAME} and fsync it", remove_synced),
    (f"mkdir {_NAME}", mkdir),
    (f"rmdir {_NAME}", rmdir),
    (f"mkfifo {_NAME}", mkfifo),
    (f"{EVICT} (inodes|files)", _evict),
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
    "create a", "create d/n", "chmod a", "chmod d", "chown a", "utime a", "link a d/l", "link a temporary file as n",
    "rename r a", "rename b a", "rename d/f e/f", "rename d g", "rename e d/e", "exchange a b", "exchange a d/f",
    "exchange d e", "unlink l", "unlink b", "unlink d/f", "mkdir e/m", "rmdir e", "mkfifo p",
)  # fmt: skip
_CONTENTS = (
    "write n", "append a", "append a with O_DIRECT", "append a with O_SYNC", "append a with O_SYNC and O_DIRECT",
    "append half a block to a", "overwrite a", "overwrite half a block of a", "overwrite a with O_SYNC",
    "overwrite a with O_DIRECT", "store to a with mmap", "store to a with mmap and msync", "fallocate a to 5 blocks",
    "fallocate a beyond its end", "punch a hole into a", "punch a hole into half a block of a", "zero a range of a",
    "collapse a range of a", "insert a range into a", "truncate a to half a block",
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
