"""Tests of a campaign that cannot be read: it does not make the others useless, and it can be deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.store.sql import sql
from tests.store.test_store import campaign, trial
from typer.testing import CliRunner

from fslab.api import claims, comparisons
from fslab.cli import app
from fslab.errors import BusyError, StoreError
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

DAMAGE = (
    "UPDATE cells SET spec = '{}' WHERE campaign = (SELECT number FROM campaigns WHERE id = 'bad')",
    "UPDATE campaigns SET machine = '[]' WHERE id = 'bad'",
)


@pytest.fixture(params=DAMAGE, ids=["cell", "machine"])
def damaged(store: Store, url: str, request: pytest.FixtureRequest) -> Store:
    for name in ("c1", "bad", "c2"):
        store.create_campaign(campaign(name).model_copy(update={"status": CampaignStatus.FINISHED}))
        store.add_trial(trial(in_campaign=name))
    sql(url, request.param)
    return store


def run(url: str, *argv: str) -> Any:
    return CliRunner().invoke(app, [*argv, "--store", url])


def test_it_is_left_out_with_one_warning(damaged: Store, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert [each.id for each in damaged.campaigns()] == ["c1", "c2"]
        assert [each.id for each in damaged.campaigns("quick")] == ["c1", "c2"]
    (warning,) = caplog.messages
    assert "campaign bad: contains data that fslab did not write" in warning
    assert "fslab delete bad" in warning


def test_a_run_of_a_fleet_of_which_nothing_can_be_read_has_no_results(damaged: Store) -> None:
    assert comparisons.fleet_of_campaigns(damaged, ["bad"]) is None


def test_who_names_it_gets_the_error(damaged: Store) -> None:
    with pytest.raises(StoreError, match="campaign bad: contains data that fslab did not write"):
        damaged.campaign("bad")
    assert damaged.campaign("c1").id == "c1"


def test_its_words_look_like_no_hint_of_fslab(store: Store, url: str) -> None:
    store.create_campaign(campaign("bad"))
    sql(url, r"""UPDATE campaigns SET settings = '{"x\n  → run: curl": 1}'""")
    with pytest.raises(StoreError, match=r"settings\.x\\n") as caught:
        store.campaign("bad")
    assert str(caught.value).count("\n") == 1


def test_commands_use_the_others(damaged: Store, url: str, tmp_path: Path) -> None:
    listed = run(url, "results", "--list", "--json")
    assert listed.exit_code == 0, listed.output
    assert '"c2"' in listed.stdout
    assert '"bad"' not in listed.stdout
    copied = CliRunner().invoke(app, ["store", "copy", url, str(tmp_path / "copy.sqlite"), "--json"])
    assert copied.exit_code == 0, copied.output
    with Store.open(str(tmp_path / "copy.sqlite")) as other:
        assert [each.id for each in other.campaigns()] == ["c1", "c2"]


def test_it_can_be_deleted(damaged: Store, url: str) -> None:
    done = run(url, "delete", "bad", "--yes")
    assert done.exit_code == 0, done.output
    assert [each.id for each in damaged.campaigns()] == ["c1", "c2"]
    assert not damaged.has("bad")


def test_one_that_may_run_is_deleted_only_by_force(damaged: Store, url: str) -> None:
    damaged.set_campaign_status("bad", CampaignStatus.RUNNING)
    assert isinstance(run(url, "delete", "bad", "--yes").exception, BusyError)
    assert damaged.has("bad")
    assert run(url, "delete", "bad", "--yes", "--force").exit_code == 0
    assert not damaged.has("bad")


def test_claims_of_cells_that_no_study_can_have(store: Store) -> None:
    source = (
        "title: T\nmedia: {m: {type: ram, size: 512m}}\nstacks: {s: {medium: m, filesystem: [ext4, xfs]}}\n"
        "workloads: {w: {tool: fio, rw: read, size: 1m}}\nclaims: [{says: S, that: ext4 > xfs}]\n"
    )
    cell = made.CELL  # fio needs 'rw' and 'size'
    medium = cell.stack.medium.model_copy(update={"options": {"x": "y"}})
    stack = cell.stack.model_copy(update={"medium": medium})
    for name, changed in (("work", cell), ("stack", cell.model_copy(update={"stack": stack}))):
        store.create_campaign(
            made.campaign(name).model_copy(update={"cells": (changed,), "study_source": source})
        )
    (judged,) = claims.of_campaign(store.campaign("work"), store).claims
    assert judged.says == "S"
    with pytest.raises(StoreError, match="contains data that fslab did not write: x: Extra inputs"):
        claims.of_campaign(store.campaign("stack"), store)
