"""Verdicts of trials on claims, with intervals worked out by hand (see ``claimed.NOISE``)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import pytest
from tests.unit.claimed import HALF, HALF_975, answer, cell, claim, noisy, parts, steady, trials

from fslab.cell import Cell, MachineSpec
from fslab.claims.evaluate import Evaluator, combined
from fslab.claims.model import ClaimVerdict
from fslab.claims.trials import Trials
from fslab.claims.words import finding_words
from fslab.record import Provenance
from fslab.stats.sequential import Looks

EXT4, XFS, BTRFS = (cell(name) for name in ("ext4", "xfs", "btrfs"))
TWICE: list[tuple[Cell, Sequence[float | None]]] = [(EXT4, steady(100.0)), (XFS, noisy(200.0))]


@pytest.mark.parametrize(
    ("that", "verdict"),
    [
        ("xfs > ext4", ClaimVerdict.HOLDS),
        ("ext4 > xfs", ClaimVerdict.CONTRADICTED),
        ("xfs / ext4 >= 1.9", ClaimVerdict.HOLDS),  # the interval is 1.9195 to 2.0839
        ("xfs / ext4 >= 1.93", ClaimVerdict.UNDECIDED),
        ("xfs / ext4 >= 2.07", ClaimVerdict.UNDECIDED),
        ("xfs / ext4 >= 2.1", ClaimVerdict.CONTRADICTED),
        ("xfs / ext4 in 1.9..2.1", ClaimVerdict.HOLDS),
        ("xfs / ext4 in 1.9..2.05", ClaimVerdict.UNDECIDED),
        ("ext4 ~ xfs within 110%", ClaimVerdict.HOLDS),
        ("ext4 ~ xfs within 95%", ClaimVerdict.UNDECIDED),
        ("ext4 ~ xfs within 90%", ClaimVerdict.CONTRADICTED),
    ],
)
def test_an_interval_decides(that: str, verdict: ClaimVerdict) -> None:
    assert answer(claim(that), TWICE).verdict is verdict


def test_a_verdict_that_autocorrelation_could_make_is_told() -> None:
    """1.9195 to 2.0839 lies above 1.9; √3 times as wide it is 1.8626 to 2.1475."""
    assert [2 * exp(sign * HALF * 3**0.5) for sign in (-1, 1)] == pytest.approx([1.8626, 2.1475], abs=1e-4)
    near = answer(claim("xfs / ext4 >= 1.9"), TWICE)
    assert near.verdict is ClaimVerdict.HOLDS
    assert "only if trials are independent (20 blocks can show it)" in near.words
    clear = answer(claim("xfs / ext4 >= 1.8"), TWICE)
    assert (clear.verdict, clear.findings[0].rests_on_independence) == (ClaimVerdict.HOLDS, False)
    against, far = (answer(claim(f"xfs / ext4 >= {bound}"), TWICE) for bound in (2.1, 2.2))
    assert (against.verdict, far.verdict) == (ClaimVerdict.CONTRADICTED, ClaimVerdict.CONTRADICTED)
    assert [each.findings[0].rests_on_independence for each in (against, far)] == [True, False]


def test_the_interval_is_told() -> None:
    (finding,) = answer(claim("xfs > ext4"), TWICE).findings
    assert finding.value == pytest.approx(2.0)
    assert [finding.low, finding.high] == pytest.approx([2 * exp(-HALF), 2 * exp(HALF)], rel=1e-5)
    assert "xfs / ext4 is 2.00 (1.92–2.08)" in answer(claim("xfs > ext4"), TWICE).words


def test_a_refutation_is_corrected_for_the_parts_of_the_claim() -> None:
    """2.1 lies outside the 95 % interval (to 2.0839), but not outside that of 97.5 % (to 2.1108)."""
    assert 2 * exp(HALF_975) == pytest.approx(2.1108, abs=1e-4)
    alone = answer(claim("xfs / ext4 >= 2.1"), TWICE)
    one_of_two = answer(claim("xfs / ext4 >= 2.1", "xfs > ext4"), TWICE)
    assert (alone.verdict, one_of_two.verdict) == (ClaimVerdict.CONTRADICTED, ClaimVerdict.UNDECIDED)
    refuted = answer(claim("xfs / ext4 >= 2.12", "xfs > ext4"), TWICE)
    assert refuted.verdict is ClaimVerdict.CONTRADICTED
    assert refuted.findings[0].high == pytest.approx(2 * exp(HALF_975), rel=1e-5)


def test_holding_needs_no_correction() -> None:
    held = answer(claim("xfs / ext4 >= 1.9", "xfs > ext4"), TWICE)  # at 97.5 % it would begin at 1.895
    assert held.verdict is ClaimVerdict.HOLDS


def test_a_gain_is_judged_by_block() -> None:
    values = [
        (cell("xfs", "w[numjobs=1]", numjobs=1), steady(100.0)), (cell("xfs", "w[numjobs=4]", numjobs=4), noisy(300.0)),
        (cell("ext4", "w[numjobs=1]", numjobs=1), steady(50.0)),
        (cell("ext4", "w[numjobs=4]", numjobs=4), steady(100.0)),
    ]  # fmt: skip
    found = answer(claim("xfs gains more than ext4 from numjobs=1 to numjobs=4"), values)
    (finding,) = found.findings
    assert found.verdict is ClaimVerdict.HOLDS
    assert finding.value == pytest.approx(1.5)
    assert [finding.low, finding.high] == pytest.approx([1.5 * exp(-HALF), 1.5 * exp(HALF)], rel=1e-5)


def test_an_overall_ratio_is_the_geometric_mean() -> None:
    values = [
        (cell("ext4", "a"), steady(100.0)), (cell("xfs", "a"), noisy(400.0)),
        (cell("ext4", "b", bs="8k"), steady(100.0)), (cell("xfs", "b", bs="8k"), steady(100.0)),
    ]  # fmt: skip
    (finding,) = answer(claim("overall xfs / ext4 >= 1.9"), values).findings
    assert finding.value == pytest.approx(2.0)  # √(4 × 1)
    assert finding.high == pytest.approx(2 * exp(HALF / 2), rel=1e-5)


def test_spreads_are_compared_by_intervals_of_all_pairs() -> None:
    """One pair each: at 97.5 % both. 2/1.1, less and more the sum of both half-widths."""
    values = [
        (EXT4, noisy(200.0)), (cell("ext4", mount="noatime"), steady(100.0)),
        (XFS, noisy(110.0)), (cell("xfs", mount="noatime"), steady(100.0)),
    ]  # fmt: skip
    found = answer(claim("ext4 varies more than xfs over mount_options"), values)
    (finding,) = found.findings
    assert found.verdict is ClaimVerdict.HOLDS
    assert finding.value == pytest.approx(2 / 1.1)
    assert finding.low == pytest.approx(2 / 1.1 * exp(-2 * HALF_975), rel=1e-5)
    assert finding.high == pytest.approx(2 / 1.1 * exp(2 * HALF_975), rel=1e-5)
    assert (
        answer(claim("xfs varies more than ext4 over mount_options"), values).verdict
        is ClaimVerdict.CONTRADICTED
    )


def test_noise_alone_is_no_spread() -> None:
    """Both vary by noise only: one of them 3 times as noisy is not shown to vary more."""
    loud = [100 * exp(3 * each) for each in (-0.03, 0.01, -0.01, 0.03)]
    values = [
        (EXT4, loud), (cell("ext4", mount="noatime"), steady(100.0)),
        (XFS, noisy(100.0)), (cell("xfs", mount="noatime"), steady(100.0)),
    ]  # fmt: skip
    assert (
        answer(claim("ext4 varies more than xfs over mount_options"), values).verdict
        is ClaimVerdict.UNDECIDED
    )


def test_a_figure_itself_is_judged_in_its_unit() -> None:
    values = [(EXT4, noisy(4500.0))]  # ns: 4.319 to 4.689 µs
    assert (
        answer(claim("ext4 in 4us..5us", metric="clat_mean"), values, "write_clat_mean").verdict
        is ClaimVerdict.HOLDS
    )
    found = answer(claim("ext4 in 4.4us..5us", metric="clat_mean"), values, "write_clat_mean")
    assert found.verdict is ClaimVerdict.UNDECIDED
    assert "ext4 is 4.50 µs (4.32 µs–4.69 µs)" in found.words


def test_two_trials_decide_nothing() -> None:
    few = [(EXT4, [100.0] * 2), (XFS, noisy(200.0)[:2])]
    found = answer(claim("xfs > ext4"), few)
    assert found.verdict is ClaimVerdict.UNDECIDED
    assert "is unknown: not enough data (2 common blocks; 3 are enough)" in found.words


def test_what_has_few_blocks_in_common_is_counted_by_these() -> None:
    """Each has three trials, but both have them in blocks 1 and 2 only: not "3 trials; 3 are enough"."""
    sides = [trials(EXT4, steady(100.0))[:3], trials(XFS, noisy(200.0))[1:]]
    judge = Evaluator(trials=Trials(records=[record for side in sides for record in side]))
    (part,), _ = parts(claim("xfs > ext4"), [EXT4, XFS])
    assert judge.answer([part]).words == (
        "xfs / ext4 is unknown: not enough data (2 common blocks; 3 are enough), needs > 1 (w)"
    )
    (alone,), _ = parts(claim("ext4 > 5"), [EXT4])
    one = Evaluator(trials=Trials(records=sides[0][:1])).answer([alone])
    assert "(1 trial; 3 are enough)" in one.words


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
def test_how_many_trials_are_lacking_is_told(further: int, said: str) -> None:
    (finding,) = answer(claim("xfs / ext4 >= 2"), TWICE).findings
    told = finding_words(finding.model_copy(update={"further": further}))
    assert told == f"xfs / ext4 is 2.00 (1.92–2.08), needs >= 2, {said} (w)"


def test_a_figure_of_0_is_named_for_it_makes_no_ratio() -> None:
    found = answer(claim("ext4 / xfs >= 2"), [(EXT4, steady(100.0)), (XFS, [3.0, 0.0, 2.0, 4.0])])
    assert found.verdict is ClaimVerdict.UNKNOWN
    assert "write_iops of w on xfs is not above 0 in some trials" in found.words


def test_what_failed_is_not_measured_and_the_rest_is_told() -> None:
    values = [*TWICE, (BTRFS, [None] * 4)]
    found = answer(claim("xfs is first"), values)
    assert found.verdict is ClaimVerdict.IN_PART
    assert "btrfs has no usable trial: it crashed" in found.words
    assert answer(claim("btrfs is first"), values).verdict is ClaimVerdict.UNKNOWN
    assert answer(claim("ext4 is first"), values).verdict is ClaimVerdict.CONTRADICTED


def test_what_is_not_possible_here_is_said() -> None:
    records = [record for each, figures in TWICE for record in trials(each, figures)]
    judge = Evaluator(trials=Trials(records=records, impossible={BTRFS.id: "no kernel has it"}))
    found = judge.answer(*parts(claim("btrfs > ext4"), [EXT4, XFS, BTRFS]))
    assert found.words == "not measured here: not possible here: no kernel has it"


def test_looking_again_and_again_takes_wider_intervals() -> None:
    once = answer(claim("xfs > ext4"), TWICE).findings[0]
    looked = answer(claim("xfs > ext4"), TWICE, looks=Looks(first=4)).findings[0]
    assert once.high is not None
    assert looked.high is not None
    assert looked.high > once.high
    assert looked.coverage == 0.95


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ((ClaimVerdict.HOLDS, ClaimVerdict.HOLDS), ClaimVerdict.HOLDS),
        ((ClaimVerdict.HOLDS, ClaimVerdict.UNDECIDED), ClaimVerdict.UNDECIDED),
        (
            (ClaimVerdict.UNDECIDED, ClaimVerdict.CONTRADICTED, ClaimVerdict.UNKNOWN),
            ClaimVerdict.CONTRADICTED,
        ),
        ((ClaimVerdict.HOLDS, ClaimVerdict.UNKNOWN), ClaimVerdict.IN_PART),
        ((ClaimVerdict.UNKNOWN,), ClaimVerdict.UNKNOWN),
        ((), ClaimVerdict.UNKNOWN),
    ],
)
def test_a_claim_is_a_conjunction(verdicts: tuple[ClaimVerdict, ...], whole: ClaimVerdict) -> None:
    assert combined(verdicts) is whole
