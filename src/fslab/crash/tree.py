"""What a sequence's directory contains after each of its steps: a small, frozen model of files, links and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fslab.crash.contents import BLOCK_BYTES, ZERO

Kind = Literal["file", "symlink", "directory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inode:
    """``blocks``: the generation of each block of a file; ``size`` in bytes; ``target`` of a symbolic link;
    ``attribute``: the generation of the extended attribute, None without one."""

    kind: Kind = "file"
    blocks: tuple[int, ...] = ()
    size: int = 0
    target: str = ""
    attribute: int | None = None

    def written(self, block: int, generation: int) -> Inode:
        """With this block written, and zeros before it where there was nothing."""
        blocks = list(self.blocks) + [ZERO] * (block + 1 - len(self.blocks))
        blocks[block] = generation
        return replace(self, blocks=tuple(blocks), size=max(self.size, (block + 1) * BLOCK_BYTES))

    def resized(self, blocks: int) -> Inode:
        """Cut to so many blocks, or continued by a hole."""
        kept = (*self.blocks[:blocks], *[ZERO] * (blocks - len(self.blocks)))
        return replace(self, blocks=kept, size=blocks * BLOCK_BYTES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """Names, with the inodes that they lead to. Inodes without a name stay known."""

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]

    def inode(self, name: str) -> Inode:
        return self.inodes[self.names[name]]

    def changed(self, number: int, inode: Inode) -> Tree:
        return replace(self, inodes={**self.inodes, number: inode})

    def named(self, name: str, number: int) -> Tree:
        return replace(self, names={**self.names, name: number})

    def unnamed(self, name: str) -> Tree:
        return replace(self, names={key: value for key, value in self.names.items() if key != name})

    def added(self, name: str, inode: Inode) -> Tree:
        """A new inode under a name that is free."""
        number = max(self.inodes, default=0) + 1
        return self.changed(number, inode).named(name, number)


START = (
    Tree(names={}, inodes={})
    .added("a", Inode(blocks=(1, 1), size=2 * BLOCK_BYTES, attribute=1))
    .added("b", Inode(blocks=(1, 1), size=2 * BLOCK_BYTES))
    .added("d", Inode(kind="directory"))
)
