"""Differences by block: where their centre lies, with the interval and the test that belong together.

Rows are samples and columns are blocks, in order: a comparison passes one row, the simulation that stands in
docs/methods.md thousands; both run this code. Pure functions; they must not know what the numbers mean. Imported
only when something is compared, because numpy and scipy take longer to load than most commands to run.

The centre is the mean (of logarithms: the geometric mean of the quotients). Where differences are spread evenly
about it, it is estimated more sharply by signed ranks; where they are not, signed ranks estimate something else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from fslab.stats.compare import INDEPENDENCE_LEAST
from fslab.stats.moderation import moderated
from fslab.stats.noise_prior import NoisePrior
from fslab.stats.signed_rank import lower_tails, signed_rank_cut
from fslab.stats.student import two_sided_quantile

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SMALLEST = 0.1
_LARGEST = 0.85
# Skewed beyond what half of all normal samples show. Simulated: 30 blocks, a mode that 15 % of one cell's trials are
# in, false differences 41 % (signed ranks), 7 % (t), 3.5 % (so); normal differences get 3 % wider.
_ASYMMETRY = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    """An array each, one value per sample: ``low`` to ``high`` is the interval of ``center``.

    ``asymmetric``: signed ranks alone would mislead. ``widening``: by what factor autocorrelation widened the
    interval. ``coverage`` is what the interval achieves with independent differences. ``error`` and ``freedom``:
    standard error of the mean and its degrees of freedom, as Student's t takes them.
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
    """The centre and its interval; with ``ranks`` (enough blocks for them) from signed ranks where these fit.

    - Few blocks: Student's t; with ``prior``, of a variance to which other cells contribute (``moderation``).
    - ``ranks``: the signed-rank interval (Wilcoxon 1945); where the differences are :func:`asymmetric`, the hull of
      it, of t's, and of t's corrected for skewness (Hall 1992). A difference is then seen only if all three see
      it, so that it errs no more often than the one of them that suits the shape.

    All of it is widened by :func:`widening` about the centre.
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
    factor = widening(samples)
    return Located(
        center=center, low=center - factor * (center - low), high=center + factor * (high - center),
        asymmetric=skewed, widening=factor, coverage=achieved, error=error, freedom=freedom,
    )  # fmt: skip


def p_values(samples: Floats, located: Located, *, ranks: bool) -> Floats:
    """Two-sided, for "the centre is 0", of the test that belongs to the interval.

    A widened interval leaves out 0 where the plain one leaves out a point so much nearer to the centre, so that point
    is tested.
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


def widening(samples: Floats) -> Floats:
    """How many times as wide an interval must be because neighbours resemble each other; at least 1.

    √((1 + ρ)/(1 − ρ)) is right for a mean of n values of an AR(1) series with autocorrelation ρ (effective sample
    size; Zwiers & von Storch, J. Climate 8 (1995) 336). ρ is the upper end of its one-sided 87.5 % interval, from the
    estimate at lag 1 less its bias, (1 + 4ρ)/n (Marriott & Pope; Kendall, Biometrika 41 (1954) 390, 403): the estimate
    itself would leave 9 % of false differences of 5 % at ρ = 0.5 and 20 blocks. An estimate of 0.1 or less counts as 0.
    Below 20 blocks only an estimate beyond two of its standard errors counts. Simulated in docs/methods.md.
    """
    count = samples.shape[1]
    factor = np.ones(len(samples))
    if count <= 4:
        return factor
    rho = autocorrelation(samples)
    limit = _SMALLEST if count >= INDEPENDENCE_LEAST else 2 * np.sqrt(count) / (count - 4)
    upper = np.clip(rho + 1.15 * np.sqrt((1 - np.minimum(rho * rho, 1)) / count), 0, _LARGEST)
    return np.where(rho > limit, np.sqrt((1 + upper) / (1 - upper)), factor)


def autocorrelation(samples: Floats) -> Floats:
    """The correlation of each difference with the one before, less the bias of a short series; 0 if all are equal."""
    count = samples.shape[1]
    centred = samples - samples.mean(axis=1, keepdims=True)
    spread = (centred * centred).sum(axis=1)
    along = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    lag1 = np.divide(along, spread, out=np.zeros_like(spread), where=spread > 0)
    corrected: Floats = np.minimum((count * lag1 + 1) / (count - 4), 1.0)
    return corrected


def asymmetric(samples: Floats) -> Flags:
    """Whether mean and median are farther apart than in half of all normal samples.

    Measured by the mean distance from the median, which a few far values move less than a standard deviation, so that
    heavy tails are not taken for asymmetry.
    Source: Miao, Gel & Gastwirth, *A New Test of Symmetry about an Unknown Median*, 2006.
    """
    median = np.median(samples, axis=1)
    scale = np.sqrt(np.pi / 2) * np.abs(samples - median[:, None]).mean(axis=1)
    apart = np.sqrt(samples.shape[1]) * np.abs(samples.mean(axis=1) - median)
    found: Flags = apart > _ASYMMETRY * 0.7555 * scale  # √(π/2 − 1): the deviation of that for normal samples
    return found


def _student(
    mean: Floats, error: Floats, freedom: Floats, coverage: float
) -> tuple[Floats, Floats, Floats, float]:
    """Student, Biometrika 6 (1908) 1."""
    half = -stdtrit(freedom, (1 - coverage) / 2) * error
    return mean, mean - half, mean + half, coverage


def signed_rank_interval(samples: Floats, coverage: float) -> tuple[Floats, Floats, Floats, float]:
    """Centre, interval and what it covers: Hodges–Lehmann's estimate and the exact interval from Walsh averages.

    The estimate is the median of all means (dᵢ + dⱼ)/2, i ≤ j; the interval runs from the c-th smallest to the c-th
    largest of them, c from :func:`signed_rank_cut`, which must not be 0. It assumes that differences are symmetric
    about their centre, nothing else; with ties the coverage is at least the stated one.
    Source: Hollander & Wolfe, *Nonparametric Statistical Methods*, 2nd ed. 1999, sections 3.1–3.3.
    """
    count = samples.shape[1]
    cut, averages = signed_rank_cut(count, coverage), np.sort(walsh_averages(samples), axis=1)
    achieved = 1 - 2 * float(lower_tails(count)[cut - 1])
    return np.median(averages, axis=1), averages[:, cut - 1], averages[:, -cut], achieved


def signed_rank_p(samples: Floats) -> Floats:
    """Two-sided and exact; ties count against a difference, so that it agrees with the closed interval."""
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
    """The largest of the three, and 1 where they see differences the other way round."""
    mean, error, freedom = _moments(samples)
    statistic, skew = mean / error, _skewness(samples)
    bent = statistic + skew * statistic**2 / 3 + skew**2 * statistic**3 / 27 + skew / 6
    largest = np.maximum.reduce([p_value, _t_tail(statistic, freedom), _t_tail(bent, freedom)])
    signs = np.sign(statistic) + np.sign(bent) + np.sign(np.median(walsh_averages(samples), axis=1))
    return np.where(np.abs(signs) == 3, largest, 1.0)


def _straightened(value: float, skew: Floats) -> Floats:
    """Hall's cubic transformation undone; Hall, J. R. Statist. Soc. B 54 (1992) 221."""
    safe = np.where(np.abs(skew) < 1e-6, 1e-6, skew)
    found: Floats = 3 / safe * (np.cbrt(1 + safe * (value - safe / 6)) - 1)
    return found


def _skewness(samples: Floats) -> Floats:
    """The sample's skewness divided by √n, as Hall's transformation takes it."""
    count = samples.shape[1]
    centred = samples - samples.mean(axis=1, keepdims=True)
    second, third = (centred**2).mean(axis=1), (centred**3).mean(axis=1)
    found: Floats = third / second**1.5 * np.sqrt(count * (count - 1)) / (count - 2) / np.sqrt(count)
    return found


def _moments(samples: Floats, prior: NoisePrior | None = None) -> tuple[Floats, Floats, Floats]:
    """Return means, their standard errors, and the degrees of freedom of these."""
    count = samples.shape[1]
    variances, freedom = moderated(samples.var(axis=1, ddof=1), count - 1, prior)
    return samples.mean(axis=1), np.sqrt(variances / count), freedom


def _t_tail(statistic: Floats, freedom: Floats) -> Floats:
    found: Floats = 2 * stdtr(freedom, -np.abs(statistic))
    return found


def walsh_averages(samples: Floats) -> Floats:
    """The means of all pairs of differences, each with itself too."""
    first, second = np.triu_indices(samples.shape[1])
    found: Floats = (samples[:, first] + samples[:, second]) / 2
    return found
