"""Answers a question by several runs of the same cells: what differs between runs is in the interval. Pure.

With one run, nothing of this is known. With several, the excess of the runs' means over the noise within each is
measured, so that the autocorrelation of trials need not be known: it is a part of that excess.
"""

from collections.abc import Sequence
from dataclasses import replace

from fslab.answers.compare import Estimate
from fslab.stats.run_spread import NO_SPREAD, Run, RunRatio, RunSpread, combined, fit

__all__ = ["NO_SPREAD", "Run", "RunSpread", "fit", "over_runs"]


def over_runs(found: Sequence[Estimate], spread: RunSpread, weights: Sequence[Sequence[float]]) -> Estimate:
    """Return the estimate of all runs together, from those of each run, the present one first.

    ``weights``: those of the cells of each workload in the logarithm of the ratio. Runs without an interval do not
    count; the first one alone is returned if it has none.
    """
    first = found[0]
    known = [each for each in found if each.interval and each.interval.low > 0 and each.ratio]
    if first not in known or first.interval is None:
        return first
    ratios = [
        RunRatio(ratio=each.ratio, interval=each.interval, size=min(each.n_a, each.n_b))
        for each in known
        if each.ratio and each.interval
    ]
    ratio, interval = combined(ratios, spread.half_width(weights, first.interval.coverage))
    return replace(
        first, ratio=ratio, interval=interval, p_value=None, correlation_known=True,
        n_a=sum(each.n_a for each in known), n_b=sum(each.n_b for each in known),
    )  # fmt: skip
