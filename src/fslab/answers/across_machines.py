"""Answers a question on several machines: within each, on average of all, and for another machine. Pure.

Figures of different machines are never combined; only the ratios within each machine are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from statistics import fmean, stdev

from fslab.answers.ratio import Values
from fslab.cell import Frozen
from fslab.stats.estimate_model import PAIRS_LEAST, mostly_equal
from fslab.stats.interval_model import Interval
from fslab.stats.paired_differences import compare_blocks
from fslab.stats.random_effects import MACHINES_LEAST, Estimate, combine

__all__ = ["MACHINES_LEAST", "OverMachines", "WithinMachine", "over_machines", "within_machine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WithinMachine:
    """The ratio on one machine with its interval, from ``n`` blocks, as a comparison on this machine gives it.

    ``mean``, ``error``: of the quotients' logarithms, with the standard error, by which machines are combined.
    """

    ratio: float
    interval: Interval
    n: int
    mean: float
    error: float


class OverMachines(Frozen):
    """The ``average`` ratio over machines with its ``interval``; all values are None if there are too few machines.

    ``prediction``: prediction interval for the true ratio on another machine like these. ``spread``: standard deviation
    between machines as a share (0.1: ± 10 %). ``share``: share of the variance of the machines' ratios that is between
    machines, not noise on each machine.
    """

    average: float | None = None
    interval: Interval | None = None
    prediction: Interval | None = None
    spread: float | None = None
    share: float | None = None


def within_machine(over: Values, under: Values) -> WithinMachine | None:
    """Return the ratio on one machine.

    None if fewer than three blocks have both, if a value has no logarithm, or if most quotients are equal, so that
    their spread does not show the noise.
    """
    common = sorted(over.keys() & under.keys())
    top, bottom = ({block: values[block] for block in common} for values in (over, under))
    found = compare_blocks(top, bottom)
    if len(common) < PAIRS_LEAST or found.ratio is None or found.interval is None:
        return None
    differences = [log(top[block]) - log(bottom[block]) for block in common]
    if mostly_equal(differences):
        return None
    error = found.widening * stdev(differences) / sqrt(len(common))
    return WithinMachine(
        ratio=found.ratio, interval=found.interval, n=len(common), mean=fmean(differences), error=error
    )


def over_machines(ratios: Sequence[WithinMachine]) -> OverMachines:
    """Return the ratio over at least five machines (:func:`fslab.stats.random_effects.combine`)."""
    found = combine([Estimate(mean=each.mean, error=each.error, size=each.n) for each in ratios])
    if found.mean is None or found.spread is None or found.interval is None or found.prediction is None:
        return OverMachines()
    return OverMachines(
        average=exp(found.mean), interval=_span(found.interval), prediction=_span(found.prediction),
        spread=expm1(found.spread), share=found.share,
    )  # fmt: skip


def _span(interval: Interval) -> Interval:
    return Interval(low=exp(interval.low), high=exp(interval.high), coverage=interval.coverage)
