"""Tests of ``fslab.compare``: what was measured under unlike conditions is not compared unless that is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.test_history import night

from fslab.analysis.campaign_comparison import refused
from fslab.api.comparisons import compare
from fslab.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the path of a store with two campaigns of a study, on two kernels."""
    path = str(tmp_path / "store.sqlite")
    with Store.open(path) as opened:
        for number, kernel in enumerate(("6.1.0-25", "6.12.0-1")):
            campaign, trials = night(number, 100.0, kernel=kernel)
            opened.create_campaign(campaign)
            for trial in trials:
                opened.add_trial(trial)
    return path


def test_unlike_results_have_neither_lines_nor_means(store: str) -> None:
    found = compare(store=store)
    assert "kernel" in [each.fact for each in refused(found)]
    assert (found.lines, found.means) == ((), ())


def test_what_is_allowed_is_compared(store: str) -> None:
    for found in (compare(store=store, differing=["kernel"]), compare(store=store, force=True)):
        assert refused(found) == ()
        assert len(found.lines) == 1
