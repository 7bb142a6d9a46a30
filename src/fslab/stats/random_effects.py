"""Combines one estimate from each of several machines: their mean, their spread, and a prediction for another machine.

Pure functions; they must not know what the numbers mean. Import this module only to combine machines, because numpy
takes longer to load than most commands take to run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from fslab.stats import Reason
from fslab.stats.interval_model import Interval

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
    """The estimate of one machine: the mean of ``size`` values (at least 2), and its standard ``error`` s/√size."""

    mean: float
    error: float
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Combined:
    """The ``mean`` over machines with its ``interval``. ``prediction``: interval for the true mean of another machine.

    ``spread``: the standard deviation between machines, in the unit of the values, without the noise on each machine.
    ``share``: how much of the variance of an estimate with median noise is between machines (0 to 1). ``reason``: why
    all of them are None.
    """

    size: int
    mean: float | None = None
    interval: Interval | None = None
    prediction: Interval | None = None
    spread: float | None = None
    share: float | None = None
    reason: Reason | None = None


def combine(estimates: Sequence[Estimate], *, coverage: float = 0.95) -> Combined:
    """Combine independent estimates from at least five machines in a random-effects model.

    - The spread between machines: Paule & Mandel, J. Res. NBS 87 (1982) 377. A machine's weight in the average is
      1/(spread² + error²).
    - Both intervals: generalised inference, as for laboratories that measure the same quantity (Iyer, Wang & Mathew, J.
      Am. Stat. Assoc. 99 (2004) 1060). They include the uncertainty of the noise on each machine, and of the spread. If
      both are treated as known (Hartung–Knapp, Higgins), predictions cover only 89 % in the worst case.

    The same estimates give the same result, because draws use a fixed seed. Simulated in docs/simulations.md.
    """
    if len(estimates) < MACHINES_LEAST:
        return Combined(
            size=len(estimates), reason=Reason.TOO_FEW_SAMPLES if estimates else Reason.NO_SAMPLES
        )
    if not all(isfinite(one.mean) and isfinite(one.error) for one in estimates):
        return Combined(size=len(estimates), reason=Reason.NOT_FINITE)
    means = np.array([one.mean for one in estimates])
    noise = np.array([one.error for one in estimates]) ** 2
    noise = np.maximum(noise, _least(means, noise))
    between = _between(means, noise[None, :], np.array([len(means) - 1.0]))
    mean, _ = _weighted(means, noise[None, :], between)
    middle, others = _draws(means, noise, [one.size for one in estimates])
    return Combined(
        size=len(estimates), mean=float(mean[0]), interval=_central(middle, coverage),
        prediction=_central(others, coverage), spread=sqrt(between[0]),
        share=float(between[0] / (between[0] + np.median(noise))),
    )  # fmt: skip


def _least(means: Floats, noise: Floats) -> float:
    """Return the minimum of squared errors. It replaces 0, the error of equal values, so that other machines count."""
    return 1e-6 * float(max(noise.max(), means.var(), 1e-18))


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


def _central(draws: Floats, coverage: float) -> Interval:
    low, high = np.quantile(draws, [(1 - coverage) / 2, (1 + coverage) / 2])
    return Interval(low=float(low), high=float(high), coverage=coverage)
