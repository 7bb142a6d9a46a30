"""Steps of a sequence: an operation on its directory, or a sync, and the tree after each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fslab.crash.tree import START, Inode, Tree


class Sync(StrEnum):
    """How an application asks for what it did to be durable."""

    FSYNC = "fsync"
    FDATASYNC = "fdatasync"
    DIRECTORY = "fsync-directory"
    SYNC = "sync"


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """``effect`` gives the tree after it, ``run`` does it in a directory; both get the generation to write.

    ``needs`` are names that must exist, with ``least`` blocks where they are files, and an extended attribute where one
    is ``removed``; ``makes`` names that must not;
    ``target`` is the name to call fsync on afterwards, if any. ``durable``: the name and the block that are durable
    when it returns (O_SYNC, msync), and no other.
    """

    name: str
    effect: Callable[[Tree, int], Tree]
    run: Callable[[Path, int, Tree, int], None]
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    least: int = 0
    removed: bool = False
    target: str | None = None
    durable: tuple[str, int] | None = None

    def possible(self, tree: Tree) -> bool:
        """Whether it can be done on this tree, where ``needs`` are files, but for the directory ``d``."""
        there = all(name in tree.names and self._fits(name, tree.inode(name)) for name in self.needs)
        return there and not any(name in tree.names for name in self.makes)

    def _fits(self, name: str, inode: Inode) -> bool:
        fits = len(inode.blocks) >= self.least and not (self.removed and inode.attribute is None)
        return name == "d" or (inode.kind == "file" and fits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An operation, or a sync, of which ``target`` is the name for fsync and fdatasync."""

    operation: Operation | None = None
    sync: Sync | None = None
    target: str | None = None

    def __str__(self) -> str:
        if self.operation is not None:
            return self.operation.name
        return f"{self.sync} {self.target}" if self.target else str(self.sync)


Sequence = tuple[Step, ...]


def trees(sequence: Sequence) -> tuple[Tree, ...]:
    """The tree before the first step, and after each. A step writes its own number + 1 as generation."""
    found = [START]
    for number, step in enumerate(sequence, start=1):
        tree = found[-1]
        found.append(step.operation.effect(tree, number + 1) if step.operation else tree)
    return tuple(found)
