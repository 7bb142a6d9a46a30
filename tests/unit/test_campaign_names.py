"""Names, notes and deletion of campaigns: the words are the user's own, and nothing else of a campaign changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.test_store import CELLS, campaign, trial
from typer.testing import CliRunner

from fslab.cli import app
from fslab.errors import StoreError, UsageError
from fslab.store.campaign import Campaign
from fslab.store.database import open_engine, store_url
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
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(str(path)) as opened:
        opened.create_campaign(called("c1", "before", "with the old cable"))
        opened.create_campaign(campaign("c2"))
        for name in ("c1", "c2"):
            opened.add_trial(trial(in_campaign=name, raw={"stdout": "x"}))
            opened.add_traced(trial(in_campaign=name))
        yield opened


def called(campaign_id: str, name: str, note: str | None = None) -> Campaign:
    return campaign(campaign_id).model_copy(update={"name": name, "note": note})


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        found = {}
        for table in TABLES:
            ((found[table],),) = connection.execute(f"SELECT count(*) FROM {table}")
        return found


def test_a_name_stands_for_the_id(store: Store) -> None:
    assert store.campaign("before") == called("c1", "before", "with the old cable")
    assert store.name_campaign("c2", "after") == "c2"
    assert store.campaign("after").id == "c2"
    store.name_campaign("before", None)
    with pytest.raises(StoreError, match="no campaign 'before'"):
        store.campaign("before")


@pytest.mark.parametrize("name", ["last", "last~1", "2026", "a b", "-x", "../x", "a" * 129, ""])
def test_what_could_be_taken_for_something_else_is_no_name(store: Store, name: str) -> None:
    with pytest.raises(StoreError, match="is not a name"):
        store.name_campaign("c2", name)


def test_a_name_is_taken_once(store: Store) -> None:
    with pytest.raises(StoreError, match="'c1' is called 'before' already"):
        store.name_campaign("c2", "before")
    with pytest.raises(StoreError, match="already"):
        store.create_campaign(called("c3", "before"))
    assert store.name_campaign("c1", "before") == "c1"


def test_a_deleted_campaign_is_gone_and_the_others_are_whole(store: Store, path: Path) -> None:
    both = counts(path)
    store.delete_campaign("c1")
    left = counts(path)
    assert left == {table: number // 2 for table, number in both.items()}
    assert [known.id for known in store.campaigns()] == ["c2"]
    assert store.trials("c2") == [trial(in_campaign="c2")]
    with pytest.raises(StoreError, match="no campaign 'c1'"):
        store.delete_campaign("c1")


def test_a_single_trial_can_still_not_be_deleted(store: Store, path: Path) -> None:
    store.delete_campaign("c1")
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="immutable"),
    ):
        connection.execute("DELETE FROM trials")


def test_a_store_of_an_earlier_version_gets_names(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import command

    upgrade = command.upgrade
    monkeypatch.setattr(command, "upgrade", lambda config, revision: upgrade(config, "0002"))
    open_engine(store_url(str(path)), create=True).dispose()
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(campaigns)")}
    assert "name" not in columns
    with Store.open(str(path)) as opened:
        opened.create_campaign(called("c1", "x"))
        opened.add_trial(trial(of=CELLS[0]))
        opened.delete_campaign("c1")
        assert opened.campaigns() == []


def test_the_verbs(store: Store, path: Path) -> None:
    def run(*words: str) -> str:
        found = CliRunner().invoke(app, [*words, "--store", str(path)])
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
    assert len(store.campaigns()) == 2
    run("delete", "after", "--yes")
    assert [known.id for known in store.campaigns()] == ["c1"]
