"""Tests of the correction for the number of claims (Benjamini & Hochberg). Limits by hand, from t quantiles."""

from __future__ import annotations

from math import exp

import pytest
from tests.unit.claimed import cell, claim, known_independent, noisy, parts, steady, trials

from fslab.claims.evaluate import Evaluator
from fslab.claims.model import ClaimAnswer, ClaimVerdict
from fslab.claims.multiplicity import ClaimParts, answers
from fslab.claims.trials import Trials

__all__ = ["known_independent"]
pytestmark = pytest.mark.usefixtures("known_independent")

EXT4, XFS, BTRFS = (cell(name) for name in ("ext4", "xfs", "btrfs"))
# Half-widths for four differences with the spread of ``claimed.NOISE``, at 95 % and 97.5 %.
HALF, HALF_975 = 0.041085, 0.053919


def judged(*statements: str, xfs: float = 200.0) -> tuple[ClaimAnswer, ...]:
    records = [*trials(EXT4, steady(100.0)), *trials(XFS, noisy(xfs)), *trials(BTRFS, noisy(101.0))]
    asked = []
    for text in statements:
        found, missing = parts(claim(text), [EXT4, XFS, BTRFS])
        asked.append(ClaimParts(parts=found, missing=missing, margin=0.01))
    return answers(asked, Evaluator(trials=Trials(records=records)))


def test_where_every_claim_is_decided_none_is_corrected() -> None:
    clear, near = judged("xfs > ext4", "xfs / ext4 >= 1.91")
    assert (clear.verdict, near.verdict) == (ClaimVerdict.REPLICATED, ClaimVerdict.REPLICATED)
    assert near.findings[0].low == pytest.approx(2 * exp(-HALF), rel=1e-5)


def test_each_open_claim_takes_its_share_of_the_error_away() -> None:
    """With one verdict on two claims, the error is 2.5 %, and the interval starts at 1.8950.

    The claim on btrfs and ext4 is open. Therefore ``>= 1.91`` is open too, and ``>= 1.89`` is replicated.
    """
    near, open_one = judged("xfs / ext4 >= 1.91", "btrfs > ext4")
    assert (near.verdict, open_one.verdict) == (ClaimVerdict.OPEN, ClaimVerdict.OPEN)
    clear, _ = judged("xfs / ext4 >= 1.89", "btrfs > ext4")
    assert clear.verdict is ClaimVerdict.REPLICATED
    assert clear.findings[0].low == pytest.approx(2 * exp(-HALF_975), rel=1e-5)


def test_verdicts_support_each_other() -> None:
    """With one verdict on three claims, the error is 1.67 %, and the interval starts at 1.8784: ``>= 1.885`` is open.

    With a second verdict, the error is 3.33 %, and ``>= 1.885`` is replicated.
    """
    one, _, _ = judged("xfs / ext4 >= 1.885", "btrfs > ext4", "btrfs / ext4 > 1.001")
    assert one.verdict is ClaimVerdict.OPEN
    two, other, _ = judged("xfs / ext4 >= 1.885", "xfs / ext4 >= 1.5", "btrfs > ext4")
    assert (two.verdict, other.verdict) == (ClaimVerdict.REPLICATED, ClaimVerdict.REPLICATED)


def test_what_cannot_be_tested_does_not_count() -> None:
    near, unknown = judged("xfs / ext4 >= 1.91", "xfs / ext4 >= 2 for threads=9")
    assert (near.verdict, unknown.verdict) == (ClaimVerdict.REPLICATED, ClaimVerdict.UNKNOWN)
