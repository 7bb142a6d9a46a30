"""Tests of the forecast of claims: what it says without a campaign, and that it is left out where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import fslab
from fslab.api import forecasts
from fslab.plan.model import Plan
from fslab.study.model import Study


@pytest.fixture(scope="module")
def planned() -> tuple[Study, Plan]:
    study = fslab.load("ext-generations")
    return study, fslab.plan_of(study).model_copy(update={"impossible": {}})


def test_without_a_campaign_the_blocks_within_the_budget_are_known(
    planned: tuple[Study, Plan], tmp_path: Path
) -> None:
    found = forecasts.forecast(*planned, memory_bytes=None, store=str(tmp_path / "none.sqlite"))
    assert found is not None
    assert found.campaign is None
    assert (found.blocks or 0) > 1
    assert 0 < found.cells <= len(planned[1].cells)


def test_where_nothing_is_possible_there_is_no_forecast(planned: tuple[Study, Plan]) -> None:
    study, plan = planned
    nothing = plan.model_copy(update={"impossible": {cell.id: "no kernel has it" for cell in plan.cells}})
    assert forecasts.forecast(study, nothing, memory_bytes=None) is None


def test_a_study_without_claims_has_no_forecast() -> None:
    study = fslab.load("quick")
    assert forecasts.forecast(study, fslab.plan_of(study), memory_bytes=None) is None
