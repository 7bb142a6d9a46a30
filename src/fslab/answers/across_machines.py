"""Answers a question on several machines: within each, on average of all, and for another machine. Pure.

Figures of different machines are never combined; only the ratios within each machine are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, isfinite, log, sqrt
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from fslab.answers.ratio import COVERAGE, Values
from fslab.cell import Frozen
from fslab.stats import Interval
from fslab.stats.estimate_model import PAIRS_LEAST, mostly_equal
from fslab.stats.paired_differences import compare_blocks

# With four machines, a prediction interval of normal effects is 4.8 standard deviations wide on each side (t, 2 degrees
# of freedom): too wide to be useful.
MACHINES_LEAST = 5
DRAWS = 4000  # from one seed to another, the ends of an interval move by about 3 % of its width
_MANY = 100  # machines; with more, a quarter of the draws is used, which takes 1 s for 1,000 machines
_SEED = 1
_HALVINGS = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """The estimate of one machine: the mean of ``n`` values (at least 2), and its standard ``error`` s/√n."""

    mean: float
    error: float
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WithinMachine(Estimate):
    """The ratio on one machine with its interval, from ``n`` blocks, as a comparison on this machine gives it.

    ``mean``, ``error``: of the quotients' logarithms, by which machines are combined.
    """

    ratio: float
    interval: Interval


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


def over_machines(estimates: Sequence[Estimate]) -> OverMachines:
    """Combine independent estimates from at least five machines, all finite, in a random-effects model.

    - The spread between machines: Paule & Mandel, J. Res. NBS 87 (1982) 377. A machine's weight in the average is
      1/(spread² + error²).
    - Both intervals: generalised inference, as for laboratories that measure the same quantity (Iyer, Wang & Mathew, J.
      Am. Stat. Assoc. 99 (2004) 1060). They include the uncertainty of the noise on each machine, and of the spread. If
      both are treated as known (Hartung–Knapp, Higgins), predictions cover only 89 % in the worst case.

    The same estimates give the same result, because draws use a fixed seed. Simulated in docs/simulations.md.
    """
    if len(estimates) < MACHINES_LEAST or not all(isfinite(one.mean + one.error) for one in estimates):
        return OverMachines()
    means = np.array([one.mean for one in estimates])
    noise = np.array([one.error for one in estimates]) ** 2
    # The least of squared errors replaces 0, the error of equal values, so that other machines count.
    noise = np.maximum(noise, 1e-6 * max(noise.max(), means.var(), 1e-18))
    between = _between(means, noise[None, :], np.array([len(means) - 1.0]))
    mean, _ = _weighted(means, noise[None, :], between)
    middle, others = _draws(means, noise, [one.n for one in estimates])
    return OverMachines(
        average=exp(mean[0]), interval=_central(middle), prediction=_central(others),
        spread=expm1(sqrt(between[0])), share=float(between[0] / (between[0] + np.median(noise))),
    )  # fmt: skip


def _draws(means: Floats, noise: Floats, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """Return draws of the mean over machines, and of the mean on another machine, that the data leave possible."""
    random = np.random.default_rng(_SEED)
    draws = DRAWS if len(means) <= _MANY else DRAWS // 4
    freedom = np.array(sizes) - 1.0
    possible = noise * freedom / random.chisquare(freedom, size=(draws, len(means)))
    between = _between(means, possible, random.chisquare(len(means) - 1, size=draws))
    mean, total = _weighted(means, possible, between)
    middle = mean + random.standard_normal(draws) / np.sqrt(total)
    return middle, middle + random.standard_normal(draws) * np.sqrt(between)


def _weighted(means: Floats, noise: Floats, between: Floats) -> tuple[Floats, Floats]:
    """Return for each row of ``noise`` the weighted mean and the sum of the weights."""
    weights = 1 / (noise + between[:, None])
    total = weights.sum(axis=1)
    return (weights * means).sum(axis=1) / total, total


def _excess(means: Floats, noise: Floats, between: Floats) -> Floats:
    """Return the weighted squares about the weighted mean: chi-squared if ``between`` is the true variance."""
    mean, _ = _weighted(means, noise, between)
    found: Floats = ((means - mean[:, None]) ** 2 / (noise + between[:, None])).sum(axis=1)
    return found


def _between(means: Floats, noise: Floats, wanted: Floats) -> Floats:
    """Return for each row the variance between machines at which the weighted squares equal ``wanted``.

    0 if the squares are always less.
    """
    low = np.zeros(len(noise))
    # The squares are at most Σ(y − mean)²/between. Therefore they are less than wanted above this value.
    high = ((means - means.mean()) ** 2).sum() / np.maximum(wanted, 1e-12)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _excess(means, noise, middle) > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    none = _excess(means, noise, np.zeros(len(noise))) <= wanted
    found: Floats = np.where(none, 0.0, (low + high) / 2)
    return found


def _central(draws: Floats) -> Interval:
    """Return the interval of ratios, of which the draws are logarithms."""
    low, high = np.quantile(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Interval(low=exp(low), high=exp(high), coverage=COVERAGE)


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
