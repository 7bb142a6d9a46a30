"""Tests of deleting old campaigns: which are selected, and that deletion requires consent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.test_store import campaign
from typer.testing import CliRunner

from fslab.api.study_campaigns import outdated
from fslab.cli import app
from fslab.errors import BusyError
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

NOW = datetime.now(UTC)


@pytest.fixture
def filled(store: Store) -> Store:
    """Store ten days of one study on two machines; and 40 days old: another study, a named and a running campaign."""
    made = [
        campaign(f"{host}-{day}", created=NOW - timedelta(days=day, hours=1), machine={"hostname": host})
        for day in range(10)
        for host in ("lab1", "lab2")
    ]
    old: dict[str, Any] = {"created": NOW - timedelta(days=40), "machine": {"hostname": "lab1"}}
    made += [
        campaign("other", study_id="other", **old),
        campaign("named", **old).model_copy(update={"name": "baseline"}),
    ]
    for each in made:
        store.create_campaign(each.model_copy(update={"status": CampaignStatus.FINISHED}))
    store.create_campaign(campaign("running", **old))
    return store


def ids(store: Store, days: float = 7, **options: Any) -> list[str]:
    return [each.id for each in outdated(store, older_than_s=days * 86400, **{"keep": 1, **options})]


def test_what_is_old_goes_and_what_must_stay_stays(filled: Store) -> None:
    assert sorted(ids(filled)) == ["lab1-7", "lab1-8", "lab1-9", "lab2-7", "lab2-8", "lab2-9"]
    assert ids(filled)[0] in {"lab1-9", "lab2-9"}
    assert "other" in ids(filled, keep=0)
    assert ids(filled, keep=0, studies=["other.yaml"]) == ["other"]
    assert ids(filled, keep=0, studies=["other.old"]) == []
    assert sorted(ids(filled, keep=9)) == ["lab1-9", "lab2-9"]
    assert ids(filled, days=365) == []


def test_a_campaign_of_a_clock_that_was_ahead_is_not_kept_instead_of_the_newest_one(store: Store) -> None:
    for name, days in (("ahead", -1000), ("newest", 10)):
        done = campaign(name, created=NOW - timedelta(days=days))
        store.create_campaign(done.model_copy(update={"status": CampaignStatus.FINISHED}))
    assert ids(store) == []


def test_a_campaign_of_a_clock_that_was_years_behind_is_neither_old_nor_kept_instead_of_one_that_is_new(
    store: Store,
) -> None:
    """As after an empty battery: it may be the newest one of all."""
    dates = {
        "older": NOW - timedelta(days=20),
        "new": NOW - timedelta(days=10),
        "behind": datetime(2000, 1, 1, tzinfo=UTC),
    }
    for name, created in dates.items():
        done = campaign(name, created=created)
        store.create_campaign(done.model_copy(update={"status": CampaignStatus.FINISHED}))
    assert ids(store) == ["older"]


def test_the_command_deletes_only_when_told(filled: Store, url: str) -> None:
    before = [each.id for each in filled.campaigns()]
    for more in (["--dry-run"], []):
        done = CliRunner().invoke(app, ["store", "prune", "--older-than", "7d", "--store", url, *more])
        assert (done.exit_code == 0) == bool(more)
        assert [each.id for each in filled.campaigns()] == before
    done = CliRunner().invoke(
        app, ["store", "prune", "--older-than", "7d", "--yes", "--json", "--store", url]
    )
    assert len(json.loads(done.stdout)["deleted"]) == 6
    assert len(filled.campaigns()) == len(before) - 6


def test_a_campaign_that_runs_elsewhere_is_deleted_only_by_force(filled: Store, url: str) -> None:
    argv = ["delete", "running", "--yes", "--store", url]
    refused = CliRunner().invoke(app, argv)
    assert isinstance(refused.exception, BusyError)
    assert "running" in {each.id for each in filled.campaigns()}
    assert CliRunner().invoke(app, [*argv, "--force"]).exit_code == 0
    assert "running" not in {each.id for each in filled.campaigns()}
