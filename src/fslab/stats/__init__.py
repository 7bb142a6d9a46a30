"""Statistics: pure functions on sequences of numbers, each with its reference.

No module here depends on trials or file systems, knows what the numbers mean or which direction is better, or reads or
prints anything. Too few samples give None or a
:class:`Reason`, never an exception and never an invented number. numpy and scipy are imported only when something is
computed.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import exp


class Reason(StrEnum):
    """Why a statistic does not exist for these samples."""

    NO_SAMPLES = "no_samples"
    TOO_FEW_SAMPLES = "too_few_samples"
    NOT_POSITIVE = "not_positive"
    NOT_FINITE = "not_finite"
    NO_EVENTS = "no_events"


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
