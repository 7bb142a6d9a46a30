"""Operations on a sequence's directory: what each does to the tree, and how it is done for real. And the exhaustive
short sequences of them, after Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing"
(OSDI 2018).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from random import Random

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES, Place
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

    ``needs`` are names that must exist, with ``least`` blocks where they are files, ``makes`` names that must not;
    ``target`` is the name to call fsync on afterwards, if any. ``durable``: the name and the block that are durable
    when it returns (O_SYNC, msync), and no other.
    """

    name: str
    effect: Callable[[Tree, int], Tree]
    run: Callable[[Path, int, Tree, int], None]
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    least: int = 0
    target: str | None = None
    durable: tuple[str, int] | None = None

    def possible(self, tree: Tree) -> bool:
        """Whether it can be done on this tree, where ``needs`` are files, but for the directory ``d``."""
        there = all(name in tree.names and self._fits(name, tree.inode(name)) for name in self.needs)
        return there and not any(name in tree.names for name in self.makes)

    def _fits(self, name: str, inode: Inode) -> bool:
        return name == "d" or (inode.kind == "file" and len(inode.blocks) >= self.least)


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


def _write(file: str, block: int, flags: int = 0) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        place = Place(sequence=sequence, inode=after.names[file], block=block)
        descriptor = os.open(directory / file, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        try:
            with mmap.mmap(-1, BLOCK_BYTES) as aligned:  # as O_DIRECT wants it
                aligned[:] = contents.block(place, generation)
                os.pwritev(descriptor, [aligned], block * BLOCK_BYTES)
        finally:
            os.close(descriptor)

    return run


def _store(*, synchronize: bool) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        place = Place(sequence=sequence, inode=after.names["a"], block=0)
        with (directory / "a").open("r+b") as file, mmap.mmap(file.fileno(), BLOCK_BYTES) as mapped:
            mapped[:] = contents.block(place, generation)
            if synchronize:
                mapped.flush()  # msync(MS_SYNC)

    return run


def _create(directory: Path, sequence: int, after: Tree, generation: int) -> None:
    for block in range(len(after.inode("n").blocks)):
        _write("n", block)(directory, sequence, after, generation)


def _touch(directory: Path, *_: object) -> None:
    os.close(os.open(directory / "n", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _writes(file: str, block: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, generation: tree.changed(
        tree.names[file], tree.inode(file).written(block, generation)
    )


def _resizes(file: str, blocks: int) -> Callable[[Tree, int], Tree]:
    return lambda tree, _: tree.changed(tree.names[file], tree.inode(file).resized(blocks))


def _renames(old: str, new: str) -> Callable[[Tree, int], Tree]:
    return lambda tree, _: tree.unnamed(old).named(new, tree.names[old])


def _appends(tree: Tree, generation: int) -> Tree:
    return _writes("a", len(tree.inode("a").blocks))(tree, generation)


def _append(flags: int = 0) -> Callable[[Path, int, Tree, int], None]:
    def run(directory: Path, sequence: int, after: Tree, generation: int) -> None:
        _write("a", len(after.inode("a").blocks) - 1, flags)(directory, sequence, after, generation)

    return run


_TWO = 2 * BLOCK_BYTES
_STAMPED = Inode(size=_TWO)
OPERATIONS = (
    Operation(
        name="create n", makes=("n",), target="n", run=_touch,
        effect=lambda tree, _: tree.added("n", Inode()),
    ),
    Operation(
        name="write n", makes=("n",), target="n", run=_create,
        effect=lambda tree, new: tree.added("n", Inode(blocks=(new, new), size=_TWO)),
    ),
    Operation(name="append a", needs=("a",), target="a", run=_append(), effect=_appends),
    Operation(name="append a with O_DIRECT", needs=("a",), target="a", run=_append(os.O_DIRECT), effect=_appends),
    Operation(name="overwrite a", needs=("a",), target="a", run=_write("a", 0), effect=_writes("a", 0)),
    Operation(
        name="overwrite a with O_SYNC", needs=("a",), run=_write("a", 0, os.O_SYNC), effect=_writes("a", 0),
        durable=("a", 0),
    ),
    Operation(
        name="overwrite a with O_DIRECT", needs=("a",), target="a", run=_write("a", 0, os.O_DIRECT),
        effect=_writes("a", 0),
    ),
    Operation(
        name="store to a with mmap", needs=("a",), least=1, target="a", run=_store(synchronize=False),
        effect=_writes("a", 0),
    ),
    Operation(
        name="store to a with mmap and msync", needs=("a",), least=1, run=_store(synchronize=True),
        effect=_writes("a", 0), durable=("a", 0),
    ),
    Operation(
        name="truncate a to 1 block", needs=("a",), target="a", effect=_resizes("a", 1),
        run=lambda directory, *_: os.truncate(directory / "a", BLOCK_BYTES),
    ),
    Operation(
        name="truncate a to 5 blocks", needs=("a",), target="a", effect=_resizes("a", 5),
        run=lambda directory, *_: os.truncate(directory / "a", 5 * BLOCK_BYTES),
    ),
    Operation(
        name="link a l", needs=("a",), makes=("l",), target="l",
        effect=lambda tree, _: tree.named("l", tree.names["a"]),
        run=lambda directory, *_: os.link(directory / "a", directory / "l"),
    ),
    Operation(
        name="symlink a s", makes=("s",), run=lambda directory, *_: (directory / "s").symlink_to("a"),
        effect=lambda tree, _: tree.added("s", Inode(kind="symlink", target="a")),
    ),
    Operation(
        name="rename a r", needs=("a",), makes=("r",), target="r", effect=_renames("a", "r"),
        run=lambda directory, *_: (directory / "a").rename(directory / "r"),
    ),
    Operation(
        name="rename a d/r", needs=("a", "d"), makes=("d/r",), target="d/r", effect=_renames("a", "d/r"),
        run=lambda directory, *_: (directory / "a").rename(directory / "d/r"),
    ),
    Operation(
        name="rename b over a", needs=("a", "b"), target="a", effect=_renames("b", "a"),
        run=lambda directory, *_: (directory / "b").rename(directory / "a"),
    ),
    Operation(
        name="rename n over a", needs=("a", "n"), target="a", effect=_renames("n", "a"),
        run=lambda directory, *_: (directory / "n").rename(directory / "a"),
    ),
    Operation(
        name="unlink a", needs=("a",), effect=lambda tree, _: tree.unnamed("a"),
        run=lambda directory, *_: (directory / "a").unlink(),
    ),
    Operation(
        name="mkdir m", makes=("m",), target="m", run=lambda directory, *_: (directory / "m").mkdir(),
        effect=lambda tree, _: tree.added("m", Inode(kind="directory")),
    ),
)  # fmt: skip


def exhaustive(length: int) -> Iterator[Sequence]:
    """All sequences of so many operations, each followed by nothing or fsync, the last by nothing or any sync."""
    for chosen in product(OPERATIONS, repeat=length):
        yield from _synced(chosen)


def sampled(length: int, count: int, random: Random) -> list[Sequence]:
    """So many of the sequences of 1 to ``length`` operations: all short ones first, as many as fit."""
    found: list[Sequence] = []
    for operations in range(1, length + 1):
        every = list(exhaustive(operations))
        room = count - len(found)
        found += every if len(every) <= room else random.sample(every, room)
    return found


def _synced(chosen: tuple[Operation, ...]) -> Iterator[Sequence]:
    tree = START
    for operation in chosen:
        if not operation.possible(tree):
            return
        tree = operation.effect(tree, 2)
    last = len(chosen) - 1
    for syncs in product(*(_after(operation, last=at == last) for at, operation in enumerate(chosen))):
        steps = ((Step(operation=operation), sync) for operation, sync in zip(chosen, syncs, strict=True))
        yield tuple(step for pair in steps for step in pair if step is not None)


def _after(operation: Operation, *, last: bool) -> list[Step | None]:
    found: list[Step | None] = [None]
    if operation.target is not None:
        found.append(Step(sync=Sync.FSYNC, target=operation.target))
        if last:
            found.append(Step(sync=Sync.FDATASYNC, target=operation.target))
    if last or operation.target is None:
        found.append(Step(sync=Sync.DIRECTORY))
    if last:
        found.append(Step(sync=Sync.SYNC))
    return found


def parse(steps: list[str]) -> Sequence:
    """A sequence from the texts of its steps; ValueError for what is none, or cannot be done."""
    known = {operation.name: operation for operation in OPERATIONS}
    found = []
    for text in steps:
        if text in known:
            found.append(Step(operation=known[text]))
            continue
        sync, _, target = text.partition(" ")
        if sync not in list(Sync):
            raise ValueError(f"invalid step '{text}'")
        found.append(Step(sync=Sync(sync), target=target or None))
    _check_possible(found)
    return tuple(found)


def _check_possible(steps: list[Step]) -> None:
    tree = START
    for step in steps:
        impossible = step.operation is not None and not step.operation.possible(tree)
        if impossible or (step.target is not None and step.target not in tree.names):
            raise ValueError(f"'{step}' is not possible at this point of the sequence")
        tree = step.operation.effect(tree, 2) if step.operation else tree
