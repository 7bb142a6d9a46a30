"""Tests of comparing counts of events, some of which are 0, by their difference."""

from collections.abc import Sequence

import pytest

from fslab.answers.model import Verdict
from fslab.answers.question import Question, answer
from fslab.answers.words import verdict_words
from fslab.stats import Reason
from fslab.stats.compare import ComparisonMethod, RatioEstimate
from fslab.stats.counts import compare_counts
from fslab.stats.goal import Goal, expected_needed, is_equivalent
from fslab.units import Unit


def compared(a: Sequence[float], b: Sequence[float]) -> RatioEstimate:
    return compare_counts(dict(enumerate(a)), dict(enumerate(b)))


def test_by_hand() -> None:
    """The differences 8, 12, 10 have the mean 10 and s = 2.

    Poisson counts with 12 events per block (both samples together) have s = √12, which is larger and therefore used.
    The standard error is √12/√3 = 2, and t(0.975; 2) is 4.303.
    """
    found = compared([9, 13, 11], [1, 1, 1])
    assert found.more == pytest.approx(10)
    assert found.more_interval is not None
    assert found.more_interval.high - 10 == pytest.approx(4.3027 * 2, abs=1e-3)
    assert (found.method, found.differs, found.is_larger) == (ComparisonMethod.COUNTS, True, True)
    assert found.p_value == pytest.approx(0.0377, abs=1e-4)


def test_what_scatters_more_than_chance_is_taken_as_it_scatters() -> None:
    found = compared([0, 30, 60], [0, 0, 0])
    assert found.more_interval is not None
    assert found.more_interval.high - 30 == pytest.approx(4.3027 * 30 / 3**0.5, abs=1e-2)
    assert found.differs is False


def test_none_in_three_trials_does_not_mean_none_ever() -> None:
    found = compared([0, 0, 0], [0, 0, 0])
    assert found.more_interval is not None
    assert found.more_interval.high == pytest.approx(3.6889 / 3, abs=1e-3)  # exp(-3.6889) = 0.025
    assert (found.differs, found.is_larger) == (False, None)
    assert found.p_value == pytest.approx(1)
    assert compared([1, 1, 1], [0, 0, 0]).differs is False


def test_only_blocks_that_both_have() -> None:
    few = compare_counts({0: 9, 1: 9, 2: 9}, {1: 0, 2: 0, 3: 0})
    assert (few.reason, few.differs, few.needed) == (Reason.TOO_FEW_SAMPLES, None, 3)


@pytest.mark.parametrize("values", [[], [1, 2, float("nan")], [-1, 2, 3]])
def test_what_are_no_counts(values: list[float]) -> None:
    assert compared(values, [0, 0, 0]).differs is None


def test_counts_that_stay_equal_are_alike_and_the_number_of_trials_for_it_is_known() -> None:
    few, enough = (dict.fromkeys(range(size), 0.0) for size in (3, 8))
    found = compare_counts(few, few)
    assert not is_equivalent(found, 0.1)
    further = expected_needed(found, precision=0.1, goal=Goal.DECIDED)
    assert further is not None
    assert 3 + further == 4, "3.69 ÷ 4 is the first below 1"
    four = dict.fromkeys(range(4), 0.0)
    assert is_equivalent(compare_counts(four, four), 0.1)
    assert not is_equivalent(compare_counts({**four, 3: 1.0}, four), 0.1), "one event is not none"
    assert is_equivalent(compare_counts(enough, enough), 0.1)
    two_more = dict.fromkeys(enough, 2.0)
    assert not is_equivalent(compare_counts(two_more, enough), 0.1)
    (alike,) = answer([Question(over=enough, under=enough, counts=True)])
    assert (alike.verdict, alike.settled, verdict_words(alike, Unit.COUNT)) == (
        Verdict.ALIKE,
        True,
        "alike (± 1)",
    )
