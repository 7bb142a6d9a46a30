"""Whether the slowest operations of a run overlapped commits of the journal more often than all operations did. Pure.

This shows a coincidence, not a cause: commits and slow operations may have a common cause.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SLOWEST = 1e-3
LEAST_SLOW = 30  # fewer are not enough for a statement
_MOMENTS = 499
_LOG_S = 1e-3  # fio logs the end of an operation in whole milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Operations:
    """Operations of a run. ``count``: all operations. ``slow``: the slowest 0.1 %, of which those that overlap one
    another count once: one stall delays all operations in flight. ``threshold_s``: the least latency of a slow one.
    ``share_slow`` and ``share_all``: shares (0 to 1) that overlapped a commit. A long operation overlaps a commit more
    easily than a short one: ``share_chance`` is the share of the slow ones if they were at other moments of the run."""

    count: int
    slow: int
    threshold_s: float
    share_slow: float
    share_all: float
    share_chance: float


def coincidence(
    commits_s: Sequence[tuple[float, float]], operations: Sequence[tuple[float, float]]
) -> Operations | None:
    """Compare operations with commits; None with fewer than 30 slow operations that do not overlap one another.

    ``operations`` are (end, latency) in seconds, on the clock of the commits.
    """
    by_latency = sorted(operations, key=lambda operation: -operation[1])
    chosen = by_latency[: math.ceil(len(operations) * SLOWEST)]
    slowest = [(end, end - start) for start, end in _merged([(end - took, end) for end, took in chosen])]
    if len(slowest) < LEAST_SLOW:
        return None
    merged = _merged(commits_s)
    starts = [start for start, _ in merged]

    def share(some: Sequence[tuple[float, float]]) -> float:
        within = (_overlaps(merged, starts, end - latency, end + _LOG_S) for end, latency in some)
        return sum(within) / len(some)

    first, last = min(end for end, _ in operations), max(end for end, _ in operations)
    moments = [first + (last - first) * index / _MOMENTS for index in range(_MOMENTS)]
    return Operations(
        count=len(operations),
        slow=len(slowest),
        threshold_s=chosen[-1][1],
        share_slow=share(slowest),
        share_all=share(operations),
        share_chance=share([(moment, latency) for _, latency in slowest for moment in moments]),
    )


def logged(lines: Iterable[str]) -> Iterator[tuple[float, float]]:
    """Yield (end, latency) in seconds from fio's log, whose lines are milliseconds, nanoseconds, direction, size, …"""
    for line in lines:
        end_ms, latency_ns, *_ = line.split(",", 2)
        yield float(end_ms) / 1e3, int(latency_ns) / 1e9


def _merged(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _overlaps(
    spans: Sequence[tuple[float, float]], starts: Sequence[float], start: float, end: float
) -> bool:
    """Return whether a span overlaps ``start`` to ``end``. The spans are sorted and do not overlap one another, so it
    is enough to check the last span that begins before ``end``."""
    last = bisect_right(starts, end) - 1
    return last >= 0 and spans[last][1] >= start
