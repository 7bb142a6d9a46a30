"""A sequence up to a cut: the tree after each step, and the last step that made each part of it durable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fslab.crash.contents import HOLE
from fslab.crash.steps import Sequence, Step, Sync, trees
from fslab.crash.tree import Inode, Tree
from fslab.storage.promises import Promises

SETUP = 0  # the files that a sequence starts from are durable


@dataclass(kw_only=True, slots=True)
class History:
    """A sequence up to a cut: ``done`` steps had returned, and ``begun`` steps had begun (as many, or one more)."""

    number: int
    steps: Sequence
    done: int
    begun: int
    promises: Promises
    trees: tuple[Tree, ...] = ()
    names: dict[str, int] = field(default_factory=dict)
    data: dict[int, int] = field(default_factory=dict)
    attributes: dict[int, int] = field(default_factory=dict)
    blocks: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the last step that made each name, each file's contents and attribute, and each block durable."""
        self.trees = trees(self.steps)
        for at, step in enumerate(self.steps[: self.done], start=1):
            self._promised(at, step)

    def _promised(self, at: int, step: Step) -> None:
        now = self.trees[at]
        if step.operation is not None and step.operation.durable is not None:
            name, number = step.operation.durable  # POSIX, O_SYNC and msync: only this write is durable
            self.blocks[now.names[name], number] = at
        elif step.operation is not None and step.operation.gone is not None:
            self._synced(self.trees[at - 1].names[step.operation.gone], at)
        elif step.sync is Sync.SYNC:
            self.names |= dict.fromkeys({name for tree in self.trees[: at + 1] for name in tree.names}, at)
            self.data |= dict.fromkeys(now.inodes, at)
            self.attributes |= dict.fromkeys(now.inodes, at)
        elif step.sync is Sync.DIRECTORY and self.promises.directories.given:
            every = {name for tree in self.trees[: at + 1] for name in tree.names}
            self.names |= {name: at for name in every if "/" not in name}
        elif step.target is not None:
            inode = now.names[step.target]
            if step.sync is Sync.FSYNC:
                self._synced(inode, at)
            else:
                self.data[inode] = at

    def _synced(self, inode: int, at: int) -> None:
        """Note what fsync of a file made durable. The file may have lost its last name while it was open."""
        self.data[inode] = at
        if self.promises.attributes.given:
            self.attributes[inode] = at
        named = inode in self.trees[at].names.values()
        if (self.promises.names if named else self.promises.removal).given:
            self.names |= dict.fromkeys(self._names_of(inode, at), at)

    def _names_of(self, inode: int, at: int) -> set[str]:
        past = self.trees[: at + 1]
        return {name for tree in past for name, number in tree.names.items() if number == inode}

    @property
    def promising(self) -> set[int]:
        """The steps with a promise that no later step made again."""
        return {
            *self.names.values(), *self.data.values(), *self.attributes.values(), *self.blocks.values(),
        }  # fmt: skip

    def since(self, step: int) -> tuple[Tree, ...]:
        """Return each tree that the directory may have: the one after this step, and all later ones."""
        return self.trees[step : self.begun + 1]

    def versions(self, inode: int, step: int) -> list[Inode]:
        """Return the inode after this step and after each later one. States within an operation come first."""
        after = [tree.inodes[inode] for tree in self.since(step) if inode in tree.inodes]
        return [*self._between(inode, step), *after]

    def _between(self, inode: int, step: int) -> Iterator[Inode]:
        """Yield a version full of holes for each later operation that shifts the inode's blocks."""
        for at in range(step + 1, self.begun + 1):
            operation = self.steps[at - 1].operation
            pair = [tree.inodes[inode] for tree in self.trees[at - 1 : at + 1] if inode in tree.inodes]
            if operation is not None and operation.shifts and len(set(pair)) > 1:
                largest = max(pair, key=lambda version: version.size)
                yield replace(largest, blocks=(HOLE,) * len(largest.blocks))

    def stayed(self, inode: int, born: int) -> bool:
        """Return whether the inode had a name after each step since ``born``."""
        return all(inode in tree.names.values() for tree in self.trees[born : self.begun + 1])

    def replaced(self, name: str, inode: int) -> int | None:
        """Return the step that renamed this inode over another one called ``name``; None if no step did."""
        for at in range(1, self.begun + 1):
            before, after = self.trees[at - 1].names.get(name), self.trees[at].names.get(name)
            if after == inode and before not in {None, inode}:
                return at
        return None
