"""Tests of combining results of several machines: against published values, known limits and simulation."""

from __future__ import annotations

import random
from math import sqrt
from statistics import fmean, stdev

import pytest
import scipy

from fslab.stats import Reason, random_effects
from fslab.stats.random_effects import Estimate, combine

# Trials of the BCG vaccine: log risk ratios and their variances (Colditz et al., JAMA 271 (1994) 698). Published
# meta-analyses of them report a variance between trials of 0.318 by the method of Paule & Mandel.
BCG = [
    (-0.8893, 0.3256), (-1.5854, 0.1946), (-1.3481, 0.4154), (-1.4416, 0.0200), (-0.2175, 0.0512), (-0.7861, 0.0069),
    (-1.6209, 0.2230), (0.0120, 0.0040), (-0.4694, 0.0564), (-1.3713, 0.0730), (-0.3394, 0.0124), (0.4459, 0.5325),
    (-0.0173, 0.0714),
]  # fmt: skip


def estimates(*means: float, error: float = 0.01, size: int = 10) -> list[Estimate]:
    return [Estimate(mean=mean, error=error, size=size) for mean in means]


def test_the_spread_is_that_of_paule_and_mandel() -> None:
    found = combine([Estimate(mean=mean, error=sqrt(variance), size=200) for mean, variance in BCG])
    assert found.spread is not None
    assert found.spread**2 == pytest.approx(0.318, abs=0.0005)

    def squares(between: float) -> float:
        weights = [1 / (variance + between) for _, variance in BCG]
        mean = sum(w * y for w, (y, _) in zip(weights, BCG, strict=True)) / sum(weights)
        return sum(w * (y - mean) ** 2 for w, (y, _) in zip(weights, BCG, strict=True)) - len(BCG) + 1

    assert found.spread**2 == pytest.approx(scipy.optimize.brentq(squares, 0, 10), rel=1e-6)
    weights = [1 / (variance + found.spread**2) for _, variance in BCG]
    assert found.mean == pytest.approx(
        sum(w * y for w, (y, _) in zip(weights, BCG, strict=True)) / sum(weights)
    )


def test_without_noise_the_intervals_are_students() -> None:
    means = [0.1, 0.3, 0.15, 0.4, 0.22, 0.05, 0.31]
    found = combine(estimates(*means, error=1e-7, size=1000))
    assert found.interval is not None
    assert found.prediction is not None
    limit = float(scipy.stats.t.ppf(0.975, len(means) - 1))
    half, ahead = limit * stdev(means) / sqrt(len(means)), limit * stdev(means) * sqrt(1 + 1 / len(means))
    assert found.mean == pytest.approx(fmean(means))
    assert found.spread == pytest.approx(stdev(means), rel=1e-4)
    assert found.share == pytest.approx(1, abs=1e-4)
    assert (found.interval.high - found.interval.low) / 2 == pytest.approx(half, rel=0.06)
    assert (found.prediction.high - found.prediction.low) / 2 == pytest.approx(ahead, rel=0.08)


def test_machines_that_are_alike_have_no_spread() -> None:
    found = combine(estimates(0.2, 0.21, 0.19, 0.2, 0.205, 0.195, error=0.05))
    assert (found.spread, found.share) == (0.0, 0.0)
    assert found.mean == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], Reason.NO_SAMPLES),
        (estimates(0.1, 0.2, 0.3, 0.4), Reason.TOO_FEW_SAMPLES),
        (estimates(0.1, 0.2, 0.3, 0.4, float("inf")), Reason.NOT_FINITE),
    ],
)
def test_what_cannot_be_combined(given: list[Estimate], reason: Reason) -> None:
    found = combine(given)
    assert (found.reason, found.mean, found.interval, found.prediction) == (reason, None, None, None)


@pytest.mark.parametrize("error", [0.0, 1e-300])
def test_values_that_are_all_equal_do_not_count_for_all(error: float) -> None:
    found = combine([*estimates(0.1, 0.2, 0.3, 0.4, error=0.02), Estimate(mean=0.9, error=error, size=4)])
    assert found.mean is not None
    assert 0.1 < found.mean < 0.6
    same = combine(estimates(*[0.3] * 5, error=error))
    assert same.mean == pytest.approx(0.3)


def test_the_same_estimates_give_the_same_answer() -> None:
    given = estimates(0.1, 0.3, 0.15, 0.4, 0.22)
    assert combine(given) == combine(given)


@pytest.mark.parametrize(("spread", "noise"), [(0.0, 0.1), (0.05, 0.1), (0.3, 0.05)])
def test_intervals_hold_what_they_say(spread: float, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 95 % intervals cover the mean, and the value of another machine, in at least 90 % of 150 runs.

    A part of benches/fleet_rule.py: 4 blocks on each of 7 machines, whose noise differs by up to a factor of 4.
    """
    monkeypatch.setattr(random_effects, "DRAWS", 500)
    chosen, runs = random.Random(1), 150
    average = another = 0
    for _ in range(runs):
        given = []
        for _ in range(7):
            here, own = chosen.gauss(0, spread), noise * 2 ** chosen.uniform(-1, 1)
            values = [chosen.gauss(here, own) for _ in range(4)]
            given.append(Estimate(mean=fmean(values), error=stdev(values) / 2, size=4))
        found = combine(given)
        assert found.interval is not None
        assert found.prediction is not None
        average += found.interval.low <= 0 <= found.interval.high
        another += found.prediction.low <= chosen.gauss(0, spread) <= found.prediction.high
    assert min(average, another) >= 0.9 * runs  # 95 % of 150 runs: standard deviation 1.8 %
