"""A small, frozen model of the files, links and names in a sequence's directory after each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fslab.crash.contents import BLOCK_BYTES, HOLE, ZERO, Stamp

Kind = Literal["file", "symlink", "directory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inode:
    """``blocks``: the stamp of each block of a file; ``size`` in bytes; ``target`` of a symbolic link;
    ``attribute``: the generation of the extended attribute, None without one; ``moved``: by how many places the blocks
    have been shifted towards the end."""

    kind: Kind = "file"
    blocks: tuple[Stamp, ...] = ()
    size: int = 0
    target: str = ""
    attribute: int | None = None
    moved: int = 0

    def written(self, block: int, generation: int) -> Inode:
        """Return the inode with this block written, and zeros in missing blocks before it."""
        blocks = list(self.blocks) + [HOLE] * (block + 1 - len(self.blocks))
        blocks[block] = HOLE if generation == ZERO else Stamp(generation, block)
        return replace(self, blocks=tuple(blocks), size=max(self.size, (block + 1) * BLOCK_BYTES))

    def resized(self, blocks: int) -> Inode:
        """Return the inode truncated to ``blocks`` blocks, or extended by a hole."""
        kept = (*self.blocks[:blocks], *[HOLE] * (blocks - len(self.blocks)))
        return replace(self, blocks=kept, size=blocks * BLOCK_BYTES)

    def shifted(self, blocks: int) -> Inode:
        """Return the inode with ``blocks`` holes inserted at its start, or with as many blocks removed there (< 0)."""
        kept = (*[HOLE] * blocks, *self.blocks[max(0, -blocks) :])
        return replace(self, blocks=kept, size=self.size + blocks * BLOCK_BYTES, moved=self.moved + blocks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """Names, and the inodes that they lead to. Inodes without a name are kept."""

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
        """Return the tree with a new inode under a free name."""
        number = max(self.inodes, default=0) + 1
        return self.changed(number, inode).named(name, number)


START = (
    Tree(names={}, inodes={})
    .added("a", Inode(attribute=1).written(0, 1).written(1, 1))
    .added("b", Inode().written(0, 1).written(1, 1))
    .added("d", Inode(kind="directory"))
)
