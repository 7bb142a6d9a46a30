"""The ranking of mechanisms: which can explain why the stacks of a workload differ, and which differ most. Pure.

A mechanism is ranked by its contrast between stacks, not by its weight on one: what all have alike explains nothing.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from fslab.cell import Frozen
from fslab.explain import mechanisms
from fslab.explain.evidence import Evidence, Explanation
from fslab.explain.mechanisms import REGISTRY as MECHANISMS
from fslab.explain.mechanisms import Mechanism

NOTABLE = 1.0
ALIKE = 0.1  # × the weight, or × the run for what takes a share of it: up to this, a contrast is none
MOST_WEIGHT = 10.0
_PLAIN_WEIGHT = 5.0  # up to this, a weight counts as it is


class RankedMechanism(Frozen):
    """A mechanism. ``cells``: where it was found.

    ``contrast``: the largest difference in weight between two stacks under one workload. A mechanism that all stacks
    have ``alike`` explains no difference between them. ``opposed``: nor does this one, because each stack that has more
    of it was faster in each trial than those that have less (of what speeds up: slower). ``unknown``: nor does one that
    is known of one stack only. ``strongest``: the explanation on the stack of the two that has more, with its
    ``weight``.
    """

    mechanism: str
    summary: str
    weight: float
    contrast: float
    cells: tuple[str, ...]
    strongest: Explanation
    alike: bool
    opposed: bool
    unknown: bool

    @property
    def can_explain(self) -> bool:
        return not self.alike and not self.opposed and not self.unknown

    @property
    def why_not(self) -> str:
        """Why it explains no difference, in words; empty if it can explain one."""
        if self.unknown:
            return "unknown on the other stacks"
        if self.alike:
            return "all stacks have it alike" + ", within 10 % of the run" * (
                self.strongest.takes is not None
            )
        was = "slower" if MECHANISMS.get(self.mechanism).speeds_up else "faster"
        return f"stacks with more of it were {was} than those with less" if self.opposed else ""


def ranking(everything: Sequence[Evidence]) -> list[RankedMechanism]:
    """Return the mechanisms found: first the one in whose evidence the stacks differ most, then the strongest; those
    that cannot explain a difference are last."""
    found: dict[str, list[Explanation]] = {}
    for each in mechanisms.all_statements(everything):
        found.setdefault(each.mechanism, []).append(each)
    ranked = [_ranked(name, each_of, everything) for name, each_of in found.items()]
    return sorted(
        ranked,
        key=lambda each: (
            not each.can_explain, each.alike, -round(each.contrast, 1), MECHANISMS.get(each.mechanism).general,
            -each.contrast, -each.weight, -len(each.cells), each.mechanism,
        ),
    )  # fmt: skip


def in_order(everything: Sequence[Evidence]) -> Iterator[tuple[Evidence, list[tuple[Explanation, str]]]]:
    """Yield each cell with its statements, in the order of the ranking of all cells of its workload, and why the
    mechanism explains no difference between these."""
    ranked: dict[str, dict[str, tuple[int, str]]] = {}
    for seen in everything:
        if seen.workload not in ranked:
            beside = [each for each in everything if each.workload == seen.workload]
            places = enumerate(ranking(beside))
            ranked[seen.workload] = {each.mechanism: (place, each.why_not) for place, each in places}
        own = ranked[seen.workload]
        found = sorted(mechanisms.statements_of(seen), key=lambda each: own[each.mechanism])
        yield seen, [(each, own[each.mechanism][1]) for each in found]


def as_document(everything: Sequence[Evidence]) -> dict[str, Any]:
    """Return the ranking for JSON, and the workloads in which nothing can explain a difference.

    A mechanism's ``strongest`` names the statement; ``why_not``: null if it can explain a difference.
    """
    ranked = [
        {
            **each.model_dump(mode="json", exclude={"alike", "opposed", "unknown"}),
            "strongest": {"workload": each.strongest.workload, "stack": each.strongest.stack},
            "why_not": each.why_not or None,
        }
        for each in ranking(everything)
    ]
    return {"mechanisms": ranked, "unexplained": unexplained(everything)}


def unexplained(everything: Sequence[Evidence]) -> list[str]:
    """Return the workloads on several stacks without a mechanism that can explain a difference between these."""
    beside: dict[str, list[Evidence]] = {}
    for seen in everything:
        if seen.trials:
            beside.setdefault(seen.workload, []).append(seen)
    return [
        workload
        for workload, cells in beside.items()
        if len(cells) > 1 and not any(each.can_explain for each in ranking(cells))
    ]


def _ranked(name: str, found: Sequence[Explanation], everything: Sequence[Evidence]) -> RankedMechanism:
    """Return the mechanism as it is under the workload where it explains most."""
    known = [seen for seen in everything if seen.trials or seen.traced]
    several = len({seen.stack for seen in everything}) > 1
    under = [
        _under(
            MECHANISMS.get(name),
            [each for each in found if each.workload == workload],
            [seen for seen in known if seen.workload == workload],
            several=several,
        )
        for workload in dict.fromkeys(each.workload for each in found)
    ]
    most = max(under, key=lambda each: (each.can_explain, not each.unknown, each.contrast))
    cells = dict.fromkeys(f"{each.workload} on {each.stack}" for each in found)
    return most.model_copy(update={"cells": tuple(cells)})


def _under(
    mechanism: Mechanism, found: Sequence[Explanation], under: Sequence[Evidence], *, several: bool
) -> RankedMechanism:
    """Return the mechanism under one workload: the two stacks that differ in it most, of those that it can explain.

    ``several``: whether stacks are compared at all. What is unknown of a stack is not what the stack lacks.
    """
    stated = {each.stack for each in found}
    compared = [seen for seen in under if seen.stack in stated or mechanism.known(seen)]
    weights, timed = _weights(found, under), _timed(under)
    strongest = {each.stack: each for each in sorted(found, key=lambda each: each.weight)}
    moving = _moving(strongest, under) if timed else {}

    def least(stack: str) -> float:
        return ALIKE if timed and strongest[stack].takes is not None else ALIKE * weights[stack]

    def contrast_of(more: str, less: str) -> float:
        if more in moving:
            return _bounded(moving[more] * (1 - weights[less] / weights[more]))
        if timed and strongest[more].takes is not None:
            return _bounded(weights[more] - weights[less])
        return _bounded(weights[more]) - _bounded(weights[less])

    stack = max(strongest, key=lambda stack: weights[stack])
    contrast, opposed, alike = _bounded(weights[stack]), False, not weights[stack]
    unknown = several and len(compared) == 1
    if len(compared) > 1:
        pairs = [
            (more, less)
            for more, less in permutations(compared, 2)
            if weights[more.stack] > weights[less.stack] and mechanism.differs(more, less)
        ]
        differing = [
            (more, less)
            for more, less in pairs
            if weights[more.stack] - weights[less.stack] > least(more.stack)
        ]
        contrasts = (
            (
                not _opposed(more, less, mechanism.speeds_up),
                contrast_of(more.stack, less.stack),
                more.stack,
            )
            for more, less in differing or pairs
        )
        explains, contrast, stack = max(contrasts, default=(True, 0.0, stack))
        opposed, alike = not explains, not differing
    return RankedMechanism(
        mechanism=mechanism.name, summary=mechanism.summary, weight=_bounded(weights[stack]),
        strongest=strongest[stack],
        contrast=min(contrast, NOTABLE) if mechanism.general else contrast, cells=(), alike=alike, opposed=opposed,
        unknown=unknown,
    )  # fmt: skip


def _bounded(weight: float) -> float:
    """Return a weight below ``MOST_WEIGHT`` in the same order, so that one large ratio does not hide all else."""
    return weight if weight <= _PLAIN_WEIGHT else MOST_WEIGHT - _PLAIN_WEIGHT**2 / weight


def _weights(found: Sequence[Explanation], compared: Sequence[Evidence]) -> dict[str, float]:
    """Return the weight on each stack; 0 without an explanation.

    What takes a share of the run counts by its time for the same work, as a multiple of the time that the fastest stack
    takes for that work: so what a stack needs more of the disk or the CPU is comparable with what it is slower by.
    """
    times = {seen.stack: statistics.median(seen.times) for seen in compared} if _timed(compared) else {}
    weights = dict.fromkeys((seen.stack for seen in compared), 0.0)
    for each in found:
        weight = each.weight
        if each.takes is not None and times:
            weight = each.takes * times[each.stack] / min(times.values())
        weights[each.stack] = max(weight, weights.get(each.stack, 0.0))
    return weights


def _moving(strongest: Mapping[str, Explanation], compared: Sequence[Evidence]) -> dict[str, float]:
    """Return the time of what reads or writes on each stack, as a multiple of the time that the fastest one takes.

    That is its part of the bytes of the device, of the time in which bytes may have been moved: where that time is
    short, a large ratio of bytes explains little.
    """
    fastest = min(statistics.median(seen.times) for seen in compared)
    found = {}
    for seen in compared:
        each, share = strongest.get(seen.stack), seen.share_for_bytes
        if each is not None and each.moves is not None and share is not None:
            found[seen.stack] = each.moves * share * statistics.median(seen.times) / fastest
    return found


def _timed(compared: Sequence[Evidence]) -> bool:
    """Return whether it is known how long each stack takes for the same work."""
    return len(compared) > 1 and all(seen.times for seen in compared)


def _opposed(more: Evidence, less: Evidence, speeds_up: bool | None) -> bool:
    """Return whether the stack with more of a mechanism was faster in each trial; of what speeds up, slower."""
    fast, slow = (less, more) if speeds_up else (more, less)
    return speeds_up is not None and bool(fast.times and slow.times) and max(fast.times) < min(slow.times)


def on_page(
    everything: Sequence[Evidence], most: int
) -> tuple[tuple[Explanation, ...], tuple[Explanation, ...]]:
    """Return the strongest statement on each mechanism that can explain a difference, in the order of the ranking, and
    at most ``most`` others, those with the most weight first."""
    first = tuple(each.strongest for each in ranking(everything) if each.can_explain)
    others = [each for each in mechanisms.all_statements(everything) if each not in first]
    return first, tuple(sorted(others, key=lambda statement: -statement.weight)[:most])
