"""Answers a question on several machines: within each, on average of all, and for another machine. Pure.

Figures of different machines are never combined; only the ratios within each machine are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from statistics import fmean, stdev

from fslab.answers.model import Span
from fslab.answers.question import Values
from fslab.stats.interval import Interval
from fslab.stats.paired import PAIRS_LEAST, compare_blocks, mostly_equal
from fslab.stats.random_effects import MACHINES_LEAST, Estimate, combine

__all__ = ["MACHINES_LEAST", "OverMachines", "WithinMachine", "over_machines", "within_machine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WithinMachine:
    """The ratio on one machine, from ``n`` blocks: the geometric mean of the quotients, with its interval.

    ``error``: the standard error of the ratio's logarithm.
    """

    ratio: float
    interval: Span
    n: int
    error: float


@dataclass(frozen=True, kw_only=True, slots=True)
class OverMachines:
    """The ratio over machines with its ``interval``. ``prediction``: interval for the true ratio on another machine.

    ``spread``: standard deviation between machines as a share (0.1: ± 10 %). ``share``: share of the variance that is
    between machines, not noise on each machine.
    """

    average: float
    interval: Span
    prediction: Span
    spread: float
    share: float | None


def within_machine(over: Values, under: Values) -> WithinMachine | None:
    """Return the ratio on one machine.

    None if fewer than three blocks have both, if a value has no logarithm, or if most quotients are equal, so that
    their spread does not show the noise.
    """
    common = sorted(over.keys() & under.keys())
    top, bottom = ({block: values[block] for block in common} for values in (over, under))
    found = compare_blocks(top, bottom)
    if len(common) < PAIRS_LEAST or found.interval is None:
        return None
    differences = [log(top[block]) - log(bottom[block]) for block in common]
    if mostly_equal(differences):
        return None
    error = found.widening * stdev(differences) / sqrt(len(common))
    return WithinMachine(
        ratio=exp(fmean(differences)), interval=Span.of(found.interval), n=len(common), error=error
    )


def over_machines(ratios: Sequence[WithinMachine]) -> OverMachines | None:
    """Return the ratio over at least five machines (:func:`fslab.stats.random_effects.combine`); None for fewer."""
    found = combine([Estimate(mean=log(each.ratio), error=each.error, size=each.n) for each in ratios])
    if found.mean is None or found.spread is None or found.interval is None or found.prediction is None:
        return None
    return OverMachines(
        average=exp(found.mean), interval=_span(found.interval), prediction=_span(found.prediction),
        spread=expm1(found.spread), share=found.share,
    )  # fmt: skip


def _span(interval: Interval) -> Span:
    return Span(low=exp(interval.low), high=exp(interval.high), coverage=interval.coverage)
