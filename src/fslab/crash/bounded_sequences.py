"""Make sequences of operations: all short ones, after Mohan et al., "Finding Crash-Consistency Bugs with Bounded
Black-Box Crash Testing" (OSDI 2018), a sample of them, those of published bugs, or those that the user gives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from math import prod
from random import Random

from fslab.crash import operations
from fslab.crash.operations import operation
from fslab.crash.published_bugs import SCENARIOS
from fslab.crash.steps import Operation, Sequence, Step, Sync
from fslab.crash.tree import START, Tree
from fslab.crash.trial_request import Alphabet

OTHER = "b"  # a file that is not the one of the operation, to call fsync on
NEAR_SHARE = 2  # half of a sample is near known bugs


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceSpace:
    """All sequences of ``length`` operations, in order.

    After each operation comes no sync or one of several, after the last operation one of more. ``promising``: only
    those whose last step makes a promise. ``near``: only operations of bugs that were found often.
    """

    length: int
    alphabet: Alphabet = Alphabet.ALL
    promising: bool = False
    near: bool = False
    _ends: list[int] = field(default_factory=list)
    _starts: list[tuple[Operation, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Count the sequences that begin with each choice of all operations but the last."""
        for start in self._chosen(self.length - 1, START):
            tree = _after_all(start)
            syncs = prod(len(choices) for _, choices in self._syncs(start))
            self._starts.append(start)
            self._ends.append(syncs * sum(len(self._last(each, tree)) for each in self._possible(tree)))
        self._ends[:] = accumulate(self._ends)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> Sequence:
        if not 0 <= number < len(self):
            raise IndexError(number)
        at = bisect_right(self._ends, number)
        start, number = self._starts[at], number - (self._ends[at - 1] if at else 0)
        tree, pairs = _after_all(start), []
        for each, choices in self._syncs(start):
            number, which = divmod(number, len(choices))
            pairs.append((each, choices[which]))
        for each in self._possible(tree):
            last = self._last(each, tree)
            if number < len(last):
                return _joined([*pairs, (each, last[number])])
            number -= len(last)
        raise AssertionError("the counts of the sequences are wrong")

    def __iter__(self) -> Iterator[Sequence]:
        return (self[number] for number in range(len(self)))

    def _chosen(self, length: int, tree: Tree) -> Iterator[tuple[Operation, ...]]:
        if not length:
            yield ()
            return
        for each in self._possible(tree):
            for rest in self._chosen(length - 1, each.effect(tree, 2)):
                yield (each, *rest)

    def _syncs(self, start: tuple[Operation, ...]) -> Iterator[tuple[Operation, list[Step | None]]]:
        """Yield each operation with what may come after it."""
        tree = START
        for each in start:
            tree = each.effect(tree, 2)
            yield each, _between(_target(each, tree), self.alphabet)

    def _possible(self, tree: Tree) -> Iterator[Operation]:
        texts = operations.METADATA if self.alphabet is Alphabet.METADATA else operations.ALL
        known = (operation(text) for text in texts if not self.near or text in operations.NEAR)
        return (each for each in known if each.possible(tree))

    def _last(self, chosen: Operation, tree: Tree) -> list[Step | None]:
        after = chosen.effect(tree, 2)
        every = _after_last(_target(chosen, after), self.alphabet, other=OTHER in after.names)
        if not self.promising:
            return every
        return [step for step in every if (step or Step(operation=chosen)).promising]


space = cache(SequenceSpace)  # counting takes a second for three operations


def _after_all(chosen: tuple[Operation, ...]) -> Tree:
    tree = START
    for each in chosen:
        tree = each.effect(tree, 2)
    return tree


def _joined(pairs: list[tuple[Operation, Step | None]]) -> Sequence:
    steps = ((Step(operation=each), sync) for each, sync in pairs)
    return tuple(step for pair in steps for step in pair if step is not None)


def _target(chosen: Operation, after: Tree) -> str | None:
    """Return the name to call fsync on after an operation; None if there is none."""
    return chosen.target if after.synced(chosen.target) else None


def _between(target: str | None, alphabet: Alphabet) -> list[Step | None]:
    own = Step(sync=Sync.DIRECTORY) if target is None else Step(sync=Sync.FSYNC, target=target)
    return [None, own] if alphabet is Alphabet.METADATA else [None, own, Step(sync=Sync.SYNC)]


def _after_last(target: str | None, alphabet: Alphabet, *, other: bool) -> list[Step | None]:
    found: list[Step | None] = [None]
    everything = alphabet is not Alphabet.METADATA
    if target is not None:
        found.append(Step(sync=Sync.FSYNC, target=target))
        if everything:
            found.append(Step(sync=Sync.FDATASYNC, target=target))
    found.append(Step(sync=Sync.DIRECTORY))
    if everything:
        found.append(Step(sync=Sync.SYNC))
        parent = (target or "").rpartition("/")[0]
        found += [Step(sync=Sync.FSYNC, target=each) for each in (parent,) if each]
        found += [Step(sync=Sync.FSYNC, target=OTHER)] * (other and target != OTHER)
    return found


def enumerated(
    length: int, alphabet: Alphabet = Alphabet.ALL, *, promising: bool = False
) -> Iterator[Sequence]:
    """Yield all sequences of 1 to ``length`` operations; if ``promising``, those whose last step makes a promise."""
    if alphabet is Alphabet.PUBLISHED:
        yield from published()
        return
    for operations_each in range(1, length + 1):
        yield from space(length=operations_each, alphabet=alphabet, promising=promising)


@cache
def published() -> tuple[Sequence, ...]:
    """Return the sequences of all published bugs."""
    texts = dict.fromkeys(text for each in SCENARIOS for text in each.sequences)
    return tuple(parse(text.split("; ")) for text in texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceSample:
    """Sequences, and for each length how many of how many there are."""

    sequences: tuple[Sequence, ...]
    lengths: dict[int, tuple[int, int]]


def sampled(
    length: int, count: int, random: Random, alphabet: Alphabet = Alphabet.ALL, *, promising: bool = False
) -> SequenceSample:
    """Return at most ``count`` of the sequences of :func:`enumerated`, as many of each length as there are and fit.

    Of each length, those of published bugs come first, then as many of operations near them, then any.
    """
    found: list[Sequence] = []
    lengths = {}
    for operations_each in range(1, length + 1):
        every = space(length=operations_each, alphabet=alphabet, promising=promising)
        share = min((count - len(found)) // (length - operations_each + 1), len(every))
        near = space(length=operations_each, alphabet=alphabet, promising=True, near=True)
        own = _sampled_of(every, near, share, random, known=alphabet is Alphabet.ALL)
        found += own
        lengths[operations_each] = (len(own), len(every))
    return SequenceSample(sequences=tuple(found), lengths=lengths)


def _sampled_of(
    every: SequenceSpace, near: SequenceSpace, share: int, random: Random, *, known: bool
) -> list[Sequence]:
    if share == len(every):
        return list(every)
    of_length = [
        each
        for each in published()
        if known and sum(step.operation is not None for step in each) == every.length
    ]
    found = random.sample(of_length, min(len(of_length), share // NEAR_SHARE))
    taken = {tuple(map(str, each)) for each in found}
    half = len(found) + (share - len(found)) // NEAR_SHARE
    for number in random.sample(range(len(near)), min(half, len(near))):
        each = near[number]
        if len(found) < half and (text := tuple(map(str, each))) not in taken:
            taken.add(text)
            found.append(each)
    while len(found) < share:
        each = every[random.randrange(len(every))]
        if (text := tuple(map(str, each))) not in taken:
            taken.add(text)
            found.append(each)
    return found


def parse(steps: list[str]) -> Sequence:
    """Return the sequence of these steps. ValueError for an unknown step, or one that is not possible at its place."""
    found = tuple(_step(text) for text in steps)
    tree = START
    for step in found:
        impossible = step.operation is not None and not step.operation.possible(tree)
        if impossible or (step.target is not None and not tree.synced(step.target)):
            raise ValueError(f"'{step}' is not possible at this point of the sequence")
        tree = step.operation.effect(tree, 2) if step.operation else tree
    return found


def _step(text: str) -> Step:
    sync, _, target = text.partition(" ")
    if sync in list(Sync) and bool(target) == Sync(sync).named and text not in operations.SYNCS:
        return Step(sync=Sync(sync), target=target or None)
    return Step(operation=operation(text))
