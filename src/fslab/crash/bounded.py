"""Make sequences of operations: all short ones, after Mohan et al., "Finding Crash-Consistency Bugs with Bounded
Black-Box Crash Testing" (OSDI 2018), or those that the user gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from random import Random

from fslab.crash.operations import OPERATIONS
from fslab.crash.steps import Operation, Sequence, Step, Sync
from fslab.crash.tree import START


class Alphabet(StrEnum):
    """What sequences are made of: everything, or operations that write no contents of files, and fsync of files and of
    the directory."""

    ALL = "all"
    METADATA = "metadata"


def exhaustive(length: int, alphabet: Alphabet = Alphabet.ALL) -> Iterator[Sequence]:
    """Yield all sequences of ``length`` operations.

    After each operation comes no sync or an fsync; after the last operation comes no sync or any kind of sync.
    """
    known = [each for each in OPERATIONS if each.metadata or alphabet is Alphabet.ALL]
    for chosen in product(known, repeat=length):
        yield from _synced(chosen, alphabet)


def enumerated(
    length: int, alphabet: Alphabet = Alphabet.ALL, *, promising: bool = False
) -> Iterator[Sequence]:
    """Yield all sequences of 1 to ``length`` operations; if ``promising``, those whose last step makes a promise."""
    for operations in range(1, length + 1):
        every = exhaustive(operations, alphabet)
        yield from (each for each in every if each[-1].promising or not promising)


def sampled(
    length: int,
    count: int,
    random: Random,
    alphabet: Alphabet = Alphabet.ALL,
    *,
    promising: bool = False,
) -> list[Sequence]:
    """Return at most ``count`` of the sequences of :func:`enumerated`.

    These are all sequences of the short lengths while they fit, then a random sample of the next length.
    """
    found: list[Sequence] = []
    for operations in range(1, length + 1):
        every = [each for each in exhaustive(operations, alphabet) if each[-1].promising or not promising]
        room = count - len(found)
        found += every if len(every) <= room else random.sample(every, room)
    return found


def _synced(chosen: tuple[Operation, ...], alphabet: Alphabet) -> Iterator[Sequence]:
    tree = START
    for operation in chosen:
        if not operation.possible(tree):
            return
        tree = operation.effect(tree, 2)
    last = len(chosen) - 1
    for syncs in product(
        *(_after(operation, alphabet, last=at == last) for at, operation in enumerate(chosen))
    ):
        steps = ((Step(operation=operation), sync) for operation, sync in zip(chosen, syncs, strict=True))
        yield tuple(step for pair in steps for step in pair if step is not None)


def _after(operation: Operation, alphabet: Alphabet, *, last: bool) -> list[Step | None]:
    found: list[Step | None] = [None]
    if operation.target is not None:
        found.append(Step(sync=Sync.FSYNC, target=operation.target))
        if last and alphabet is Alphabet.ALL:
            found.append(Step(sync=Sync.FDATASYNC, target=operation.target))
    if last or operation.target is None:
        found.append(Step(sync=Sync.DIRECTORY))
    if last and alphabet is Alphabet.ALL:
        found.append(Step(sync=Sync.SYNC))
    return found


def parse(steps: list[str]) -> Sequence:
    """Return the sequence of these steps. ValueError for an unknown step, or one that is not possible at its place."""
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
