"""Steps of a sequence, which are operations on its directory and syncs, and the tree after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fslab.crash.tree import START, Inode, Kind, Tree


class Sync(StrEnum):
    """The calls with which an application makes its changes durable."""

    FSYNC = "fsync"
    FDATASYNC = "fdatasync"
    DIRECTORY = "fsync-directory"
    SYNC = "sync"


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """``effect`` returns the tree after the operation; ``run`` performs it in a directory. Both get the generation to
    write.

    ``needs``: names that must exist; files among them must have ``least`` blocks, and an extended attribute if the
    operation removes one (``removed``). ``makes``: names that must not exist. ``target``: the name to call fsync on
    afterwards, if any. ``durable``: the name and the only block that are durable when it returns (O_SYNC, msync).
    ``gone``: the
    name whose removal is durable when it returns, if the file system promises that (``Promises.removal``).
    ``kind``: what its ``needs`` are.
    ``metadata``: it writes no contents of files.
    ``shifts``: it moves the target's blocks, extent by extent; meanwhile there are holes between them.
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
    gone: str | None = None
    kind: Kind = "file"
    shifts: bool = False
    metadata: bool = False

    def possible(self, tree: Tree) -> bool:
        """Return whether it is possible on this tree. All ``needs`` must be of its ``kind``, but not ``d``."""
        there = all(name in tree.names and self._fits(name, tree.inode(name)) for name in self.needs)
        return there and not any(name in tree.names for name in self.makes)

    def _fits(self, name: str, inode: Inode) -> bool:
        fits = len(inode.blocks) >= self.least and not (self.removed and inode.attribute is None)
        return name == "d" or (inode.kind == self.kind and fits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An operation or a sync. ``target``: the file that fsync or fdatasync is called on."""

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
