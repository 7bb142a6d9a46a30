"""A sequence up to a cut: the tree after each step, and the last step that made each part of it durable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fslab.crash.contents import HOLE
from fslab.crash.steps import Sequence, Step, Sync, trees
from fslab.crash.tree import START, TOP, Entry, Inode, Tree
from fslab.storage.crash_promises import Promises

SETUP = 0  # the files that a sequence starts from are durable


@dataclass(kw_only=True, slots=True)
class History:
    """A sequence up to a cut: ``done`` steps had returned, and ``begun`` steps had begun (as many, or one more).

    ``entries``: those of each tree. ``names``, ``data``, ``modes``, ``attributes``, ``parts``: the last step that made
    each directory entry, each file's contents, its permissions with owner and time, its attribute, and each part of a
    file durable.
    """

    number: int
    steps: Sequence
    done: int
    begun: int
    promises: Promises
    trees: tuple[Tree, ...] = ()
    entries: tuple[dict[Entry, int], ...] = ()
    names: dict[Entry, int] = field(default_factory=dict)
    data: dict[int, int] = field(default_factory=dict)
    modes: dict[int, int] = field(default_factory=dict)
    attributes: dict[int, int] = field(default_factory=dict)
    parts: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trees = trees(self.steps)
        self.entries = tuple(tree.entries() for tree in self.trees)
        for at, step in enumerate(self.steps[: self.done], start=1):
            self._promised(at, step)

    def _promised(self, at: int, step: Step) -> None:
        now = self.trees[at]
        if self.promises.at_once.given:
            changed = self.entries[at - 1].items() ^ self.entries[at].items()
            self.names |= dict.fromkeys((entry for entry, _ in changed), at)
        if step.operation is not None and step.operation.durable is not None:
            name, parts = step.operation.durable  # POSIX, O_SYNC and msync: only this write is durable
            which = parts(now.inode(name))
            self.parts |= dict.fromkeys(((now.names[name], part) for part in which), at)
        elif step.operation is not None and step.operation.gone is not None:
            self._synced(self.trees[at - 1].names[step.operation.gone], at)
        elif step.sync is Sync.SYNC:
            self.names |= dict.fromkeys(self._ever(at), at)
            for durable in (self.data, self.modes, self.attributes):
                durable.update(dict.fromkeys(now.inodes, at))
        elif step.sync is Sync.DIRECTORY:
            self._listed(TOP, at)
        elif step.target is not None:
            self._synced_by_name(step, at)

    def _synced_by_name(self, step: Step, at: int) -> None:
        inode = self.trees[at].names[step.target or ""]
        if step.sync is Sync.FDATASYNC:
            self.data[inode] = at
            return
        self._synced(inode, at)
        if self.trees[at].inodes[inode].kind == "directory":
            self._listed(inode, at)

    def _listed(self, directory: int, at: int) -> None:
        """Note that fsync of a directory made its entries durable."""
        if self.promises.directories.given:
            self.names |= {entry: at for entry in self._ever(at) if entry[0] == directory}

    def _synced(self, inode: int, at: int) -> None:
        """Note what fsync of a file made durable. The file may have lost its last name while it was open."""
        self.data[inode] = self.modes[inode] = at
        if self.promises.attributes.given:
            self.attributes[inode] = at
        if self.promises.names.given:
            self.names |= dict.fromkeys(self._kept_names(inode, at), at)
        if self.promises.removal.given:
            # Not if another file has the name now: that one need not be durable.
            past = {
                entry for entries in self.entries[:at] for entry, other in entries.items() if other == inode
            }
            self.names |= {entry: at for entry in past if entry not in self.entries[at]}

    def _kept_names(self, inode: int, at: int) -> Iterator[Entry]:
        """Yield the entries that fsync of a file keeps: its own, and those of new directories that lead to it.

        If the removal of names is not promised, only a name that was free before is (ext4_rename adds no entry over
        another), and none if the file has names in several directories (ext4_sync_parent takes any of them).
        """
        own = [entry for entry, number in self.entries[at].items() if number == inode]
        if not self.promises.removal.given:
            own = [entry for entry in own if {self._former(entry, at)} <= {None, inode}]
            own = own if len({directory for directory, _ in own}) == 1 else []
        for entry in own:
            yield entry
            yield from self._new_directories(entry[0], at)

    def _former(self, entry: Entry, at: int) -> int | None:
        """Return the last other inode that had this entry before step ``at``; the present one if there was none."""
        now = self.entries[at].get(entry)
        before = (entries.get(entry) for entries in reversed(self.entries[:at]))
        return next((number for number in before if number != now), now)

    def _new_directories(self, directory: int, at: int) -> Iterator[Entry]:
        """Yield the entries of this directory and of those above it that the sequence made, and never renamed."""
        while directory != TOP and directory not in START.inodes:
            ever = [
                entry
                for entries in self.entries[: at + 1]
                for entry, number in entries.items()
                if number == directory
            ]
            if len(set(ever)) != 1:
                return
            yield ever[0]
            directory = ever[0][0]

    def _ever(self, at: int) -> set[Entry]:
        return {entry for entries in self.entries[: at + 1] for entry in entries}

    @property
    def promising(self) -> set[int]:
        """The steps with a promise that no later step made again."""
        every = (self.names, self.data, self.modes, self.attributes, self.parts)
        return {step for durable in every for step in durable.values()}

    def of_inode(self, inode: int) -> set[int]:
        """Return the steps that promised anything of this file itself."""
        own = (durable[inode] for durable in (self.data, self.modes, self.attributes) if inode in durable)
        return {*own, *(step for (number, _), step in self.parts.items() if number == inode)}

    def allowed(self, name: str) -> tuple[set[int | None], int]:
        """Return the inodes to which a path may lead, None for none, and the last step that made an entry of the path
        durable. Assumes no order between entries."""
        found: set[int | None] = {TOP}
        floors = {SETUP}
        for each in name.split("/"):
            directories, found = found, set[int | None]()
            for directory in directories:
                if directory is None:
                    found.add(None)
                    continue
                floor = self.names.get((directory, each), SETUP)
                found |= {entries.get((directory, each)) for entries in self.entries[floor : self.begun + 1]}
                floors.add(floor)
        return found, max(floors)

    def durable(self) -> dict[int, int]:
        """Return the inodes that have a durable name, and since which step."""
        named = {
            self.entries[step][entry]: step
            for entry, step in self.names.items()
            if entry in self.entries[step]
        }
        return named | dict.fromkeys(START.inodes, SETUP)

    def since(self, step: int) -> tuple[Tree, ...]:
        """Return each tree that the directory may have: the one after this step, and all later ones."""
        return self.trees[step : self.begun + 1]

    def versions(self, inode: int, step: int) -> list[Inode]:
        """Return the inode after this step and after each later one. States within an operation come first."""
        after = [tree.inodes[inode] for tree in self.since(step) if inode in tree.inodes]
        return [*self._between(inode, step), *after]

    def _between(self, inode: int, step: int) -> Iterator[Inode]:
        """Yield a version full of holes for each later operation that shifts the inode's parts."""
        for at in range(step + 1, self.begun + 1):
            operation = self.steps[at - 1].operation
            pair = [tree.inodes[inode] for tree in self.trees[at - 1 : at + 1] if inode in tree.inodes]
            if operation is not None and operation.shifts and len(set(pair)) > 1:
                largest = max(pair, key=lambda version: version.size)
                yield replace(largest, parts=(HOLE,) * len(largest.parts))

    def stayed(self, inode: int, born: int) -> bool:
        """Return whether the inode had a name after each step since ``born``."""
        return all(inode in tree.names.values() for tree in self.trees[born : self.begun + 1])

    def replaced(self, name: str, inode: int) -> int | None:
        """Return the step that renamed this inode over another one called ``name``; None if no step did."""
        for at in range(1, self.begun + 1):
            before, after = (tree.names.get(name) for tree in self.trees[at - 1 : at + 1])
            operation = self.steps[at - 1].operation
            renamed = operation is not None and operation.name.startswith("rename ")
            if renamed and after == inode and before not in {None, inode}:
                return at
        return None
