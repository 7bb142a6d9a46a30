"""Tests of names, notes and deletion of campaigns."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from tests.store.sql import sql
from tests.store.test_store import campaign, trial
from typer.testing import CliRunner

from fslab.campaign import launch
from fslab.cli import app
from fslab.errors import StoreError, UsageError
from fslab.machine import facts
from fslab.store.campaign import Campaign
from fslab.store.store import Store

TABLES = (
    "campaigns",
    "cells",
    "trials",
    "metrics",
    "probes",
    "warnings",
    "raw_output",
    "traced",
    "deletions",
)


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_campaign(called("c1", "before", "with the old cable"))
    store.create_campaign(campaign("c2"))
    for name in ("c1", "c2"):
        store.add_trial(trial(in_campaign=name, raw={"stdout": "x"}))
        store.add_traced(trial(in_campaign=name))
    return store


def called(campaign_id: str, name: str, note: str | None = None) -> Campaign:
    return campaign(campaign_id).model_copy(update={"name": name, "note": note})


def counts(url: str) -> dict[str, int]:
    return {table: sql(url, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def test_a_name_stands_for_the_id(filled: Store) -> None:
    assert filled.campaign("before") == called("c1", "before", "with the old cable")
    assert filled.name_campaign("c2", "after") == "c2"
    assert filled.campaign("after").id == "c2"
    filled.name_campaign("before", None)
    with pytest.raises(StoreError, match="no campaign 'before'"):
        filled.campaign("before")


def test_a_name_with_a_dot_is_not_a_file_of_a_study(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """``quick.old`` is not the study ``quick``, of which both campaigns are."""
    monkeypatch.setattr(launch, "check_stored", lambda campaign, _: campaign)
    monkeypatch.setattr(facts, "gather", lambda: filled.campaign("c1").machine)
    filled.name_campaign("c1", "quick.old")
    assert launch.unfinished(filled, "quick.old").id == filled.last_of("quick.old").id == "c1"
    assert launch.unfinished(filled, "quick.yaml").id == filled.last_of("quick.yaml").id == "c2"


@pytest.mark.parametrize("name", ["last", "last~1", "2026", "a b", "-x", "../x", "a" * 129, ""])
def test_what_could_be_taken_for_something_else_is_no_name(filled: Store, name: str) -> None:
    with pytest.raises(StoreError, match="invalid name"):
        filled.name_campaign("c2", name)


def test_a_name_is_taken_once(filled: Store) -> None:
    with pytest.raises(StoreError, match="'c1' has the name 'before' already"):
        filled.name_campaign("c2", "before")
    with pytest.raises(StoreError, match="already"):
        filled.create_campaign(called("c3", "before"))
    assert filled.name_campaign("c1", "before") == "c1"


def test_a_deleted_campaign_is_gone_and_the_others_are_whole(filled: Store, url: str) -> None:
    both = counts(url)
    filled.delete_campaign("c1")
    left = counts(url)
    assert left == {table: number // 2 for table, number in both.items()}
    assert [known.id for known in filled.campaigns()] == ["c2"]
    assert filled.trials("c2") == [trial(in_campaign="c2")]
    with pytest.raises(StoreError, match="no campaign 'c1'"):
        filled.delete_campaign("c1")


def test_a_single_trial_can_still_not_be_deleted(filled: Store, url: str) -> None:
    filled.delete_campaign("c1")
    with pytest.raises(DBAPIError, match="immutable"):
        sql(url, "DELETE FROM trials")


def test_the_verbs(filled: Store, url: str) -> None:
    def run(*words: str) -> str:
        found = CliRunner().invoke(app, [*words, "--store", url])
        if found.exception is not None:
            raise found.exception
        return found.output

    assert "c2 is called 'after'" in run("name", "c2", "after")
    assert "with the old cable" in run("note", "before")
    run("note", "after", "[new] cable")
    assert "[new] cable" in run("note", "after")
    assert "after" in run("results", "--list")
    with pytest.raises(UsageError, match="nothing was deleted"):
        run("delete", "after")
    for vague in ("last", "c"):
        with pytest.raises((UsageError, StoreError)):
            run("delete", vague, "--yes")
    assert len(filled.campaigns()) == 2
    assert "deleted 1 campaign\n" in run("delete", "after", "c2", "--yes")
    assert [known.id for known in filled.campaigns()] == ["c1"]


def test_a_list_on_a_narrow_terminal_cuts_no_word(
    filled: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    told = CliRunner().invoke(app, ["results", "--list", "--store", url]).output
    assert told.count("interrupted") == told.count(" trial") == len(filled.campaigns())
