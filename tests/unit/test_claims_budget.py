"""Tests of budgets and defaults of studies with claims: blocks, stopping rule, margin, known limits."""

from __future__ import annotations

import pytest
from tests.made import known
from tests.unit.claimed import cell

from fslab.campaign.schedule import budget_words, too_small
from fslab.claims.build import asked_of
from fslab.claims.scope import Scope
from fslab.errors import StudyError
from fslab.plan.expand import expand
from fslab.plan.plan import trial_s
from fslab.stopping_settings import StoppingRule, Until
from fslab.study import load

CELLS = [cell(name) for name in ("ext4", "xfs", "btrfs", "f2fs")]
BLOCK_S = sum(map(trial_s, CELLS))
STUDY = """\
title: t
media: {m: {type: ram, size: 300m}}
stacks: {fs: {medium: m, filesystem: [ext4, xfs]}}
workloads: {w: {tool: fio, rw: randwrite, size: 16m, runtime: 1s}}
budget: 5m
claims:
  - {says: s, that: xfs > ext4}
  - {says: s, that: ext4 ~ xfs within 5%, margin: 3%}
"""


def test_a_budget_for_fewer_than_three_blocks_is_reported() -> None:
    assert too_small(CELLS, 3 * BLOCK_S) is None
    assert too_small(CELLS, None) is None
    assert (
        budget_words(CELLS, 8 * BLOCK_S)
        == "claims: the budget is enough for about 8 trials of each of 4 cells"
    )
    assert budget_words(CELLS, None) is None
    said = known(budget_words(CELLS, 2.5 * BLOCK_S))
    assert "is enough for 2.5 trials of each of the 4 cells with claims, and at least 3 are needed" in said


def test_a_study_with_claims_repeats_until_they_are_decided_unless_told_otherwise() -> None:
    def of(*overrides: str) -> StoppingRule:
        return load.load_text(STUDY, "s.yaml", overrides).stopping

    assert (of().until, of().precision) == (Until.CLAIMS, 0.1)
    assert of("margin=5%").precision == 0.05
    assert of("trials=7") == StoppingRule(trials=7)
    assert of("precision=5%").until is Until.DECIDED
    assert load.load_text(STUDY.split("claims:")[0], "s.yaml").stopping.precision is None


def test_without_claims_until_decided_asks_which_stack_is_best_within_the_margin() -> None:
    plain = STUDY.split("claims:")[0]
    for text, margin in ((plain, 0.1), (f"{plain}margin: 4%\n", 0.04)):
        study = load.load_text(text, "s.yaml", ["until=claims"])
        assert not study.for_claims
        assert (study.stopping.until, study.stopping.precision) == (Until.DECIDED, margin)
    assert load.load_text(plain, "s.yaml", ["until=claims", "precision=2%"]).stopping.precision == 0.02


def test_only_a_goal_that_is_asked_for_lifts_the_budget() -> None:
    assert load.load_text(STUDY, "s.yaml").limit_s == 300
    assert load.load_text(STUDY, "s.yaml", ["until=claims"]).limit_s is None


TAILS = """\
  - {says: a tail, that: xfs > ext4, metric: p99}
  - {says: its own margin, that: xfs > ext4, metric: p99, margin: 4%}
  - {says: a size below the margin, that: xfs / ext4 in 1.1..1.2, metric: p99}
  - {says: "close, xfs ahead", that: [ext4 ~ xfs within 15%, xfs > ext4]}
"""


def test_a_claim_has_its_own_margin_or_that_of_its_study_for_its_figures() -> None:
    def margins(*overrides: str) -> list[float]:
        study = load.load_text(STUDY + TAILS, "s.yaml", overrides)
        scope = Scope(cells=expand(study))
        return [asked_of(claim, scope, study.stopping).margin for claim in study.claims]

    half = pytest.approx((1.1 * 1.2) ** 0.5 / 2 - 0.5)  # of the effect that the last claim states
    ahead = pytest.approx(0.075)  # half of the tie, within which the order is of interest
    assert margins() == [0.1, 0.03, 0.25, 0.04, half, ahead]
    assert margins("margin=20%") == [0.2, 0.03, 0.25, 0.04, half, ahead]
    assert margins("tail_margin=30%", "precision=5%", "until=claims") == [0.1, 0.03, 0.3, 0.04, half, ahead]


def test_a_known_limit_is_a_kind_of_warning_and_reaches_the_cells() -> None:
    study = load.load_text(f"{STUDY}known_limits: {{fits_in_memory: so does theirs}}\n", "s.yaml")
    assert {each.known_limits for each in expand(study)} == {("fits_in_memory",)}
    plain = expand(load.load_text(STUDY, "s.yaml"))
    assert [each.content_id for each in expand(study)] == [each.content_id for each in plain]
    with pytest.raises(
        StudyError, match="no kind of warning 'fits_in_memroy' — did you mean 'fits_in_memory'"
    ):
        load.load_text(f"{STUDY}known_limits: {{fits_in_memroy: so does theirs}}\n", "s.yaml")
