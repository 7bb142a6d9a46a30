"""What a tool measured, without the time in which it was frozen: its own clock went on. Pure.

Rates and shares of time are divided by the share of the time in which the tool ran, durations lose the frozen time. A
mean latency is multiplied by that share: of the requests in flight at a freeze, the frozen time is in the latency, and
there are as many of them as are in flight on average (Little's law). If that is less than one, it is a matter of chance
how many freezes hit a request, and a mean that depends on it is unknown. Percentiles stay where so few requests were
interrupted that they hardly change; the others, and the maximum, are unknown, unless the tool logs its operations.

Of logged short operations, those that a freeze interrupted are left out: their times contain a wake-up and the end of a
slice. The longer an operation, the likelier it is interrupted, so each that remains counts as 1 / (1 - latency / slice)
operations (Horvitz & Thompson, JASA 1952). Of operations longer than half a slice, all count, without the frozen time.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median

from fslab.campaign.time_slices import Timeline
from fslab.trial_record import Metric, Slices
from fslab.units import RATES, Unit
from fslab.workloads import Reading

_RATES = RATES | {Unit.PERCENT}
_DIRECTIONS = frozenset({"read", "write", "fsync"})
_PERCENTILE = re.compile(r"_p(\d+)(?:_(\d+))?$")
# An interrupted request is above every percentile: at most this share of those above may be interrupted ones.
_INTERRUPTED = 0.2
# A mean latency is known if its standard error, from the number of freezes that hit a request, is at most this share:
# it differs from round to round, so the interval over the rounds has it.
_MEAN_ERROR = 0.1
_LONG = 0.5  # of a slice


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    """The time over which a figure was measured: by the tool's clock, that in which the tool ran, how often it was
    frozen, and how long it ran before it was frozen first: while all tools ran at the same time."""

    length_s: float
    ran_s: float
    freezes: int
    together_s: float = 0.0


def thawed(
    reading: Reading,
    metrics: Sequence[Metric],
    timeline: Timeline,
    operations: Iterable[tuple[float, float]] | None = None,
) -> Reading:
    """Return the reading as if the tool had not been frozen. It, and ``metrics``, say when what was measured.

    A tool that does not say so measured from its first I/O on, for as long as it says. ``operations``: when each ended
    and how long it took, if the tool has logged them.
    """
    whole = _whole(reading, timeline)
    units = {metric.name: metric.unit for metric in metrics}
    parts = {name: _between(timeline, *window) for name, window in reading.part_windows.items()}
    parts |= {name: _marked(timeline, reading.parts_s[name], *mark) for name, mark in reading.marks.items()}
    spans = {name: _between(timeline, *window) for name, window in reading.windows.items()}
    spans |= {name: parts[part] for name in units for part in reading.marks if name.startswith(f"{part}_")}
    rates = {
        name: value or 0.0
        for name, value in reading.metrics.items()
        if name.endswith("_iops") or name == "ops_rate"
    }
    for name, count in reading.counts.items():
        rates[f"{name}_iops"] = count / whole.length_s if whole.length_s > 0 else 0.0
    changed = {
        name: _value(name, value, units[name], span, _in_flight(name, value, rates))
        if value is not None and (span := spans.get(name, None if spans else whole)) is not None
        else value
        for name, value in reading.metrics.items()
    }
    if operations is not None:
        changed |= slice_percentiles(operations, reading.percentiles, timeline)
    seen = (*spans.values(), *parts.values()) or (whole,)
    return replace(
        reading,
        metrics=changed,
        latencies={},
        measured_s=_measured_s(reading, whole, parts),
        parts_s={
            name: parts[name].ran_s if name in parts else took_s for name, took_s in reading.parts_s.items()
        },
        rates=(),  # over time, with gaps
        sliced=True,
        left_share=timeline.left_share,
        together_share=max((span.together_s / span.ran_s for span in seen if span.ran_s > 0), default=0.0),
    )


def _whole(reading: Reading, timeline: Timeline) -> _Span:
    if reading.whole_run:
        return _between(timeline, timeline.began_s, timeline.ended_s)
    if reading.measured_s is None:
        return _between(timeline, timeline.worked_s, timeline.ended_s)
    # Its first I/O is seen late, by more than some tools need to end after what they measure.
    began_s = max(timeline.began_s, min(timeline.worked_s, timeline.ended_s - reading.measured_s))
    return _between(timeline, began_s, min(timeline.ended_s, began_s + reading.measured_s))


def _between(timeline: Timeline, begin_s: float, end_s: float) -> _Span:
    return _Span(
        length_s=end_s - begin_s,
        ran_s=timeline.ran_s(begin_s, end_s),
        freezes=timeline.freezes(begin_s, end_s),
        together_s=timeline.together_s(begin_s, end_s),
    )


def _marked(timeline: Timeline, took_s: float, begin: int, end: int) -> _Span:
    """Return the span of a part that took so long by the tool's clock, from the slices in which the tool wrote these
    offsets of its standard error: all freezes from the first to the last are in the part, whole."""
    first, last = (bisect_left(timeline.said, offset) for offset in (begin, end))
    gaps = pairwise(timeline.ran[first : last + 1])
    ran_s = took_s - sum(began - ended for (_, ended), (began, _) in gaps)
    return _Span(
        length_s=took_s,
        ran_s=ran_s,
        freezes=max(0, last - first),
        together_s=0.0 if first else min(ran_s, timeline.together_s(timeline.worked_s, timeline.ended_s)),
    )


def _measured_s(reading: Reading, whole: _Span, parts: Mapping[str, _Span]) -> float | None:
    if reading.measured_s is None:
        return None
    return sum(span.ran_s for span in parts.values()) if parts else whole.ran_s


def _in_flight(name: str, value: float, rates: Mapping[str, float]) -> float:
    """Return how many requests with this mean latency are in flight on average, by the tool's clock (Little's law).

    A latency without a direction is of all.
    """
    one = name.partition("_")[0]
    rate = rates.get(f"{one}_iops", 0.0) if one in _DIRECTIONS else sum(rates.values())
    return value / 1e9 * rate


def _value(name: str, value: float, unit: Unit, span: _Span, in_flight: float) -> float | None:
    if span.length_s <= 0 or span.ran_s <= 0:
        return None
    if unit in _RATES:
        return value * span.length_s / span.ran_s
    if unit is Unit.SECONDS:
        return max(0.0, value - (span.length_s - span.ran_s))
    if unit is not Unit.NANOSECONDS or not span.freezes:
        return value
    if name.endswith("_mean"):
        share = span.ran_s / span.length_s
        return value * share if _mean_error(share, min(1.0, in_flight), span.freezes) <= _MEAN_ERROR else None
    return _latency(name, value, span.freezes, span.ran_s)


def _mean_error(share: float, in_flight: float, freezes: int) -> float:
    """Return the relative standard error of a corrected mean: each freeze hits a request or not (binomial)."""
    return (1 - share) * math.sqrt((1 - in_flight) / (in_flight * freezes)) if in_flight else math.inf


def _latency(name: str, value: float, freezes: int, ran_s: float) -> float | None:
    found = _PERCENTILE.search(name)
    if found is None:  # the maximum is the time of a freeze; what others are is not known
        return None
    above = 1 - float(f"{found[1]}.{found[2] or 0}") / 100
    interrupted = freezes * value / 1e9 / ran_s  # of the requests of one thread, if each takes this long
    return value if interrupted < _INTERRUPTED * above else None


def slices(timeline: Timeline, reading: Reading) -> Slices:
    """Return what a record says of the slices."""
    return Slices(
        count=len(timeline.ran),
        asked_s=reading.asked_s,
        started_s=timeline.started_s,
        ran_s=sum(end - begin for begin, end in timeline.ran),
        left_share=timeline.left_share,
        flushed=timeline.flushed,
    )


def slice_percentiles(
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
