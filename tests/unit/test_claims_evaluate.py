"""Tests of verdicts on claims, alone and together. Intervals were calculated by hand (see ``claimed.NOISE``)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import pytest
from tests.made import known
from tests.unit.claimed import (
    DIFFERS,
    HALF,
    HALF_975,
    NOT_TESTED,
    OPEN,
    OPPOSITE,
    PARTLY,
    REPLICATED,
    REVERSED,
    SMALL,
    TIE,
    UNKNOWN,
    answer,
    cell,
    claim,
    known_independent,
    noisy,
    parts,
    steady,
    trials,
)

from fslab.cell import Cell, MachineSpec
from fslab.claims.campaign_estimates import Trials
from fslab.claims.claim_words import claim_verdict_words, finding_words
from fslab.claims.evaluate import Evaluator
from fslab.claims.model import BELOW, ClaimAnswer, ClaimVerdict, OpenReason
from fslab.claims.parts import within
from fslab.claims.requirement_check import ClaimParts, answers
from fslab.claims.verdict import common, from_edge, of_claim
from fslab.stats import Interval
from fslab.stats.comparison_settled import Goal, is_settled
from fslab.stats.estimate_model import CORRELATED, ComparisonMethod, RatioEstimate
from fslab.stats.interim_looks import Looks, compare_at_look
from fslab.trial_record import Provenance

__all__ = ["known_independent"]
independent = pytest.mark.usefixtures("known_independent")

EXT4, XFS, BTRFS = (cell(name) for name in ("ext4", "xfs", "btrfs"))
Values = list[tuple[Cell, Sequence[float | None]]]


def against_ext4(xfs: float) -> Values:
    """Return values of ext4, always 100, and of xfs around this."""
    return [(EXT4, steady(100.0)), (XFS, noisy(xfs))]


TWICE = against_ext4(200.0)
JOBS = [cell(name, f"w[numjobs={jobs}]", numjobs=jobs) for name in ("xfs", "ext4") for jobs in (1, 4)]
TWO = [cell(name, work, bs=bs) for work, bs in (("a", "4k"), ("b", "8k")) for name in ("ext4", "xfs")]
NOATIME = [cell(name, mount="noatime") for name in ("ext4", "xfs")]


def of_ext4(that: str, metric: str, values: Sequence[float], looks: Looks | None = None) -> ClaimAnswer:
    """Return the answer to a claim about a figure of ext4 itself."""
    return answer(claim(that, metric=metric), [(EXT4, values)], metric, looks=looks)


@independent
@pytest.mark.parametrize(
    ("that", "verdict"),
    [
        ("xfs > ext4", REPLICATED),
        ("ext4 > xfs", REVERSED),
        ("xfs / ext4 >= 1.9", REPLICATED),  # the interval is 1.9195 to 2.0839
        ("xfs / ext4 >= 1.93", OPEN),
        ("xfs / ext4 >= 2.07", OPEN),
        ("xfs / ext4 >= 2.1", DIFFERS),
        ("xfs / ext4 in 1.9..2.1", REPLICATED),
        ("xfs / ext4 in 1.9..2.05", OPEN),
        ("ext4 ~ xfs within 110%", REPLICATED),
        ("ext4 ~ xfs within 95%", OPEN),
        ("ext4 ~ xfs within 90%", DIFFERS),
    ],
)
def test_an_interval_decides(that: str, verdict: ClaimVerdict) -> None:
    assert answer(claim(that), TWICE).verdict is verdict


def test_what_holds_only_if_trials_are_independent_is_open_with_a_tendency() -> None:
    """The interval 1.9195 to 2.0839 is above 1.9, but four trials do not show that trials are independent.

    An interval that allows for an autocorrelation of 0.5 is 1.85 times as wide on logarithms, 1.8536 to 2.1579.
    """
    ends = [2 * exp(sign * HALF * CORRELATED) for sign in (-1, 1)]
    assert ends == pytest.approx([1.8536, 2.1579], abs=1e-4)
    near = answer(claim("xfs / ext4 >= 1.9"), TWICE)
    assert (near.verdict, near.reason) == (OPEN, OpenReason.INDEPENDENCE)
    assert (near.tendency, near.size, near.direction) == (REPLICATED, OPEN, REPLICATED)
    assert ">= 1.9 if trials are independent, which needs 20 blocks to check" in near.words
    assert known(near.findings[0].further) <= 16
    said = claim_verdict_words(near, printed=False)
    assert said.startswith("open: replicated only if trials are independent")
    clear = answer(claim("xfs / ext4 >= 1.8"), TWICE)
    assert (clear.verdict, clear.tendency) == (REPLICATED, None)
    against, far = (answer(claim(f"xfs / ext4 >= {bound}"), TWICE) for bound in (2.1, 2.2))
    assert (against.verdict, against.tendency) == (OPEN, DIFFERS)
    assert (far.verdict, far.tendency) == (DIFFERS, None)


def test_a_tie_only_if_trials_are_independent_needs_at_most_the_blocks_that_show_it() -> None:
    """The interval, ± 8.6 %, lies within the margin of 10 %; that for an autocorrelation of 0.5 does not. What is left
    does not depend on how near to 1 the ratio is: nothing is to be shown about its side."""
    for middle in (100.001, 100.3):
        xfs = [middle * (each / middle) ** 2 for each in noisy(middle)]
        (near,) = answer(claim("xfs > ext4"), [(EXT4, steady(100.0)), (XFS, xfs)]).findings
        assert (near.verdict, near.tendency) == (OPEN, TIE)
        assert known(near.further) <= 16
    ratios = (
        100 * 0.97,
        100 / 0.97,
    )  # 3.6 % more of half-width for independent trials, and less than for others
    both = [answer(claim("xfs > ext4"), against_ext4(each)).findings[0] for each in ratios]
    assert [each.tendency for each in both] == [TIE, TIE]
    assert known(both[0].further) == both[1].further, "on both sides of 1 alike"


def test_one_tentative_part_leaves_a_claim_open_and_one_firm_failure_does_not() -> None:
    both = answer(claim("xfs > ext4", "xfs / ext4 >= 1.9"), TWICE)
    assert (both.verdict, both.tendency) == (OPEN, REPLICATED)
    failed = answer(claim("ext4 > xfs", "xfs / ext4 >= 1.9"), TWICE)
    assert (failed.verdict, failed.tendency) == (REVERSED, None)
    unclear = answer(claim("xfs / ext4 >= 1.93", "xfs / ext4 >= 1.9"), TWICE)
    assert (unclear.verdict, unclear.tendency) == (OPEN, None)


def test_the_interval_is_reported() -> None:
    (finding,) = answer(claim("xfs > ext4"), TWICE).findings
    assert finding.value == pytest.approx(2.0)
    assert [finding.low, finding.high] == pytest.approx([2 * exp(-HALF), 2 * exp(HALF)], rel=1e-5)
    assert "xfs / ext4 is 2.00 (1.92–2.08)" in answer(claim("xfs > ext4"), TWICE).words


@independent
def test_parts_that_are_not_replicated_share_the_error() -> None:
    """With two parts that are not replicated, each is tested at 97.5 %.

    2.1 is above the 95 % interval, which ends at 2.0839, but inside the 97.5 % interval, which ends at 2.1108.
    """
    assert 2 * exp(HALF_975) == pytest.approx(2.1108, abs=1e-4)
    open_too = "xfs / ext4 >= 2.07"
    found = answer(claim("xfs / ext4 >= 2.1", open_too), TWICE)
    assert (found.verdict, found.findings[0].verdict) == (OPEN, OPEN)
    assert "xfs / ext4 is 2.00 (1.90–2.11), needs >= 2.1" in found.words  # the interval that left it open
    refuted = answer(claim("xfs / ext4 >= 2.12", open_too), TWICE)
    assert refuted.verdict is DIFFERS
    assert refuted.findings[0].high == pytest.approx(2 * exp(HALF_975), rel=1e-5)


@independent
def test_only_a_part_that_decides_is_tested_at_its_share() -> None:
    """At 97.5 %, the interval starts at 1.895: what is replicated at 95 % would be open."""
    found = answer(claim("xfs / ext4 >= 1.9", "xfs / ext4 >= 2.07", "xfs / ext4 >= 2.5"), TWICE)
    assert [each.verdict for each in found.findings] == [REPLICATED, OPEN, DIFFERS]
    assert [each.coverage for each in found.findings] == pytest.approx([0.95, 0.95, 0.975])


@independent
def test_a_part_that_is_replicated_leaves_its_share_of_the_error() -> None:
    """A part that fails is tested at 95 % if all other parts are replicated, however many they are."""
    for beside in ((), ("xfs > ext4",), ("xfs > ext4", "xfs / ext4 >= 1.5", "xfs / ext4 >= 1.2")):
        found = answer(claim("xfs / ext4 >= 2.1", *beside), TWICE)
        assert found.verdict is DIFFERS
        assert found.findings[0].high == pytest.approx(2 * exp(HALF), rel=1e-5)
    crashed: Values = [*TWICE, (BTRFS, [None] * 4)]
    found = answer(claim("xfs / ext4 >= 2.1", "btrfs > ext4"), crashed)
    assert [each.verdict for each in found.findings] == [DIFFERS, UNKNOWN], (
        "nor does what has no figure take one"
    )


@independent
@pytest.mark.parametrize(
    ("ratio", "margin", "verdict"),
    [
        (1.06, 0.10, REPLICATED),  # 1.0173 to 1.1045: above 1, and may be more than the margin
        (1.05, 0.10, SMALL),  # 1.0077 to 1.0940
        (1.04, 0.10, TIE),  # 0.998 to 1.0836
        (0.96, 0.10, TIE),  # 0.9214 to 1.0003, above 1/1.1
        (0.94, 0.10, REVERSED),  # 0.9022 to 0.9794
        (1.04, 0.05, OPEN),
        (0.94, 0.15, OPPOSITE),  # significantly worse, but within the margin
    ],
)
def test_an_order_is_replicated_small_a_tie_reversed_or_open(
    ratio: float, margin: float, verdict: ClaimVerdict
) -> None:
    found = answer(claim("xfs > ext4"), against_ext4(100 * ratio), margin=margin)
    assert (found.verdict, found.margin) == (verdict, margin)


@pytest.mark.parametrize(
    ("xfs", "verdict"),
    [
        ([5.0] * 20, TIE),
        ([4.0, 5.0, 5.0, 4.0] * 5, OPEN),  # 0.8 to 1
    ],
)
def test_equal_figures_are_not_the_opposite_order(xfs: list[float], verdict: ClaimVerdict) -> None:
    """An interval that ends at 1 contains 1. With ties it covers only with its ends."""
    found = answer(claim("xfs > ext4"), [(EXT4, [5.0] * 20), (XFS, xfs)])
    assert (found.verdict, found.findings[0].high) == (verdict, 1.0)


@independent
def test_direction_and_size_are_judged_apart() -> None:
    order = answer(claim("xfs > ext4"), TWICE)
    assert (order.direction, order.size) == (REPLICATED, None)
    values = against_ext4(140.0)
    found = answer(claim("xfs > ext4", "xfs / ext4 ~ 2.97 within 10%"), values)
    assert (found.verdict, found.direction, found.size) == (DIFFERS, REPLICATED, DIFFERS)
    assert "xfs / ext4 is 1.40 (1.34–1.46), not 2.97 within 10 %, though in the same direction" in found.words
    for ratio, verdict, direction, said in (
        (0.7, REVERSED, REVERSED, "reversed"),
        (1.0, DIFFERS, TIE, "differs in size, tie here"),
        (1.05, DIFFERS, SMALL, "differs in size, same direction, small"),
    ):
        other = answer(claim("xfs / ext4 >= 2.97"), against_ext4(100 * ratio))
        assert (other.verdict, other.direction) == (verdict, direction)
        assert claim_verdict_words(other, printed=False) == said
    assert "is 1.05 (1.01–1.09), not >= 2.97 (w)" in other.words


@independent
@pytest.mark.parametrize("ratio", [0.93, 1.0, 1.08])
def test_a_part_below_the_margin_decides_a_claim_whatever_its_sign(ratio: float) -> None:
    """Which of the three verdicts it is depends on the number of trials, and so must nothing else: not whether the
    claim is open because of its other part, nor whether it is tested."""
    below = against_ext4(100 * ratio)
    found = answer(claim("xfs > ext4", "btrfs > ext4"), [*below, (BTRFS, noisy(100.0)[:2])], margin=0.15)
    assert found.verdict in BELOW
    assert found.reason is None
    assert of_claim([found.verdict, NOT_TESTED]) is found.verdict


def test_a_narrow_and_a_wide_interval_below_the_margin_are_a_tie() -> None:
    """An interval for autocorrelated trials is wider: it may contain 1 where the other one does not."""
    assert common(SMALL, TIE) is TIE
    assert common(TIE, OPPOSITE) is TIE
    assert common(SMALL, REPLICATED) is REPLICATED
    assert common(OPPOSITE, REVERSED) is REVERSED
    assert common(SMALL, OPEN) is None


def test_an_open_claim_says_whether_it_is_noise_or_the_limit() -> None:
    """The interval 1.92 to 2.08 is within the margin of 10 % of the limit 2: more trials are pointless.

    It is not within 5 % of 1.93: there, the reason is noise, and the time that is still needed is estimated.
    """
    limit = answer(claim("xfs / ext4 >= 2"), TWICE)
    assert (limit.verdict, limit.reason, limit.more_s) == (OPEN, OpenReason.AT_LIMIT, None)
    assert limit.findings[0].further is None
    noise = answer(claim("xfs / ext4 >= 1.93"), TWICE, margin=0.05)
    assert (noise.verdict, noise.reason) == (OPEN, OpenReason.NOISE)
    # A block has one trial of each of the two cells, and a trial takes 1 s.
    assert noise.more_s == pytest.approx(2.0 * (noise.findings[0].further or 0))


def test_a_part_that_trials_can_decide_counts_more_than_one_at_its_limit() -> None:
    """The interval 1.948 to 2.116 is not within 5 % of 2.06, and the ratio is below it: trials can show that."""
    values = [*TWICE, (BTRFS, noisy(203.0))]
    found = answer(claim("xfs / ext4 >= 2", "btrfs / ext4 in 2.06..3"), values, margin=0.05)
    assert [each.at_limit for each in found.findings] == [True, False]
    assert (found.verdict, found.reason) == (OPEN, OpenReason.NOISE)
    assert known(found.more_s) > 0


def test_a_ratio_near_its_limit_needs_the_trials_that_show_that_it_is_near() -> None:
    """The half-width of 6.2 % has to fall below 5 % less the distance of 0.5 %, and not below the distance."""
    scattered = [200 * exp(1.5 * each) for each in (-0.03, -0.01, 0.01, 0.03)]
    (near,) = answer(
        claim("xfs / ext4 >= 1.99"), [(EXT4, steady(100.0)), (XFS, scattered)], margin=0.05
    ).findings
    assert (near.verdict, near.at_limit) == (OPEN, False)
    assert 1 <= known(near.further) <= 8


@pytest.mark.parametrize(
    ("that", "percent", "reason"),
    [
        ("xfs / ext4 <= 1.02", 98, OpenReason.NOISE),  # 0.941 to 1.021
        ("xfs / ext4 >= 0.98", 102, OpenReason.NOISE),
        ("xfs / ext4 <= 1.06", 106, OpenReason.AT_LIMIT),  # 1.017 to 1.104, nowhere 6 % from 1.06
    ],
)
def test_a_limit_near_1_has_less_around_it_than_the_margin(
    that: str, percent: float, reason: OpenReason
) -> None:
    found = answer(claim(that), against_ext4(percent))
    assert (found.verdict, found.reason) == (OPEN, reason)


def test_the_first_part_that_fails_is_what_an_open_claim_waits_for() -> None:
    """If one of two open parts seems to fail, the claim needs only the trials of this part: one failed part decides."""
    values = [*TWICE, (BTRFS, noisy(203.0))]
    found = answer(claim("xfs / ext4 >= 1.93", "btrfs / ext4 in 2.06..3"), values, margin=0.01)
    seems_held, failing = found.findings
    assert (seems_held.verdict, failing.verdict) == (OPEN, OPEN)
    assert seems_held.further is not None
    assert found.more_s == pytest.approx(2.0 * (failing.further or 0))


@independent
def test_holding_needs_no_correction() -> None:
    # At 97.5 %, the interval would start at 1.895.
    held = answer(claim("xfs / ext4 >= 1.9", "xfs > ext4"), TWICE)
    assert held.verdict is REPLICATED


def test_a_gain_is_judged_by_block() -> None:
    values = steady(100.0), noisy(300.0), steady(50.0), steady(100.0)
    that = "xfs gains more than ext4 from numjobs=1 to numjobs=4"
    found = answer(claim(that), [*zip(JOBS, values, strict=True)])
    (finding,) = found.findings
    assert found.verdict is REPLICATED
    assert finding.value == pytest.approx(1.5)
    assert [finding.low, finding.high] == pytest.approx([1.5 * exp(-HALF), 1.5 * exp(HALF)], rel=1e-5)


def test_a_gain_of_equal_quotients_has_no_interval() -> None:
    """Their spread shows nothing, and the two products are no independent samples."""
    values = [100.0] * 3, [300.0, 330.0, 363.0], [50.0] * 3, [100.0, 110.0, 121.0]
    that = "xfs gains more than ext4 from numjobs=1 to numjobs=4"
    found = answer(claim(that), [*zip(JOBS, values, strict=True)])
    (finding,) = found.findings
    assert (finding.low, finding.high, found.verdict) == (None, None, OPEN)


def test_an_overall_ratio_is_the_geometric_mean() -> None:
    values = steady(100.0), noisy(400.0), steady(100.0), steady(100.0)
    (finding,) = answer(claim("overall xfs / ext4 >= 1.9"), [*zip(TWO, values, strict=True)]).findings
    assert finding.value == pytest.approx(2.0)  # √(4 × 1)
    assert finding.high == pytest.approx(2 * exp(HALF / 2), rel=1e-5)


def test_a_mean_of_what_is_better_when_smaller_shows_the_ratio_that_it_names() -> None:
    values = steady(100.0), noisy(25.0), steady(100.0), steady(100.0)
    of = claim("overall xfs > ext4", metric="clat_mean")
    found = answer(of, [*zip(TWO, values, strict=True)], "write_clat_mean")
    assert found.verdict is REPLICATED
    assert "xfs / ext4 is 0.50 (0.49–0.51) (mean of 2)" in found.words
    (finding,) = found.findings
    assert finding.bound == "< 1"


def test_spreads_are_compared_by_intervals_of_all_pairs() -> None:
    """Each file system has one pair of variants, so both pairs have 97.5 % intervals.

    The ratio of the spreads is 2 / 1.1. On logarithms, its half-width is the sum of both half-widths.
    """
    values = [(EXT4, noisy(200.0)), (XFS, noisy(110.0)), *((each, steady(100.0)) for each in NOATIME)]
    found = answer(claim("ext4 varies more than xfs over mount_options"), values)
    (finding,) = found.findings
    assert found.verdict is REPLICATED
    assert finding.value == pytest.approx(2 / 1.1)
    ends = [2 / 1.1 * exp(sign * 2 * HALF_975) for sign in (-1, 1)]
    assert [finding.low, finding.high] == pytest.approx(ends, rel=1e-5)
    other = answer(claim("xfs varies more than ext4 over mount_options"), values)
    assert other.verdict is REVERSED
    slower = [(EXT4, noisy(50.0)), (XFS, noisy(90.0)), *((each, steady(100.0)) for each in NOATIME)]
    (finding,) = answer(claim("ext4 varies more than xfs over mount_options"), slower).findings
    assert finding.value == pytest.approx(1.8), "2 / (10 / 9): whichever variant is the faster one"


def test_a_spread_is_as_sure_as_its_pair_with_the_fewest_blocks() -> None:
    of = claim("ext4 varies more than xfs over mount_options")
    for count in (3, 2):
        values = [
            (EXT4, noisy(200.0)),
            (XFS, noisy(110.0)[:count]),
            *((each, steady(100.0)) for each in NOATIME),
        ]
        found = answer(of, values)
        assert found.findings[0].blocks == count
    assert (found.verdict, found.findings[0].value) == (OPEN, None)
    assert "not enough data (2 common blocks; 3 are needed)" in found.words


def test_noise_alone_is_no_spread() -> None:
    """The variants of both file systems differ only by noise. Three times as much noise is not a larger spread."""
    loud = [100 * exp(3 * each) for each in (-0.03, 0.01, -0.01, 0.03)]
    values = [(EXT4, loud), (XFS, noisy(100.0)), *((each, steady(100.0)) for each in NOATIME)]
    assert answer(claim("ext4 varies more than xfs over mount_options"), values).verdict is OPEN


def test_a_figure_itself_is_judged_in_its_unit() -> None:
    values = noisy(4500.0)  # in ns; the interval is 4.319 to 4.689 µs
    assert of_ext4("ext4 in 4us..5us", "write_clat_mean", values).verdict is REPLICATED
    found = of_ext4("ext4 in 4.4us..5us", "write_clat_mean", values)
    assert found.verdict is OPEN
    assert "ext4 is 4.50 µs (4.32 µs–4.69 µs)" in found.words


@pytest.mark.parametrize(
    ("that", "metric", "middle"),
    [
        ("ext4 ~ 2500000 within 10%", "write_iops", 2.5e6),
        ("ext4 ~ 2500k within 10%", "write_iops", 2.5e6),
        ("ext4 ~ 0.00009s within 10%", "write_clat_mean", 9e4),
    ],
)
def test_a_figure_may_be_large_or_small(that: str, metric: str, middle: float) -> None:
    found = of_ext4(that, metric, noisy(middle))
    assert found.verdict is REPLICATED
    (part,), _ = parts(claim(that, metric=metric), [EXT4])
    assert [part.bounds.low, part.bounds.high] == pytest.approx([middle / 1.1, middle * 1.1])


def test_a_mean_of_figures_is_a_figure() -> None:
    """√(4 µs × 16 µs) is 8 µs, for which no direction is claimed."""
    values = [(cell("ext4", "a"), noisy(4000.0)), (cell("ext4", "b", bs="8k"), steady(16000.0))]
    found = answer(claim("overall ext4 in 4us..5us", metric="clat_mean"), values, "write_clat_mean")
    assert (found.verdict, found.direction, found.size) == (DIFFERS, None, DIFFERS)
    assert "ext4 is 8 µs (7.84 µs–8.17 µs), not in 4us..5us (mean of 2)" in found.words


@pytest.mark.parametrize(
    ("middle", "verdict", "words"),
    [
        (1.0, OPEN, "needs < 1%"),  # 0.960 to 1.042 %: it would be a tie
        (0.9, REPLICATED, "ext4 is 0.90 % (0.86 %–0.94 %)"),
        (2.0, DIFFERS, "not < 1%"),
    ],
)
def test_a_figure_of_1_is_no_order(middle: float, verdict: ClaimVerdict, words: str) -> None:
    """1 % is a limit like any other: there is no other stack that could be as good, or better."""
    found = of_ext4("ext4 < 1%", "cpu_user", noisy(middle))
    assert (found.verdict, found.direction) == (verdict, None)
    assert words in found.words
    assert found.size is verdict
    assert found.reason is (OpenReason.AT_LIMIT if verdict is OPEN else None)


def test_two_trials_decide_nothing() -> None:
    few = [(EXT4, [100.0] * 2), (XFS, noisy(200.0)[:2])]
    found = answer(claim("xfs > ext4"), few)
    assert found.verdict is OPEN
    assert found.words == "xfs / ext4: not enough data (2 common blocks; 3 are needed) (w)"
    sizes = {
        that: answer(claim(that), few).direction for that in ("xfs / ext4 >= 1.5", "xfs ~ ext4 within 10%")
    }
    assert [*sizes.values()] == [OPEN, None], "a tie implies no direction"


def test_what_has_few_blocks_in_common_is_counted_by_these() -> None:
    """Each cell has three trials, but they share only two blocks: the answer must not say "3 trials; 3 are needed"."""
    sides = [trials(EXT4, steady(100.0))[:3], trials(XFS, noisy(200.0))[1:]]
    judge = Evaluator(trials=Trials(records=[record for side in sides for record in side]))
    (part,), _ = parts(claim("xfs > ext4"), [EXT4, XFS])
    assert judge.answer([part]).words == ("xfs / ext4: not enough data (2 common blocks; 3 are needed) (w)")
    (alone,), _ = parts(claim("ext4 > 5"), [EXT4])
    one = Evaluator(trials=Trials(records=sides[0][:1])).answer([alone])
    assert "(1 trial; 3 are needed)" in one.words


def test_the_kernels_are_those_that_trials_ran_on() -> None:
    machine = Provenance(machine={"kernel": "6.1.176"})
    guest = EXT4.model_copy(
        update={"stack": EXT4.stack.model_copy(update={"machine": MachineSpec(type="uml", memory="1g")})}
    )
    records = [*trials(guest, [1.0, 2.0]), *trials(EXT4, [3.0]), *trials(XFS, [None])]
    told = [record.model_copy(update={"provenance": machine}) for record in records]
    assert Trials(records=told).kernels == ("6.1.176 (uml)", "6.1.176")
    assert Trials(records=told[-1:]).kernels == ()


@pytest.mark.parametrize(("further", "said"), [(1, "about 1 more trial"), (7, "about 7 more trials")])
def test_how_many_trials_are_lacking_is_reported(further: int, said: str) -> None:
    (finding,) = answer(claim("xfs / ext4 >= 2"), TWICE).findings
    told = finding_words(finding.model_copy(update={"further": further, "at_limit": False}))
    assert told == f"xfs / ext4 is 2.00 (1.92–2.08), needs >= 2, {said} (w)"


def test_a_figure_of_0_is_named_for_it_makes_no_ratio() -> None:
    found = answer(claim("ext4 / xfs >= 2"), [(EXT4, steady(100.0)), (XFS, [3.0, 0.0, 2.0, 4.0])])
    assert found.verdict is UNKNOWN
    assert found.words == (
        "not measured here: write_iops of w on xfs is 0 in 1 of 4 trials, first in block 1: no ratio; "
        "claim the figure itself, such as 'xfs < …'"
    )


@pytest.mark.parametrize(
    ("values", "verdict", "words"),
    [
        ([0.0] * 6, REPLICATED, "ext4 is 0 % (0 %–0 %)"),
        ([0.0, 2.0, 3.0, 1.0, 2.0, 2.0], REPLICATED, "ext4 is 2 % (0 %–3 %)"),
        ([0.0, 3.0, 4.0, 2.0, 3.0, 6.0], OPEN, "needs < 5%, about 6 more trials"),
        ([0.0, *[4.0] * 19], REPLICATED, "ext4 is 4 % (4 %–4 %)"),
        ([0.0, *[7.0] * 19], DIFFERS, "ext4 is 7 % (7 %–7 %), not < 5%"),
        ([0.0] * 5, OPEN, "not enough data (5 trials; 6 are needed)"),
    ],
)
def test_a_figure_itself_may_be_0(values: list[float], verdict: ClaimVerdict, words: str) -> None:
    """Its median is judged by order statistics: the range of six trials covers it in 96.9 %."""
    found = of_ext4("ext4 < 5%", "cpu_user", values)
    assert found.verdict is verdict
    assert words in found.words


def test_a_figure_that_may_be_0_holds_only_if_trials_are_independent() -> None:
    """The wider interval, 0 % to 5.7 %, contains the bound."""
    values = [0.0, 3.0, 4.0, 2.0, 3.0, 3.0]
    found = of_ext4("ext4 < 5%", "cpu_user", values)
    assert (found.verdict, found.tendency) == (OPEN, REPLICATED)
    assert found.reason is OpenReason.INDEPENDENCE


def test_a_figure_of_0_needs_more_trials_at_a_look() -> None:
    for trials_, verdict in ((8, OPEN), (10, REPLICATED)):
        found = of_ext4("ext4 < 5%", "cpu_user", [0.0] * trials_, looks=Looks(first=4))
        assert found.verdict is verdict


def test_a_figure_of_0_has_the_level_of_the_look_also_after_a_failed_trial() -> None:
    """After 13 blocks, the second and the eleventh of 12 values; after 12, the first and the last one."""
    values: list[float | None] = [5.0, 0.0, 9.0, 3.0, 11.0, 1.0, 7.0, 10.0, 2.0, 8.0, 4.0, 6.0]
    ranges = []
    for spoilt in (values, [*values[:3], None, *values[3:]]):
        found = answer(
            claim("ext4 < 5%", metric="cpu_user"), [(EXT4, spoilt)], "cpu_user", looks=Looks(first=4)
        )
        ranges.append((found.findings[0].low, found.findings[0].high))
    assert ranges == [(0.0, 11.0), (1.0, 10.0)]


def test_a_mean_of_figures_may_be_0() -> None:
    values = [(cell("ext4", "a"), [0.0, *[4.0] * 9]), (cell("ext4", "b", bs="8k"), [9.0] * 10)]
    found = answer(claim("overall ext4 in 5%..7%", metric="cpu_user"), values, "cpu_user")
    assert (found.verdict, found.findings[0].value) == (REPLICATED, 6.0)


def test_what_failed_is_not_measured_and_the_rest_is_reported() -> None:
    values = [*TWICE, (BTRFS, [None] * 4)]
    found = answer(claim("xfs is first"), values)
    assert found.verdict is PARTLY
    assert "btrfs has no usable trial: it crashed" in found.words
    assert answer(claim("btrfs is first"), values).verdict is UNKNOWN
    assert answer(claim("ext4 is first"), values).verdict is REVERSED


def test_what_is_not_possible_here_is_reported() -> None:
    records = [record for each, figures in TWICE for record in trials(each, figures)]
    judge = Evaluator(trials=Trials(records=records, impossible={BTRFS.id: "no kernel has it"}))
    found = judge.answer(*parts(claim("btrfs > ext4"), [EXT4, XFS, BTRFS]))
    assert found.words == "not measured here: no kernel has it"


def test_looking_again_and_again_takes_wider_intervals() -> None:
    once = answer(claim("xfs > ext4"), TWICE).findings[0]
    looked = answer(claim("xfs > ext4"), TWICE, looks=Looks(first=4)).findings[0]
    assert known(looked.high) > known(once.high)
    assert looked.coverage == 0.95


@pytest.mark.parametrize("lost", [2, 4])
def test_a_failed_trial_does_not_make_a_look_use_the_level_of_the_one_before(lost: int) -> None:
    """After five blocks, one of them without a usable trial, it is the second look, and not the first again."""
    spoilt: list[float | None] = [100.0] * 5
    spoilt[lost] = None
    values = [200.0, *noisy(200.0)]
    looks = Looks(first=4)
    found = answer(claim("xfs > ext4"), [(EXT4, spoilt), (XFS, values)], looks=looks).findings[0]
    common = {block: value for block, value in enumerate(values) if block != lost}
    second = compare_at_look(common, dict.fromkeys(common, 100.0), looks=looks, blocks=5)
    assert (found.low, found.high) == (known(second.interval).low, known(second.interval).high)


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ((REPLICATED, REPLICATED), REPLICATED),
        ((REPLICATED, OPEN), OPEN),
        ((OPEN, TIE, UNKNOWN), TIE),
        ((TIE, REVERSED, DIFFERS), REVERSED),
        ((TIE, DIFFERS), DIFFERS),
        ((REPLICATED, SMALL, UNKNOWN), SMALL),
        ((REPLICATED, UNKNOWN), PARTLY),
        ((UNKNOWN,), UNKNOWN),
        ((), UNKNOWN),
    ],
)
def test_a_claim_is_a_conjunction(verdicts: tuple[ClaimVerdict, ...], whole: ClaimVerdict) -> None:
    assert of_claim(verdicts) is whole


def test_a_direction_is_as_unknown_as_the_size_that_implies_it() -> None:
    """xfs / ext4 is 2, not 3, but on the claimed side. Of btrfs there are two trials: xfs could be the slower one."""
    of = claim("xfs / ext4 ~ 3 within 10%", "xfs / btrfs ~ 10 within 10%")
    for values, direction in ((steady(1.0)[:2], OPEN), ([None] * 4, PARTLY)):
        found = answer(of, [*TWICE, (BTRFS, values)])
        assert (found.verdict, found.direction) == (DIFFERS, direction)


def test_no_look_before_the_first_one_of_the_schedule() -> None:
    """Cells that begin late have fewer blocks. A look at three and one at five would spend the same error."""
    looks = Looks(first=5, most=12)
    early = answer(claim("xfs > ext4"), TWICE, looks=looks, interim=True)
    assert (early.verdict, early.findings[0].low, early.findings[0].further) == (OPEN, None, 1)
    assert "4 common blocks; 5 are needed" in early.words
    more: Values = [(each, [*values, values[0]]) for each, values in TWICE]
    assert answer(claim("xfs > ext4"), more, looks=looks, interim=True).verdict is REPLICATED
    ended = answer(claim("xfs > ext4"), TWICE, looks=looks)
    # A campaign that ended early has one look, in place of the first.
    assert ended.verdict is REPLICATED


def test_a_figure_may_need_independent_trials_too() -> None:
    """No partner in the same block cancels a drift, so a single figure is more exposed than a ratio."""
    figure = of_ext4("ext4 >= 95", "write_iops", noisy(100.0))
    assert (figure.verdict, figure.tendency) == (OPEN, REPLICATED)


def test_a_figure_that_is_always_0_is_not_above_0() -> None:
    assert of_ext4("ext4 > 0", "write_iops", [0.0] * 7).verdict is DIFFERS
    assert of_ext4("ext4 < 5", "write_iops", [0.0] * 7).verdict is REPLICATED


def test_a_part_that_is_open_has_a_forecast_even_if_the_nearer_end_is_excluded() -> None:
    """An interval from ranks is not symmetric: 1.010 (0.945 to 1.045) excludes 1.05, the nearer end, but not 0.952."""
    interval = Interval(low=0.945, high=1.045, coverage=0.95)
    estimate = RatioEstimate(
        n_a=25, n_b=25, ratio=1.010, interval=interval, p_value=None, reason=None, needed=4,
        method=ComparisonMethod.SIGNED_RANK, coverage=0.95,
    )  # fmt: skip
    shifted = from_edge(within(0.05), estimate)
    assert known(shifted.interval).low < 1 < known(shifted.interval).high
    assert not is_settled(shifted, shifted.differs is True, goal=Goal.DECIDED, precision=0.02)


def test_an_interval_that_says_nothing_has_no_long_numbers() -> None:
    (finding,) = answer(claim("xfs > ext4"), TWICE).findings
    wide = finding.model_copy(update={"low": 1e-8, "high": 2.7e10})
    assert "xfs / ext4 is 2 (<0.001–>1000)" in finding_words(wide)


def judged(*statements: str, xfs: float = 200.0) -> tuple[ClaimAnswer, ...]:
    records = [*trials(EXT4, steady(100.0)), *trials(XFS, noisy(xfs)), *trials(BTRFS, noisy(101.0))]
    asked = []
    for text in statements:
        found, missing = parts(claim(text), [EXT4, XFS, BTRFS])
        asked.append(ClaimParts(parts=found, missing=missing, margin=0.01))
    return answers(asked, Evaluator(trials=Trials(records=records)))


@independent
def test_where_every_claim_is_decided_none_is_corrected() -> None:
    clear, near = judged("xfs > ext4", "xfs / ext4 >= 1.91")
    assert (clear.verdict, near.verdict) == (REPLICATED, REPLICATED)
    assert near.findings[0].low == pytest.approx(2 * exp(-HALF), rel=1e-5)


@independent
def test_each_open_claim_takes_its_share_of_the_error_away() -> None:
    """With one verdict on two claims, the error is 2.5 %, and the interval starts at 1.8950.

    The claim on btrfs and ext4 is open. Therefore ``>= 1.91`` is open too, and ``>= 1.89`` is replicated.
    """
    near, open_one = judged("xfs / ext4 >= 1.91", "btrfs > ext4")
    assert (near.verdict, open_one.verdict) == (OPEN, OPEN)
    clear, _ = judged("xfs / ext4 >= 1.89", "btrfs > ext4")
    assert clear.verdict is REPLICATED
    assert clear.findings[0].low == pytest.approx(2 * exp(-HALF_975), rel=1e-5)


@independent
def test_verdicts_support_each_other() -> None:
    """With one verdict on three claims, the error is 1.67 %, and the interval starts at 1.8784: ``>= 1.885`` is open.

    With a second verdict, the error is 3.33 %, and ``>= 1.885`` is replicated.
    """
    one, _, _ = judged("xfs / ext4 >= 1.885", "btrfs > ext4", "btrfs / ext4 > 1.001")
    assert one.verdict is OPEN
    two, other, _ = judged("xfs / ext4 >= 1.885", "xfs / ext4 >= 1.5", "btrfs > ext4")
    assert (two.verdict, other.verdict) == (REPLICATED, REPLICATED)


@independent
def test_what_cannot_be_tested_does_not_count() -> None:
    near, unknown = judged("xfs / ext4 >= 1.91", "xfs / ext4 >= 2 for threads=9")
    assert (near.verdict, unknown.verdict) == (REPLICATED, UNKNOWN)
