"""Percentiles of operations that ran in slices, from when each of them ended and how long it took. Pure.

Of short operations, those that a freeze interrupted are left out: their times contain a wake-up and the end of a slice.
The longer an operation, the likelier it is interrupted, so each that remains counts as 1 / (1 - latency / slice)
operations (Horvitz & Thompson, JASA 1952). Of operations longer than half a slice, all count, without the frozen time.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from statistics import median

from fslab.campaign.time_slices import Timeline

_LONG = 0.5  # of a slice


def percentiles(
    operations: Iterable[tuple[float, float]], percents: Mapping[str, float], timeline: Timeline
) -> dict[str, float | None]:
    """Return the nearest-rank percentiles in ns. None if no operation is above one.

    ``operations``: (end, latency) in seconds of CLOCK_MONOTONIC. ``percents``: name → 0 to 100.
    """
    weighed = sorted(_weighed(operations, timeline))
    totals = list(accumulate(weight for _, weight in weighed))
    found: dict[str, float | None] = {}
    for name, percent in percents.items():
        # Rounding must not move a rank that is a whole number.
        rank = bisect_right(totals, totals[-1] * percent / 100 * (1 - 1e-12)) if totals else 0
        found[name] = weighed[rank][0] * 1e9 if rank + 1 < len(weighed) else None
    return found


def _weighed(operations: Iterable[tuple[float, float]], timeline: Timeline) -> Iterable[tuple[float, float]]:
    """Yield the latency of each operation that counts, in seconds in which the tool ran, and its weight."""
    begins = [begin for begin, _ in timeline.ran]
    ran_before = [0.0, *accumulate(end - begin for begin, end in timeline.ran)]
    slice_s = median(end - begin for begin, end in timeline.ran)

    def ran(at_s: float) -> tuple[int, float]:
        """Return the last slice that had begun, and how long the tool had run until then."""
        last = bisect_right(begins, at_s) - 1
        if last < 0:
            return 0, 0.0
        begin, end = timeline.ran[last]
        return last, ran_before[last] + min(at_s, end) - begin

    for end_s, latency_s in operations:
        (first, before_s), (last, after_s) = ran(end_s - latency_s), ran(end_s)
        took_s = after_s - before_s
        if took_s >= _LONG * slice_s:
            yield took_s, 1.0
        elif first == last:
            yield took_s, 1 / (1 - took_s / slice_s)
