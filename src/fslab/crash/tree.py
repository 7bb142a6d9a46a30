"""A small, frozen model of the files, links and names in a sequence's directory after each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fslab.crash.contents import HOLE, PART_BYTES, PARTS, ZERO, Stamp

Kind = Literal["file", "symlink", "directory", "fifo"]
Entry = tuple[int, str]  # the inode number of a directory, and a name in it
TOP = 0  # the number of the sequence's own directory
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


@dataclass(frozen=True, kw_only=True, slots=True)
class Inode:
    """``parts``: the stamp of each part of a file; ``size`` in bytes; ``target`` of a symbolic link; ``mode``:
    permissions of a file or directory; ``owner``: its user; ``time``: the time that was set, in seconds, None if
    none was since its contents changed; ``attribute``: the generation of the extended attribute, None without one;
    ``moved``: by how many places the parts have been shifted towards the end."""

    kind: Kind = "file"
    parts: tuple[Stamp, ...] = ()
    size: int = 0
    target: str = ""
    mode: int = FILE_MODE
    owner: int = 0
    time: int | None = None
    attribute: int | None = None
    moved: int = 0

    def written(self, part: int, count: int, generation: int) -> Inode:
        """Return the inode with ``count`` parts written from ``part`` on, and zeros in missing parts before them."""
        parts = list(self.parts) + [HOLE] * (part + count - len(self.parts))
        for at in range(part, part + count):
            parts[at] = HOLE if generation == ZERO else Stamp(generation, at)
        return replace(self, parts=tuple(parts), size=len(parts) * PART_BYTES, time=None)

    def resized(self, parts: int) -> Inode:
        """Return the inode truncated to so many parts, or extended by a hole."""
        kept = (*self.parts[:parts], *[HOLE] * (parts - len(self.parts)))
        return replace(self, parts=kept, size=parts * PART_BYTES, time=None)

    def shifted(self, parts: int) -> Inode:
        """Return the inode with so many holes inserted at its start, or with as many parts removed there (< 0)."""
        kept = (*[HOLE] * parts, *self.parts[max(0, -parts) :])
        size = len(kept) * PART_BYTES
        return replace(self, parts=kept, size=size, moved=self.moved + parts, time=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """Names, with the directories in which they are, and the inodes that they lead to. Inodes without a name are
    kept."""

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]

    def inode(self, name: str) -> Inode:
        return self.inodes[self.names[name]]

    def synced(self, name: str | None) -> bool:
        """Return whether fsync can be called on this name: open(2) follows a symbolic link, and waits for the other end
        of a FIFO."""
        return name in self.names and self.inode(name or "").kind in {"file", "directory"}

    def changed(self, number: int, inode: Inode) -> Tree:
        return replace(self, inodes={**self.inodes, number: inode})

    def named(self, name: str, number: int) -> Tree:
        return replace(self, names={**self.names, name: number})

    def unnamed(self, name: str) -> Tree:
        return replace(self, names={key: value for key, value in self.names.items() if key != name})

    def added(self, name: str, inode: Inode) -> Tree:
        """Return the tree with a new inode under a free name."""
        number = max(self.inodes, default=TOP) + 1
        return self.changed(number, inode).named(name, number)

    def moved(self, old: str, new: str) -> Tree:
        """Return the tree with ``old``, and all below it, renamed to ``new``, which is replaced."""
        free = {name: number for name, number in self.names.items() if not _is_at(name, new)}
        return replace(self, names={_moved(name, old, new): number for name, number in free.items()})

    def exchanged(self, one: str, other: str) -> Tree:
        """Return the tree with both names, and all below them, exchanged."""
        names = {
            _moved(name, one, other) if _is_at(name, one) else _moved(name, other, one): number
            for name, number in self.names.items()
        }
        return replace(self, names=names)

    def below(self, name: str) -> bool:
        """Return whether anything is in this directory."""
        return any(other.startswith(f"{name}/") for other in self.names)

    def entries(self) -> dict[Entry, int]:
        """Return the inode of each entry of a directory."""
        found = {}
        for name, number in self.names.items():
            directory, _, last = name.rpartition("/")
            found[self.names[directory] if directory else TOP, last] = number
        return found


def _is_at(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}/")


def _moved(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if _is_at(name, old) else name


def directory() -> Inode:
    """Return a new directory."""
    return Inode(kind="directory", mode=DIRECTORY_MODE)


START = (
    Tree(names={}, inodes={})
    .added("a", Inode(attribute=1).written(0, 2 * PARTS, 1))
    .added("b", Inode().written(0, 2 * PARTS, 1))
    .added("d", directory())
    .added("d/f", Inode().written(0, PARTS, 1))
    .added("e", directory())
)
