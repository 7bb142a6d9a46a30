"""Turn a trace into figures of its trial, and check whether the trace may be used. Pure.

Among them, whether the slowest operations of a run overlapped commits of the journal more often than all operations
did. This shows a coincidence, not a cause: commits and slow operations may have a common cause.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fslab.tracing import RingFigures, Split, Trace, Traffic
from fslab.trial_record import Value
from fslab.units import Unit

SHARE_OFF = 0.005
_NAMED = 6


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


def values(trace: Trace, operations: Operations | None = None) -> dict[str, Value]:
    """Return figures by name; all names begin with ``traced_``, and figures that were not traced are missing.

    ``operations``: the operations that the tool logged, compared with the commits of the journal. ``traced_off`` is the
    share by which the traced written bytes differ from the block device's own count.
    """
    found = {"traced_idle_bytes": Value(value=trace.idle_bytes, unit=Unit.BYTES)}
    if trace.method is not None:
        written = _of(trace.split, "W", "WM")
        found |= {
            "traced_written_bytes": Value(value=written.bytes, unit=Unit.BYTES),
            "traced_metadata_bytes": Value(value=_of(trace.split, "WM").bytes, unit=Unit.BYTES),
            "traced_metadata_requests": Value(value=_of(trace.split, "WM").requests, unit=Unit.COUNT),
            "traced_off": Value(value=_off(trace), unit=Unit.RATIO),
        }
    if operations is not None:
        found |= _of_operations(operations)
    return found | (_of_ring(trace.ring) if trace.ring else {})


def texts(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the method, what is absent, which tasks submitted the bytes, and which kernel functions ran longest."""
    found = {"trace_absent": trace.absent, "trace_withdrawn": tuple(withdrawn(trace))}
    if trace.method is not None:
        found["trace_method"] = (trace.method.value,)
    if trace.ring is not None:
        total = sum(trace.ring.submitted.values())
        found["submitters"] = tuple(
            f"{task} {100 * sent / total:.0f} %"
            for task, sent in [*trace.ring.submitted.items()][:_NAMED]
            if total
        )
        found["kernel_work"] = tuple(
            f"{function} {time_s:.3f} s" for function, time_s in [*trace.ring.work_s.items()][:_NAMED]
        )
    return found


def withdrawn(trace: Trace) -> list[str]:
    """Return the reasons why this trace may not be used; empty if there are none."""
    found = []
    if trace.idle_bytes:
        found.append(f"{trace.idle_bytes} bytes were written in {trace.idle_s:g} s in which nothing ran")
    if trace.method is None:
        return found
    off = _off(trace)
    if off is None:
        found.append(
            "the block device does not count requests (queue/iostats is 0), so the trace cannot be checked"
        )
    elif off > SHARE_OFF:
        found.append(f"the traced bytes differ by {100 * off:.1f} % from the block device's own count")
    return found


def _off(trace: Trace) -> float | None:
    counted = trace.stat.get("W")
    if counted is None:
        return None
    traced = _of(trace.split, "W", "WM").bytes
    return abs(traced - counted.bytes) / counted.bytes if counted.bytes else float(traced > 0)


def _of(split: Split, *kinds: str) -> Traffic:
    return sum((split[kind] for kind in kinds if kind in split), Traffic())


def _of_operations(operations: Operations) -> dict[str, Value]:
    return {
        "traced_operations": Value(value=operations.count, unit=Unit.COUNT),
        "traced_slow_operations": Value(value=operations.slow, unit=Unit.COUNT),
        "traced_slow_from": Value(value=1e9 * operations.threshold_s, unit=Unit.NANOSECONDS),
        "traced_slow_in_commits": Value(value=100 * operations.share_slow, unit=Unit.PERCENT),
        "traced_chance_in_commits": Value(value=100 * operations.share_chance, unit=Unit.PERCENT),
        "traced_all_in_commits": Value(value=100 * operations.share_all, unit=Unit.PERCENT),
    }


def _of_ring(ring: RingFigures) -> dict[str, Value]:
    found = {
        f"traced_{place}_written_bytes": Value(value=traffic.bytes, unit=Unit.BYTES)
        for place, traffic in ring.by_place.items()
    }
    found |= {
        f"traced_{place}_writes": Value(value=traffic.requests, unit=Unit.COUNT)
        for place, traffic in ring.by_place.items()
    }
    requests, journal_s = ring.written.requests, sum(end - start for start, end in ring.commits_s)
    found["traced_writes"] = Value(value=requests, unit=Unit.COUNT)
    if requests:
        found["traced_sequential"] = Value(value=100 * ring.sequential / requests, unit=Unit.PERCENT)
        for percent in (50, 90):
            found[f"traced_write_p{percent}"] = Value(value=_size(ring, percent), unit=Unit.BYTES)
        found["traced_write_mean"] = Value(value=ring.written.bytes / requests, unit=Unit.BYTES)
    found["traced_journal_commits"] = Value(value=len(ring.commits_s), unit=Unit.COUNT)
    found["traced_journal_commit_time"] = Value(value=journal_s, unit=Unit.SECONDS)
    return found


def _size(ring: RingFigures, percent: int) -> int | None:
    """Return the size that ``percent`` of the non-empty writes do not exceed."""
    left = ring.written.requests * percent / 100
    for size, requests in sorted(ring.sizes.items()):
        left -= requests
        if left <= 0:
            return size
    return None


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


def logged_operations(lines: Iterable[str]) -> Iterator[tuple[float, float]]:
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
