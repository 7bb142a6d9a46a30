"""What a tool measured, without the time in which it was frozen: its own clock went on. Pure.

Rates and shares of time are divided by the share of the time in which the tool ran, durations lose the frozen time. A
mean latency is multiplied by that share: of the requests in flight at a freeze, the frozen time is in the latency, and
there are as many of them as are in flight on average (Little's law). If that is less than one, it is a matter of chance
how many freezes hit a request, and a mean that depends on it is unknown. Percentiles stay where so few requests were
interrupted that they hardly change; the others, and the maximum, are unknown.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fslab.campaign.slices import Timeline
from fslab.record import Metric
from fslab.units import Unit
from fslab.workloads import Reading

_RATES = frozenset(
    {Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.PERCENT}
)
_DIRECTIONS = frozenset({"read", "write"})
_PERCENTILE = re.compile(r"_p(\d+)(?:_(\d+))?$")
# An interrupted request is above every percentile: at most this share of those above may be interrupted ones.
_INTERRUPTED = 0.2
# A mean latency is known if its standard error, from the number of freezes that hit a request, is at most this share:
# it differs from round to round, so the interval over the rounds has it.
_MEAN_ERROR = 0.1

Window = tuple[float, float]


def thawed(reading: Reading, metrics: Sequence[Metric], timeline: Timeline) -> Reading:
    """Return the reading as if the tool had not been frozen. Its windows, and ``metrics``, say when what was measured.

    A tool without windows measured from its first I/O on, for as long as it says.
    """
    whole = _whole(reading, timeline)
    units = {metric.name: metric.unit for metric in metrics}
    windows = reading.windows or dict.fromkeys(units, whole)
    rates = {name: value for name, value in reading.metrics.items() if name.endswith("_iops")}
    changed = {
        name: _value(name, value, units[name], windows[name], timeline, _in_flight(name, value, rates))
        if name in windows and value is not None
        else value
        for name, value in reading.metrics.items()
    }
    return replace(
        reading,
        metrics=changed,
        latencies={},
        measured_s=None if reading.measured_s is None else _measured_s(reading, whole, timeline),
        parts_s={name: _part_s(reading, name, took_s, timeline) for name, took_s in reading.parts_s.items()},
        rates=(),  # over time, with gaps
        sliced=True,
    )


def _whole(reading: Reading, timeline: Timeline) -> Window:
    if reading.measured_s is None:
        return timeline.worked_s, timeline.ended_s
    return timeline.worked_s, min(timeline.ended_s, timeline.worked_s + reading.measured_s)


def _measured_s(reading: Reading, whole: Window, timeline: Timeline) -> float:
    if reading.part_windows:
        return sum(timeline.ran_s(*window) for window in reading.part_windows.values())
    return timeline.ran_s(*whole)


def _part_s(reading: Reading, name: str, took_s: float, timeline: Timeline) -> float:
    window = reading.part_windows.get(name)
    return took_s if window is None else timeline.ran_s(*window)


def _in_flight(name: str, value: float, rates: Mapping[str, float | None]) -> float:
    """Return how many requests with this mean latency are in flight on average, by the tool's clock (Little's law).

    fio does not report the rate of its fsync: at most one for each write.
    """
    direction = name.partition("_")[0]
    return value / 1e9 * (rates.get(f"{direction if direction in _DIRECTIONS else 'write'}_iops") or 0.0)


def _value(
    name: str, value: float, unit: Unit, window: Window, timeline: Timeline, in_flight: float
) -> float | None:
    length_s, ran_s = window[1] - window[0], timeline.ran_s(*window)
    if length_s <= 0 or ran_s <= 0:
        return None
    if unit in _RATES:
        return value * length_s / ran_s
    if unit is Unit.SECONDS:
        return max(0.0, value - (length_s - ran_s))
    if unit is not Unit.NANOSECONDS:
        return value
    freezes = timeline.freezes(*window)
    if not freezes:
        return value
    if name.endswith("_mean"):
        share = ran_s / length_s
        return value * share if _mean_error(share, min(1.0, in_flight), freezes) <= _MEAN_ERROR else None
    return _latency(name, value, freezes, ran_s)


def _mean_error(share: float, in_flight: float, freezes: int) -> float:
    """Return the relative standard error of a corrected mean: each freeze hits a request or not (binomial)."""
    return (1 - share) * math.sqrt((1 - in_flight) / (in_flight * freezes)) if in_flight else math.inf


def _latency(name: str, value: float, freezes: int, ran_s: float) -> float | None:
    if name.endswith("_max"):
        return None
    found = _PERCENTILE.search(name)
    if found is None:
        return value
    above = 1 - float(f"{found[1]}.{found[2] or 0}") / 100
    interrupted = freezes * value / 1e9 / ran_s  # of the requests of one thread, if each takes this long
    return value if interrupted < _INTERRUPTED * above else None


def facts(timeline: Timeline) -> Mapping[str, float | int | None]:
    """Return what a record says of the slices."""
    return {
        "count": len(timeline.ran),
        "ran_s": sum(end - begin for begin, end in timeline.ran),
        "left_share": timeline.left_share,
        "flushed": timeline.flushed,
    }
