"""A confidence interval: its two ends and its coverage. Values only."""

from dataclasses import dataclass
from math import exp

WIDEST = 300.0  # natural logarithm


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """``low`` to ``high``, in the unit of the samples. ``coverage``: the achieved one, at least the wanted one."""

    low: float
    high: float
    coverage: float


def of_logarithms(low: float, high: float, *, coverage: float) -> Interval:
    """Return the interval between two ends given as natural logarithms. An end beyond exp(±300) is that: a wider
    interval says no more, and its ends are no numbers of a computer."""
    return Interval(low=exp(max(low, -WIDEST)), high=exp(min(high, WIDEST)), coverage=coverage)
