"""Tests of copying campaigns between stores, and of checking a store, with SQLite and PostgreSQL."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError
from tests import postgresql
from tests.store.sql import sql
from tests.store.test_store import CELLS, campaign, trial
from typer.testing import CliRunner

from fslab.cli import app
from fslab.errors import NotStoredError, StoreError, StoreLostError, UsageError
from fslab.store import bulk, transfer
from fslab.store.campaign import CampaignStatus
from fslab.store.maintenance import check_campaigns, database_faults
from fslab.store.rows import Row
from fslab.store.store import Store
from fslab.store.transfer import CopiedCampaign, copy_campaign

BLOCKS = 3


@pytest.fixture
def file(tmp_path: Path) -> Store:
    """Return an SQLite store with a campaign of six trials."""
    opened = Store.open(str(tmp_path / "source.sqlite"))
    fill(opened, "c1")
    return opened


def fill(store: Store, name: str) -> None:
    store.create_campaign(campaign(name).model_copy(update={"name": f"name-{name}", "note": "é ☃"}))
    for block in range(BLOCKS):
        for of in CELLS[:2]:
            raw = {"stdout": f"{block} \udcff \0", "stderr": ""}
            store.add_trial(trial(block, of, in_campaign=name, raw=raw))
    store.add_traced(trial(in_campaign=name))


def everything(store: Store, name: str = "c1") -> object:
    return store.campaign(name), store.trials(name, raw=True), store.traced(name)


def test_a_copy_is_the_same_trial_for_trial(file: Store, store: Store) -> None:
    steps: list[tuple[int, int]] = []
    copied = copy_campaign(file, store, file.campaign("c1"), lambda *step: steps.append(step))
    assert (copied.new, copied.present) == (6, 0)
    assert steps == [(6, 6)]
    assert everything(store) == everything(file)
    assert [each.fault for each in check_campaigns(store)] == [None]


def test_back_again_nothing_is_lost(store: Store, tmp_path: Path) -> None:
    fill(store, "c1")
    with Store.open(str(tmp_path / "back.sqlite")) as back:
        copy_campaign(store, back, store.campaign("c1"))
        assert everything(back) == everything(store)


def test_a_second_copy_brings_what_is_new(file: Store, store: Store) -> None:
    copy_campaign(file, store, file.campaign("c1"))
    file.add_trial(trial(BLOCKS, CELLS[0], raw={"stdout": "later"}))
    file.add_traced(trial(1, CELLS[1]))
    file.set_campaign_status("c1", CampaignStatus.FINISHED)
    copied = copy_campaign(file, store, file.campaign("c1"))
    assert (copied.new, copied.present) == (1, 6)
    assert everything(store) == everything(file)


def test_an_interrupted_copy_is_finished(file: Store, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PIECE", 2)

    def interrupt(done: int, _of: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_campaign(file, store, file.campaign("c1"), interrupt)
    assert store.count("c1") == 4
    copied = copy_campaign(file, store, file.campaign("c1"))
    assert (copied.new, copied.present) == (2, 4)
    assert everything(store) == everything(file)


def test_large_outputs_are_copied_in_small_pieces(
    file: Store, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece is in memory several times, on the machine that is measuring."""
    file.add_trial(
        trial(BLOCKS, CELLS[0], raw={"stdout": "x", "report": random.Random(1).randbytes(9000).hex()})
    )
    monkeypatch.setattr(transfer, "PIECE_BYTES", 4000)
    steps: list[int] = []
    copy_campaign(file, store, file.campaign("c1"), lambda done, _of: steps.append(done))
    assert steps == [6, 7]
    assert everything(store) == everything(file)


def test_a_campaign_that_is_deleted_while_it_is_copied_is_named(file: Store, store: Store) -> None:
    found = file.campaign("c1")
    file.delete_campaign("c1")
    with pytest.raises(NotStoredError, match="no campaign 'c1'"):
        copy_campaign(file, store, found)
    for name in ("c2", "c3"):
        file.create_campaign(campaign(name))
    reading = check_campaigns(file)
    assert next(reading).id == "c2"
    file.delete_campaign("c3")
    assert list(reading) == []


def test_a_trial_that_differs_is_not_passed_over(file: Store, store: Store) -> None:
    store.create_campaign(file.campaign("c1"))
    store.add_trial(trial(0, CELLS[0], raw={"stdout": "another measurement"}))
    with pytest.raises(StoreError, match=r"trial 0 of cell .* differs from the one to copy"):
        copy_campaign(file, store, file.campaign("c1"))
    assert store.count("c1") == 1, "the piece is kept whole or not at all"


def test_another_campaign_of_that_id_is_refused(file: Store, store: Store) -> None:
    store.create_campaign(campaign("c1", seed=1))
    with pytest.raises(StoreError, match="different campaign with the id 'c1'"):
        copy_campaign(file, store, file.campaign("c1"))


def test_a_copy_that_is_further_is_not_set_back(file: Store, store: Store) -> None:
    """The campaign was copied, and is continued from the copy."""
    file.set_campaign_status("c1", CampaignStatus.FINISHED)
    copy_campaign(file, store, file.campaign("c1"))
    began = datetime(2026, 11, 22, tzinfo=UTC)
    store.extend_campaign(store.campaign("c1").extended(trials=10).with_run(began, 60.0))
    store.set_campaign_status("c1", CampaignStatus.INTERRUPTED)
    further = store.campaign("c1")
    copy_campaign(file, store, file.campaign("c1"))
    assert store.campaign("c1") == further
    file.extend_campaign(file.campaign("c1").extended(trials=20))
    copy_campaign(file, store, file.campaign("c1"))
    found = store.campaign("c1")
    assert (found.trials, found.stopping.most, found.settings.extended_from) == (20, 20, (5,))
    assert (found.settings.runs, found.status) == (further.settings.runs, CampaignStatus.INTERRUPTED)


def test_a_copy_from_before_the_first_look_gets_the_looks_that_were_planned_later(
    tmp_path: Path, store: Store
) -> None:
    source = Store.open(str(tmp_path / "looks.sqlite"))
    stopping = {"trials": 3, "precision": 0.1, "max_trials": 40}
    source.create_campaign(campaign("c1", settings={"stopping": stopping}, trials=3))
    copy_campaign(source, store, source.campaign("c1"))
    known = source.campaign("c1")
    planned = known.stopping.model_copy(update={"planned_most": 8})
    source.extend_campaign(known.with_settings(stopping=planned))
    copy_campaign(source, store, source.campaign("c1"))
    assert store.campaign("c1").stopping == planned
    copy_campaign(store, source, store.campaign("c1"))
    assert source.campaign("c1").stopping == planned


@pytest.mark.parametrize("more", [True, False])
def test_a_copy_that_was_finished_stays_finished(file: Store, store: Store, more: bool) -> None:
    """It was interrupted, copied, and resumed from the copy, where a trial was left to do, or none."""
    file.set_campaign_status("c1", CampaignStatus.INTERRUPTED)
    copy_campaign(file, store, file.campaign("c1"))
    if more:
        store.add_trial(trial(BLOCKS, CELLS[0]))
    store.set_campaign_status("c1", CampaignStatus.FINISHED)
    copy_campaign(file, store, file.campaign("c1"))
    assert store.campaign("c1").status is CampaignStatus.FINISHED


def test_a_copy_that_began_before_the_end_does_not_undo_it(file: Store, store: Store) -> None:
    """An operator copies a machine's store. Meanwhile the campaign ends, and the machine's agent sends it."""

    def end(_done: int, _of: int) -> None:
        with Store.open(file.path) as own:
            own.set_campaign_status("c1", CampaignStatus.FINISHED)
            copy_campaign(own, store, own.campaign("c1"))

    copy_campaign(file, store, file.campaign("c1"), end)
    assert store.campaign("c1").status is CampaignStatus.FINISHED


def test_a_campaign_that_continues_by_a_larger_plan_is_running_again(file: Store, store: Store) -> None:
    file.set_campaign_status("c1", CampaignStatus.FINISHED)
    copy_campaign(file, store, file.campaign("c1"))
    file.extend_campaign(file.campaign("c1").extended(trials=10))
    file.set_campaign_status("c1", CampaignStatus.RUNNING)
    copy_campaign(file, store, file.campaign("c1"))
    assert everything(store) == everything(file)


def test_a_name_that_another_campaign_has_is_left_out(file: Store, store: Store, url: str) -> None:
    """Two machines call a campaign alike: the second one is copied, too, and so are those after it."""
    store.create_campaign(campaign("theirs").model_copy(update={"name": "name-c1"}))
    fill(file, "c2")
    done = CliRunner().invoke(app, ["store", "copy", file.path, url], catch_exceptions=False)
    assert done.exit_code == 0
    assert "c1: copied without its name 'name-c1': another campaign of " in done.output
    assert [store.campaign(name).id for name in ("name-c1", "name-c2")] == ["theirs", "c2"]
    assert store.campaign("c1").name is None
    again = copy_campaign(file, store, file.campaign("c1"))
    assert (again.new, again.name_taken) == (0, None)


def test_the_commands(file: Store, url: str) -> None:
    arguments = ["store", "copy", file.path, url, "name-c1", "--json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert json.loads(done.stdout)["campaigns"] == [
        {"id": "c1", "new": 6, "present": 0, "foreign": 0, "name_taken": None}
    ]
    done = CliRunner().invoke(app, ["store", "check", "--store", url], catch_exceptions=False)
    assert done.stdout == "1 campaign with 6 trials: no faults\n"
    with pytest.raises(UsageError, match="the same store"):
        CliRunner().invoke(app, ["store", "copy", url, url], catch_exceptions=False)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE cells SET spec = '{}' WHERE number = 2", "Field required"),
        ("UPDATE cells SET id = 'abc' WHERE number = 3", "altered"),
        ("UPDATE campaigns SET machine = '[]' WHERE number = 1", "machine"),
        ("INSERT INTO raw_output VALUES (6, 'x', 'no zlib')", ""),
    ],
)
def test_damage_is_found_and_said(file: Store, store: Store, url: str, statement: str, fault: str) -> None:
    copy_campaign(file, store, file.campaign("c1"))
    fill(store, "c2")
    sql(url, statement)
    found = {each.id: each.fault for each in check_campaigns(store)}
    assert found["c2"] is None
    assert found["c1"] is not None
    assert fault in found["c1"]
    done = CliRunner().invoke(app, ["store", "check", "--store", url])
    assert done.exit_code == StoreError.exit_code
    assert "1 campaign with faults" in done.stdout


def test_what_a_column_does_not_take_is_said_in_a_line(file: Store, store: Store, kind: str) -> None:
    """SQLite can hold text in a numeric column. The error names the value, but not all rows of the transaction."""
    url = f"sqlite:///{file.path}"
    for (trigger,) in sql(url, "SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        sql(url, f"DROP TRIGGER {trigger}")
    sql(url, "UPDATE probes SET value = '[null]' WHERE trial = 1")
    with pytest.raises(StoreError) as caught:
        copy_campaign(file, store, file.campaign("c1"))
    assert {"sqlite": "'[null]'", "postgresql": "not str (COPY probes"}[kind] in str(caught.value)
    assert len(str(caught.value)) < 300


def test_damage_of_the_file_is_found(file: Store) -> None:
    with Store.open(file.path) as opened:
        assert database_faults(opened) == []
    sql(f"sqlite:///{file.path}", "INSERT INTO metrics VALUES (99, 'iops', 0, 1.0, '1/s')")
    with Store.open(file.path) as opened:
        assert database_faults(opened) == ["row 19 of table metrics refers to a missing row of trials"]


ROWS = {
    "metrics": "'x', 0, 1.0, 'B'",
    "probes": "'x', 0, 1.0, 'B'",
    "warnings": "9, 'x', 'x', 'x', 'x', '{}'",
    "raw_output": "'x', ''",
}


@pytest.fixture
def server(cluster: postgresql.Cluster, current: str) -> str:
    """Return the URL of an empty store on PostgreSQL."""
    return cluster.url_of(cluster.database(like=current))


@pytest.mark.parametrize("table", ROWS)
def test_a_server_has_no_rows_without_a_trial(server: str, table: str) -> None:
    """Foreign keys would be checked row by row: triggers check statements, and ``store check`` finds the rest."""
    with Store.open(server) as store:
        fill(store, "c1")
        with pytest.raises(DBAPIError, match=f"{table}: there is no trial 99"):
            sql(server, f"INSERT INTO {table} VALUES (99, {ROWS[table]})")
        sql(server, f"INSERT INTO {table} VALUES (1, {ROWS[table]})")
        others = "; ".join(f"DELETE FROM {each} WHERE trial = 1" for each in ROWS if each != table)
        with pytest.raises(DBAPIError, match="still has figures"):
            sql(server, f"INSERT INTO deletions VALUES (1); {others}; DELETE FROM trials WHERE number = 1")
        assert database_faults(store) == []
        sql(server, f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        sql(server, f"INSERT INTO {table} VALUES (99, {ROWS[table]})")
        assert database_faults(store) == [f"table {table} refers to trial 99, which is missing"]


def test_a_server_that_goes_while_rows_are_copied_is_a_lost_store(
    file: Store, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the piece is stored, and the next copy completes it."""
    copy_in = bulk.copy_in

    def lose(connection: Connection, table: Table, rows: list[Row]) -> None:
        if table.name == "probes":
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            sql(server, f"SELECT pg_terminate_backend({pid}, 10000)")
        copy_in(connection, table, rows)

    with Store.open(server) as store:
        with monkeypatch.context() as patched, pytest.raises(StoreLostError, match="terminat"):
            patched.setattr(bulk, "copy_in", lose)
            copy_campaign(file, store, file.campaign("c1"))
        assert store.count("c1") == 0
        assert copy_campaign(file, store, file.campaign("c1")).new == 6
        assert everything(store) == everything(file)


def test_two_copies_at_once_store_each_trial_once(file: Store, server: str) -> None:
    """An operator copies a machine's store while its agent sends: one waits for the other, and neither fails."""
    with Store.open(server) as store:
        store.create_campaign(file.campaign("c1"))
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda _: _copied(file.path, server), range(4)))
        assert sum(each.new for each in done) == 6
        assert everything(store) == everything(file)


def _copied(source: str, target: str) -> CopiedCampaign:
    with Store.open(source) as reading, Store.open(target) as writing:
        return copy_campaign(reading, writing, reading.campaign("c1"))
