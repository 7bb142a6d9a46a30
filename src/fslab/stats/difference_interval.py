"""Estimates the centre of differences by block, with its interval and the corresponding test.

Rows are samples, columns are blocks in order. A comparison passes one row; the simulation in docs/simulations.md passes
thousands. Both run this code. Import this module only where something is compared, because numpy and scipy take longer
to load than most commands take to run.

The centre is the mean (of logarithms: the geometric mean of the quotients). If the differences are symmetric about it,
signed ranks estimate it more precisely. If they are not, signed ranks estimate another quantity.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from fslab.stats.autocorrelation import widening
from fslab.stats.distributions import lower_tails, signed_rank_cut, two_sided_quantile
from fslab.stats.estimate_model import NoisePrior
from fslab.stats.moderated_variance import moderated

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# A limit that about half of all normal samples exceed. Simulated with 30 blocks and 15 % of one cell's trials in a
# second mode: false differences 41 % (signed ranks), 7 % (t), 3.5 % (this rule). Normal differences get 3 % wider
# intervals.
_ASYMMETRY = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    """The centre of each sample with its interval from ``low`` to ``high``; each array has one value per sample.

    ``asymmetric``: signed ranks alone would mislead. ``widening``: the factor by which autocorrelation widened the
    interval. ``coverage``: that of the interval if differences are independent. ``error`` and ``freedom``: the standard
    error of the mean and its degrees of freedom, for Student's t.
    """

    center: Floats
    low: Floats
    high: Floats
    asymmetric: Flags
    widening: Floats
    coverage: float
    error: Floats
    freedom: Floats


def locate(samples: Floats, coverage: float, *, ranks: bool, prior: NoisePrior | None = None) -> Located:
    """Return the centre and its interval. ``ranks``: use signed ranks (needs enough blocks).

    - Without ``ranks``: Student's t. With ``prior``, other cells contribute to its variance (``moderated_variance``).
    - With ``ranks``: the signed-rank interval (Wilcoxon 1945). If the differences are :func:`asymmetric`, the hull of
      this interval, of t's, and of t's corrected for skewness (Hall 1992). A difference is then shown only if all three
      show it, so that false differences are no more frequent than with the one of them that suits the shape.

    Every interval is then widened about the centre by :func:`fslab.stats.autocorrelation.widening`.
    """
    mean, error, freedom = _moments(samples, None if ranks else prior)
    center, low, high, achieved = (
        signed_rank_interval(samples, coverage) if ranks else _student(mean, error, freedom, coverage)
    )
    skewed = asymmetric(samples) if ranks else np.zeros(len(samples), dtype=np.bool_)
    if skewed.any():
        center[skewed], low[skewed], high[skewed] = _hull(
            samples[skewed], coverage, low[skewed], high[skewed]
        )
    factor = widening(samples, prior.correlation if prior else None)
    return Located(
        center=center, low=center - factor * (center - low), high=center + factor * (high - center),
        asymmetric=skewed, widening=factor, coverage=achieved, error=error, freedom=freedom,
    )  # fmt: skip


def p_values(samples: Floats, located: Located, *, ranks: bool) -> Floats:
    """Return two-sided p-values, for "the centre is 0", of the test that belongs to the interval.

    A widened interval excludes 0 if the plain interval excludes a point that is nearer to the centre by the factor
    ``widening``. Therefore that point is tested.
    """
    nearer = located.center * (1 - 1 / located.widening)
    shifted = samples - nearer[:, None]
    found = (
        signed_rank_p(shifted) if ranks else _t_tail(shifted.mean(axis=1) / located.error, located.freedom)
    )
    skewed = located.asymmetric
    if skewed.any():
        found[skewed] = _hull_p(shifted[skewed], found[skewed])
    return found


def asymmetric(samples: Floats) -> Flags:
    """Return whether mean and median are farther apart than in about half of all normal samples.

    The scale is the mean distance from the median. Outliers change it less than a standard deviation, so that heavy
    tails do not count as asymmetry.
    Source: Miao, Gel & Gastwirth, *A New Test of Symmetry about an Unknown Median*, 2006.
    """
    median = np.median(samples, axis=1)
    scale = np.sqrt(np.pi / 2) * np.abs(samples - median[:, None]).mean(axis=1)
    apart = np.sqrt(samples.shape[1]) * np.abs(samples.mean(axis=1) - median)
    found: Flags = apart > _ASYMMETRY * 0.7555 * scale  # √(π/2 − 1): its deviation for normal samples
    return found


def _student(
    mean: Floats, error: Floats, freedom: Floats, coverage: float
) -> tuple[Floats, Floats, Floats, float]:
    """Return centre, interval and coverage by Student's t; Student, Biometrika 6 (1908) 1."""
    half = -stdtrit(freedom, (1 - coverage) / 2) * error
    return mean, mean - half, mean + half, coverage


def signed_rank_interval(samples: Floats, coverage: float) -> tuple[Floats, Floats, Floats, float]:
    """Return centre, interval and coverage: Hodges–Lehmann's estimate, and the exact interval from Walsh averages.

    The estimate is the median of all means (dᵢ + dⱼ)/2, i ≤ j. The interval runs from the c-th smallest to the c-th
    largest of them; c is from :func:`signed_rank_cut` and must not be 0. The only assumption is that differences are
    symmetric about their centre. With ties, the coverage is at least the stated one.
    Source: Hollander & Wolfe, *Nonparametric Statistical Methods*, 2nd ed. 1999, sections 3.1–3.3.
    """
    count = samples.shape[1]
    cut, averages = signed_rank_cut(count, coverage), np.sort(walsh_averages(samples), axis=1)
    achieved = 1 - 2 * float(lower_tails(count)[cut - 1])
    return np.median(averages, axis=1), averages[:, cut - 1], averages[:, -cut], achieved


def signed_rank_p(samples: Floats) -> Floats:
    """Return exact two-sided p-values. Ties count against a difference, as in the closed interval."""
    averages = walsh_averages(samples)
    most = np.maximum((averages > 0).sum(axis=1), (averages < 0).sum(axis=1))
    tails: Floats = lower_tails(samples.shape[1])[averages.shape[1] - most]
    return np.minimum(1.0, 2 * tails)


def _hull(samples: Floats, coverage: float, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    mean, error, freedom = _moments(samples)
    _, t_low, t_high, _ = _student(mean, error, freedom, coverage)
    limit = two_sided_quantile(1 - coverage, samples.shape[1] - 1)
    skew = _skewness(samples)
    hall_low = mean - _straightened(limit, skew) * error
    hall_high = mean - _straightened(-limit, skew) * error
    return mean, np.minimum.reduce([low, t_low, hall_low]), np.maximum.reduce([high, t_high, hall_high])


def _hull_p(samples: Floats, p_value: Floats) -> Floats:
    """Return the largest of the three p-values; 1 if the three estimates have different signs."""
    mean, error, freedom = _moments(samples)
    statistic, skew = mean / error, _skewness(samples)
    bent = statistic + skew * statistic**2 / 3 + skew**2 * statistic**3 / 27 + skew / 6
    largest = np.maximum.reduce([p_value, _t_tail(statistic, freedom), _t_tail(bent, freedom)])
    signs = np.sign(statistic) + np.sign(bent) + np.sign(np.median(walsh_averages(samples), axis=1))
    return np.where(np.abs(signs) == 3, largest, 1.0)


def _straightened(value: float, skew: Floats) -> Floats:
    """Return the inverse of Hall's cubic transformation; Hall, J. R. Statist. Soc. B 54 (1992) 221."""
    safe = np.where(np.abs(skew) < 1e-6, 1e-6, skew)
    found: Floats = 3 / safe * (np.cbrt(1 + safe * (value - safe / 6)) - 1)
    return found


def _skewness(samples: Floats) -> Floats:
    """Return the sample's skewness divided by √n, as needed for Hall's transformation."""
    count = samples.shape[1]
    centred = samples - samples.mean(axis=1, keepdims=True)
    second, third = (centred**2).mean(axis=1), (centred**3).mean(axis=1)
    found: Floats = third / second**1.5 * np.sqrt(count * (count - 1)) / (count - 2) / np.sqrt(count)
    return found


def _moments(samples: Floats, prior: NoisePrior | None = None) -> tuple[Floats, Floats, Floats]:
    """Return means, their standard errors, and the degrees of freedom of these errors."""
    count = samples.shape[1]
    variances, freedom = moderated(samples.var(axis=1, ddof=1), count - 1, prior)
    return samples.mean(axis=1), np.sqrt(variances / count), freedom


def _t_tail(statistic: Floats, freedom: Floats) -> Floats:
    found: Floats = 2 * stdtr(freedom, -np.abs(statistic))
    return found


def walsh_averages(samples: Floats) -> Floats:
    """Return the means of all pairs of differences, including each difference paired with itself."""
    first, second = np.triu_indices(samples.shape[1])
    found: Floats = (samples[:, first] + samples[:, second]) / 2
    return found
