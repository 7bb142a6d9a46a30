"""Compares an interval with the bounds of a part of a claim. Pure."""

import dataclasses
from math import inf, log

from fslab.answers.question import Estimate
from fslab.claims import verdict as verdicts
from fslab.claims.model import ClaimVerdict
from fslab.claims.parts import Bounds
from fslab.stats.interval import Interval


def margin(bounds: Bounds, low: float, high: float) -> float | None:
    """Return how far inside the bounds an interval lies, on logarithms; negative if it lies across or outside.

    None for an interval that begins at 0.
    """
    if low <= 0:
        return None
    below = log(low / bounds.low) if bounds.low > 0 else inf
    above = log(bounds.high / high) if bounds.high < inf else inf
    return min(below, above)


def from_edge(bounds: Bounds, estimate: Estimate) -> Estimate:
    """Return the estimate as a multiple of the nearest end of the bounds that its interval contains, if it does.

    An interval from ranks is not symmetric: it can exclude the nearest end, and contain a farther one.
    """
    ratio, interval = estimate.ratio, estimate.interval
    if ratio is None or interval is None:
        return estimate
    within = [end for end in bounds.ends if interval.low <= end <= interval.high]
    edge = min(within or bounds.ends, key=lambda end: abs(log(ratio / end)))
    shifted = dataclasses.replace(interval, low=interval.low / edge, high=interval.high / edge)
    return dataclasses.replace(estimate, ratio=ratio / edge, interval=shifted)


def firm(
    bounds: Bounds, estimate: Estimate, interval: Interval, margin: float
) -> tuple[ClaimVerdict, ClaimVerdict | None]:
    """Return the verdict of the estimate's ``interval``, and None; or ``open``, and the verdict that it tends to.

    It only tends to a verdict that an interval for an autocorrelation of 0.5 would not give, if there are too few
    blocks to estimate the autocorrelation.
    """
    verdict = verdicts.of_interval(bounds, interval.low, interval.high, margin)
    wide = estimate.interval_if_correlated
    if wide is None:
        return verdict, None
    agreed = verdicts.common(verdict, verdicts.of_interval(bounds, wide.low, wide.high, margin))
    return (ClaimVerdict.OPEN, verdict) if agreed is None else (agreed, None)
