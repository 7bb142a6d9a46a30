"""What a comparison without a difference would have shown, and what it rules out."""

from __future__ import annotations

import random
from math import exp, expm1

import pytest

from fslab.stats import Reason
from fslab.stats.compare import Method, RatioEstimate
from fslab.stats.detect import detectable, excluded
from fslab.stats.interval import Interval
from fslab.stats.paired import compare_blocks


def estimate(low: float, high: float, *, n: int, method: Method) -> RatioEstimate:
    return RatioEstimate(
        n_a=n, n_b=n, ratio=1.0, interval=Interval(low=low, high=high, coverage=0.95), p_value=0.5,
        reason=None, needed=4, method=method,
    )  # fmt: skip


def test_by_hand() -> None:
    # 5 blocks: t of 4 is 2.7764 at 95 % and 0.9410 at 80 % one-sided (printed tables)
    found = detectable(estimate(exp(-0.1), exp(0.1), n=5, method=Method.PAIRED_T))
    assert found == pytest.approx(expm1(0.1 * (1 + 0.9410 / 2.7764)), abs=1e-5)
    # unpaired 5 and 5 have 8 degrees of freedom: 2.3060 and 0.8889
    found = detectable(estimate(exp(-0.1), exp(0.1), n=5, method=Method.RANK_SUM))
    assert found == pytest.approx(expm1(0.1 * (1 + 0.8889 / 2.3060)), abs=1e-5)


def test_half_the_power_is_the_half_width() -> None:
    assert detectable(estimate(exp(-0.1), exp(0.1), n=9, method=Method.PAIRED_T), power=0.5) == pytest.approx(
        expm1(0.1)
    )


def test_without_an_interval_nothing_is_known() -> None:
    none = RatioEstimate(
        n_a=2, n_b=2, ratio=1.0, interval=None, p_value=1.0, reason=Reason.TOO_FEW_SAMPLES, needed=4
    )
    assert detectable(none) is None
    assert excluded(none) is None


def test_a_power_below_one_half_is_refused() -> None:
    with pytest.raises(ValueError, match="power"):
        detectable(estimate(0.9, 1.1, n=9, method=Method.PAIRED_T), power=0.3)


def test_the_far_end_is_ruled_out() -> None:
    assert excluded(estimate(0.96, 1.02, n=9, method=Method.PAIRED_T)) == pytest.approx(1 / 0.96 - 1)
    assert excluded(estimate(0.99, 1.06, n=9, method=Method.PAIRED_T)) == pytest.approx(0.06)


def test_such_a_difference_is_seen_about_as_often_as_promised() -> None:
    generator, rounds = random.Random(7), 1500

    def look(ratio: float) -> RatioEstimate:
        cells = ((level, [exp(generator.gauss(0, 0.03)) for _ in range(8)]) for level in (ratio, 1.0))
        a, b = (dict(enumerate(level * value for value in values)) for level, values in cells)
        return compare_blocks(a, b)

    promised = [found for _ in range(300) if (found := detectable(look(1.0))) is not None]
    typical = sorted(promised)[150]
    seen = sum(look(1 + typical).differs is True for _ in range(rounds))
    assert seen / rounds == pytest.approx(0.8, abs=0.05)
