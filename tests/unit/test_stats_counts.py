"""Tests of comparing counts of events, some of which are 0, by their difference."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from tests.made import known
from tests.unit.test_page_words import stack

from fslab.analysis.table_rows import row_answers
from fslab.analysis.workload_groups import Sample
from fslab.answers.model import Verdict
from fslab.answers.ratio import Question, answer
from fslab.answers.verdict_words import verdict_words
from fslab.stats import Reason
from fslab.stats.comparison_settled import is_equivalent
from fslab.stats.counts import compare_counts, share_limit
from fslab.stats.estimate_model import CommonCorrelation, ComparisonMethod, RatioEstimate
from fslab.stats.interim_looks import Looks
from fslab.units import Direction, Unit


def compared(a: Sequence[float], b: Sequence[float]) -> RatioEstimate:
    return compare_counts(dict(enumerate(a)), dict(enumerate(b)))


def against_none(events: Sequence[float], **more: Any) -> Question:
    """Return the comparison of these counts with as many of 0."""
    none = dict.fromkeys(range(len(events)), 0.0)
    fewer: dict[str, Any] = {"names": ("a", "b"), "better": Direction.LOWER, "counts": True}
    return Question(over=dict(enumerate(events)), under=none, **fewer, **more)


def test_by_hand() -> None:
    """The differences 8, 12, 10 have the mean 10 and s = 2.

    Poisson counts with 12 events per block (both samples together) have s = √12, which is larger and therefore used.
    The standard error is √12/√3 = 2, and t(0.975; 2) is 4.303.
    """
    found = compared([9, 13, 11], [1, 1, 1])
    assert found.more == pytest.approx(10)
    assert known(found.more_interval).high - 10 == pytest.approx(4.3027 * 2, abs=1e-3)
    assert (found.method, found.differs, found.is_larger) == (ComparisonMethod.COUNTS, True, True)
    assert found.p_value == pytest.approx(0.0377, abs=1e-4)


def test_what_scatters_more_than_chance_is_taken_as_it_scatters() -> None:
    found = compared([0, 30, 60], [0, 0, 0])
    assert known(found.more_interval).high - 30 == pytest.approx(4.3027 * 30 / 3**0.5, abs=1e-2)
    assert found.differs is False


def test_independent_samples_that_resemble_the_ones_before_have_a_wider_interval() -> None:
    a, b = {block: 10 + block % 2 for block in range(20)}, {block: 5 + block % 2 for block in range(20)}
    plain = compare_counts(a, b, paired=False)
    wide = compare_counts(a, b, paired=False, common=(CommonCorrelation(lag1=0.5, values=200),) * 2)
    assert plain.widening == 1
    assert wide.widening > 3**0.5
    assert known(wide.more_interval).high - 5 == pytest.approx(
        wide.widening * (known(plain.more_interval).high - 5)
    )
    assert known(wide.p_value) > known(plain.p_value)
    few = compare_counts({0: 8, 1: 10, 2: 10, 3: 12}, {7: 0, 8: 0, 9: 0}, paired=False)
    assert few.differs
    assert known(few.p_if_correlated) > 0.05, "so few do not show it"


def test_differences_that_resemble_the_ones_before_have_a_wider_interval() -> None:
    """Ten blocks with 20 events, ten with none, against 3 in each: s is 10.26, t(0.975; 19) is 2.093."""
    found = compared([20.0] * 10 + [0.0] * 10, [3.0] * 20)
    assert found.widening > 3**0.5
    assert known(found.more_interval).high - 7 == pytest.approx(
        found.widening * 2.0930 * 10.2598 / 20**0.5, rel=1e-3
    )
    assert found.differs is False
    assert compared([20.0, 0.0] * 10, [3.0] * 20).differs


def test_a_difference_of_few_blocks_holds_only_if_trials_are_independent() -> None:
    """10 ± 8.6: with an autocorrelation of 0.5, the interval would be 1.85 times as wide, and contain 0."""
    few = compared([9, 13, 11], [1, 1, 1])
    assert (few.differs, few.rests_on_independence) == (True, True)
    assert known(few.p_if_correlated) > 0.05
    assert not compared([40, 44, 42], [1, 1, 1]).rests_on_independence
    assert not compared([2, 3] * 10, [1, 1] * 10).rests_on_independence, "20 blocks show it"
    found, sure = (answer([against_none(events)])[0] for events in ([9, 13, 11], [40, 44, 42]))
    assert (sure.fragile, sure.settled) == (False, True)
    assert (found.holds, found.fragile, found.settled) == (True, True, False)
    assert found.further


def test_no_event_says_nothing_about_a_mean_but_bounds_the_share_of_trials() -> None:
    found = compared([0, 0, 0], [0, 0, 0])
    assert (found.reason, found.more, found.more_interval) == (Reason.NO_EVENTS, None, None)
    assert share_limit(8) == pytest.approx(0.3123, abs=1e-4), "0.6877 ** 8 = 0.05"
    assert compared([1, 1, 1], [0, 0, 0]).differs is False


def test_independent_samples_need_no_common_blocks() -> None:
    """The means 10 and 0 have the errors 1 and 0; Poisson counts would have √(10/4), and t(0.975; 2) is 4.303."""
    found = compare_counts({0: 8, 1: 10, 2: 10, 3: 12}, {7: 0, 8: 0, 9: 0}, paired=False)
    assert found.more == 10
    assert known(found.more_interval).high - 10 == pytest.approx(4.3027 * 2.5**0.5, abs=1e-3)
    assert found.differs is True


def test_only_blocks_that_both_have() -> None:
    few = compare_counts({0: 9, 1: 9, 2: 9}, {1: 0, 2: 0, 3: 0})
    assert (few.reason, few.differs, few.needed) == (Reason.TOO_FEW_SAMPLES, None, 3)


@pytest.mark.parametrize("values", [[], [1, 2, float("nan")], [-1, 2, 3]])
def test_what_are_no_counts(values: list[float]) -> None:
    assert compared(values, [0, 0, 0]).differs is None


@pytest.mark.parametrize("trials", [3, 100])
@pytest.mark.parametrize("paired", [True, False])
def test_counts_of_nothing_are_never_alike_and_need_no_more_trials(trials: int, *, paired: bool) -> None:
    """Events that come ten at once in one trial of ten are most likely not seen in three."""
    (found,) = answer([against_none([0.0] * trials, paired=paired)])
    assert (found.verdict, found.settled, found.further) == (Verdict.NONE_SEEN, True, None)
    share = {3: "63 %", 100: "3.0 %"}[trials]
    told = f"none in {trials} trials each (95 % CI: at most {share} of trials)"
    assert verdict_words(found, Unit.COUNT) == told


def test_counts_that_hardly_differ_say_what_was_seen_instead_of_asking_for_hours() -> None:
    """Operations lost after power cuts, by the moment of the cut."""
    ext4 = dict(enumerate([14.0, 35.0, 40.0, 40.0, 40.0, 40.0, 51.0, 20.0]))
    btrfs = dict(enumerate([50.0, 39.0, 20.0, 39.0, 32.0, 0.0, 29.0, 40.0]))
    xfs = dict(enumerate([51.0, 22.0, 55.0, 36.0, 20.0, 40.0, 51.0, 3.0]))
    for other, told in ((btrfs, "b up to 50 in 7 of 8 trials"), (xfs, "b up to 55 in 8 of 8 trials")):
        question = Question(
            over=ext4, under=other, names=("a", "b"), better=Direction.LOWER, counts=True, block_s=60
        )
        (found,) = answer([question])
        assert (found.verdict, found.settled, found.further_s) == (Verdict.NOT_SHOWN, True, None)
        assert verdict_words(found, Unit.COUNT) == f"no difference shown: a up to 51 in 8 of 8 trials, {told}"
        (rates,) = answer([dataclasses.replace(question, counts=False)])
        assert rates.verdict is not Verdict.NOT_SHOWN


def test_equal_counts_are_not_alike() -> None:
    """How events cluster is unknown."""
    two = dict.fromkeys(range(8), 2.0)
    (found,) = answer([Question(over=two, under=two, names=("a", "b"), better=Direction.LOWER, counts=True)])
    assert (found.verdict, found.settled) == (Verdict.NOT_SHOWN, True)


def test_with_more_looks_a_forecast_from_few_counts_gives_nothing_up() -> None:
    question = against_none([0.0, 3.0, 0.0, 1.0, 2.0])
    (found,) = answer([question], looks=Looks(first=5, most=40))
    assert (found.verdict, found.settled) == (Verdict.OPEN, False)
    assert known(found.further) > 5
    (last,) = answer([question], looks=Looks(first=5, most=5))
    assert (last.verdict, last.settled) == (Verdict.NOT_SHOWN, True)


def test_a_difference_that_twice_as_many_trials_would_show_is_pursued() -> None:
    """s = 4.24: with 6 blocks, 2.571 × 4.24 ÷ √6 = 4.45 is the first half-width below the difference of 5."""
    (found,) = answer([against_none([9.0, 0.0, 8.0, 3.0])])
    assert (found.verdict, found.settled, found.further) == (Verdict.OPEN, False, 2)
    assert not is_equivalent(compared([2, 2, 2], [2, 2, 0]), 10.0), "counts are never alike"


def test_a_loss_of_which_some_are_zero_ends_with_the_largest() -> None:
    """The row decides: of a pair without a zero, only trials that could show a difference are asked for, too."""
    losses = {
        "xfs": [8.10e6, 9.55e6, 7.58e6, 7.76e6, 9.50e6, 10.8e6, 6.65e6, 0.77e6],
        "ext4": [8.23e6, 11.2e6, 6.38e6, 6.58e6, 14.1e6, 11.1e6, 8.09e6, 8.06e6],
        "btrfs": [8.96e6, 10.6e6, 7.17e6, 9.71e6, 8.00e6, 0.0, 7.64e6, 8.49e6],
    }
    samples = [
        Sample(stack=name, spec=stack(name), values=dict(enumerate(found))) for name, found in losses.items()
    ]
    row = row_answers(samples, Direction.LOWER, unit=Unit.NANOSECONDS)
    assert {(each.verdict, each.settled, each.further) for each in row.answers} == {
        (Verdict.NOT_SHOWN, True, None)
    }
    told = "no difference shown: ext4 up to 14.1 ms in 8 of 8 trials, btrfs up to 10.6 ms in 7 of 8 trials"
    assert verdict_words(row.answers[2], Unit.NANOSECONDS) == told
    zeros = [dataclasses.replace(each, values=dict.fromkeys(each.values, 0.0)) for each in samples]
    nothing = row_answers(zeros, Direction.LOWER, unit=Unit.NANOSECONDS)
    assert {each.verdict for each in nothing.answers} == {Verdict.NONE_SEEN}
    upwards = row_answers(samples, Direction.NEITHER, unit=Unit.NANOSECONDS)
    assert upwards.answers[1].verdict is Verdict.NO_RATIO, "nothing is lost"


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_an_amount_differs_from_none_in_enough_trials_whatever_its_unit(size: float) -> None:
    """Equal amounts in n trials, and none in as many: t(0.975; n − 1) ÷ √n is below 1 from n = 7 on."""
    for trials, differs in ((6, False), (7, True)):
        question = against_none([size] * trials, unit=Unit.NANOSECONDS)
        found = compare_counts(question.over, question.under, amounts=True)
        assert found.more == pytest.approx(size)
        assert found.differs is differs
    (seen,) = answer([question])
    assert seen.winner == "b"
    assert verdict_words(seen, Unit.NANOSECONDS) == {1.0: "1 ns more", 1e9: "1 s more"}[size]
