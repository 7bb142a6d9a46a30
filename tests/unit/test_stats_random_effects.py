"""Tests of combining results of several machines: against published values, known limits and simulation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import log, log1p, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

import pytest
import scipy
from tests.made import known

from fslab.answers import across_machines
from fslab.answers.across_machines import Estimate, OverMachines, over_machines

# Trials of the BCG vaccine: log risk ratios and their variances (Colditz et al., JAMA 271 (1994) 698). Published
# meta-analyses of them report a variance between trials of 0.318 by the method of Paule & Mandel.
BCG = [
    (-0.8893, 0.3256), (-1.5854, 0.1946), (-1.3481, 0.4154), (-1.4416, 0.0200), (-0.2175, 0.0512), (-0.7861, 0.0069),
    (-1.6209, 0.2230), (0.0120, 0.0040), (-0.4694, 0.0564), (-1.3713, 0.0730), (-0.3394, 0.0124), (0.4459, 0.5325),
    (-0.0173, 0.0714),
]  # fmt: skip


def estimates(*means: float, error: float = 0.01, n: int = 10) -> list[Estimate]:
    return [Estimate(mean=mean, error=error, n=n) for mean in means]


class Combined(NamedTuple):
    mean: float
    spread: float
    share: float
    interval: tuple[float, float]
    prediction: tuple[float, float]


def combine(given: Sequence[Estimate]) -> Combined:
    """Return all but the share as logarithms."""
    found = over_machines(given)
    ends = [(log(each.low), log(each.high)) for each in (known(found.interval), known(found.prediction))]
    return Combined(log(found.average or 0), log1p(found.spread or 0), found.share or 0, *ends)


def test_the_spread_is_that_of_paule_and_mandel() -> None:
    found = combine([Estimate(mean=mean, error=sqrt(variance), n=200) for mean, variance in BCG])
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
    found = combine(estimates(*means, error=1e-7, n=1000))
    limit = float(scipy.stats.t.ppf(0.975, len(means) - 1))
    half, ahead = limit * stdev(means) / sqrt(len(means)), limit * stdev(means) * sqrt(1 + 1 / len(means))
    assert found.mean == pytest.approx(fmean(means))
    assert found.spread == pytest.approx(stdev(means), rel=1e-4)
    assert found.share == pytest.approx(1, abs=1e-4)
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(half, rel=0.06)
    assert (found.prediction[1] - found.prediction[0]) / 2 == pytest.approx(ahead, rel=0.08)


def test_machines_that_are_alike_have_no_spread() -> None:
    found = combine(estimates(0.2, 0.21, 0.19, 0.2, 0.205, 0.195, error=0.05))
    assert (found.spread, found.share) == (0.0, 0.0)
    assert found.mean == pytest.approx(0.2)


@pytest.mark.parametrize(
    "given", [[], estimates(0.1, 0.2, 0.3, 0.4), estimates(0.1, 0.2, 0.3, 0.4, float("inf"))]
)
def test_what_cannot_be_combined(given: list[Estimate]) -> None:
    assert over_machines(given) == OverMachines()


@pytest.mark.parametrize("error", [0.0, 1e-300])
def test_values_that_are_all_equal_do_not_count_for_all(error: float) -> None:
    found = combine([*estimates(0.1, 0.2, 0.3, 0.4, error=0.02), Estimate(mean=0.9, error=error, n=4)])
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
    monkeypatch.setattr(across_machines, "DRAWS", 500)
    chosen, runs = random.Random(1), 150
    average = another = 0
    for _ in range(runs):
        given = []
        for _ in range(7):
            here, own = chosen.gauss(0, spread), noise * 2 ** chosen.uniform(-1, 1)
            values = [chosen.gauss(here, own) for _ in range(4)]
            given.append(Estimate(mean=fmean(values), error=stdev(values) / 2, n=4))
        found = combine(given)
        average += found.interval[0] <= 0 <= found.interval[1]
        another += found.prediction[0] <= chosen.gauss(0, spread) <= found.prediction[1]
    assert min(average, another) >= 0.9 * runs  # 95 % of 150 runs: standard deviation 1.8 %
