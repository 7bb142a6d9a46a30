"""Steps of a sequence, which are operations on its directory and syncs, and the tree after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fslab.crash.contents import PARTS
from fslab.crash.tree import START, Inode, Kind, Tree


class Sync(StrEnum):
    """The calls with which an application makes its changes durable."""

    FSYNC = "fsync"
    FDATASYNC = "fdatasync"
    DIRECTORY = "fsync-directory"
    SYNC = "sync"

    @property
    def named(self) -> bool:
        """Whether it is called on a file or directory that the step names."""
        return self in {Sync.FSYNC, Sync.FDATASYNC}


class LackedError(Exception):
    """The file system lacks an operation for which there is no other."""


Effect = Callable[[Tree, int], Tree]
Run = Callable[[Path, int, Tree, int], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """``effect`` returns the tree after the operation, from the one before it and the generation to write. ``run``
    performs it, from the directory, the sequence's number, the tree after it, and the generation.

    ``needs``: names that must exist, of one of ``kinds`` (empty: any); files among them must have ``least`` parts,
    whole blocks (``whole``), and an extended attribute if the operation removes one (``removed``). ``makes``: names
    that must not exist. ``allowed``: what else the tree must be. ``target``: the name to call fsync on afterwards, if
    any.
    ``durable``: the name and, of the file as it is afterwards, the only parts that are durable when it returns (O_SYNC,
    msync). ``gone``: the name whose removal is durable when it returns, if the file system promises that
    (``Promises.removal``).
    ``shifts``: it moves the target's blocks, extent by extent; meanwhile there are holes between them.
    """

    name: str
    effect: Effect
    run: Run
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ("file",)
    least: int = 0
    whole: bool = False
    removed: bool = False
    allowed: Callable[[Tree], bool] = lambda _: True
    target: str | None = None
    durable: tuple[str, Callable[[Inode], range]] | None = None
    gone: str | None = None
    shifts: bool = False

    def possible(self, tree: Tree) -> bool:
        """Return whether it is possible on this tree."""
        there = all(name in tree.names and self._fits(tree.inode(name)) for name in self.needs)
        free = all(name not in tree.names and _has_parent(tree, name) for name in self.makes)
        return there and free and self.allowed(tree)

    def _fits(self, inode: Inode) -> bool:
        if self.kinds and inode.kind not in self.kinds:
            return False
        if len(inode.parts) < self.least or (self.removed and inode.attribute is None):
            return False
        return not (self.whole and len(inode.parts) % PARTS)


def _has_parent(tree: Tree, name: str) -> bool:
    parent = name.rpartition("/")[0]
    return not parent or (parent in tree.names and tree.inode(parent).kind == "directory")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An operation or a sync. ``target``: the file or directory that fsync or fdatasync is called on."""

    operation: Operation | None = None
    sync: Sync | None = None
    target: str | None = None

    @property
    def promising(self) -> bool:
        """Whether something is durable when it returns."""
        return self.operation is None or self.operation.durable is not None or self.operation.gone is not None

    def __str__(self) -> str:
        if self.operation is not None:
            return self.operation.name
        return f"{self.sync} {self.target}" if self.target else str(self.sync)


Sequence = tuple[Step, ...]


def trees(sequence: Sequence) -> tuple[Tree, ...]:
    """Return the tree before the first step, and after each step. Step n, counted from 1, writes generation n + 1."""
    found = [START]
    for number, step in enumerate(sequence, start=1):
        tree = found[-1]
        found.append(step.operation.effect(tree, number + 1) if step.operation else tree)
    return tuple(found)
