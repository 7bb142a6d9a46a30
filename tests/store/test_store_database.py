"""Tests of the store's database: URLs, settings, concurrent opening; foreign databases are refused."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import NullPool, create_engine, inspect
from sqlalchemy.exc import DatabaseError
from tests.made import campaign, trial
from tests.postgresql import Cluster
from tests.store.sql import sql

from fslab.errors import NotStoredError, StoreError, StoreLostError
from fslab.store import connections, database_errors, schema, store_url
from fslab.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a store that does not exist yet, for tests of SQLite only."""
    return tmp_path / "another directory" / "store.sqlite"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://u:hush@h/d",
        "postgresql+psycopg://u@h/d?password=hush&sslmode=require",
        "postgresql+psycopg://h/d?password=a&password=hush",
        "postgresql+psycopg://u:hush@h/d?sslpassword=hush",
    ],
)
def test_no_password_of_a_url_is_shown(url: str) -> None:
    shown = store_url.place_of(store_url.store_url(url))
    assert "hush" not in shown
    assert shown.startswith("postgresql+psycopg://")
    assert "h/d" in shown


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://u:hush@h:port/d", "postgresql+psycopg://u:hush@[::1/d", "://hush"]
)
def test_what_is_no_url_is_an_error_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match="not a path or a database URL") as raised:
        store_url.store_url(url)
    assert "hush" not in str(raised.value)


def test_sqlite_keeps_what_was_committed(path: Path) -> None:
    with Store.open(str(path)) as opened, opened._reader.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    # sqlite.org/pragma.html: synchronous = 2 is FULL
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}


def test_postgresql_keeps_what_was_committed(cluster: Cluster) -> None:
    cluster.execute(f'ALTER DATABASE "{(name := cluster.database())}" SET synchronous_commit = off')
    with Store.open(cluster.url_of(name)) as opened, opened._reader.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    stronger = cluster.database()
    cluster.execute(f'ALTER DATABASE "{stronger}" SET synchronous_commit = remote_apply')
    with Store.open(cluster.url_of(stronger)) as opened, opened._reader.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"


@pytest.mark.parametrize(
    "setting", ["DateStyle = 'SQL, DMY'", "extra_float_digits = -15", "TimeZone = 'Asia/Kathmandu'",
                "bytea_output = escape", "IntervalStyle = sql_standard", "client_encoding = latin1"],
)  # fmt: skip
def test_what_is_read_does_not_depend_on_the_server_s_settings(setting: str, cluster: Cluster) -> None:
    cluster.execute(f'ALTER DATABASE "{(name := cluster.database())}" SET {setting}')
    stored = trial(campaign="c1").model_copy(
        update={"duration_s": 1.2345678901234567, "raw": {"stdout": "µ → \\x00"}}
    )
    with Store.open(cluster.url_of(name)) as opened:
        opened.create_campaign(campaign("c1"))
        opened.add_trial(stored)
        (found,) = opened.trials("c1", raw=True)
    assert (found.started, found.duration_s, found.raw) == (stored.started, stored.duration_s, stored.raw)


@pytest.mark.parametrize(("encoding", "taken"), [("SQL_ASCII", True), ("LATIN1", False), ("EUC_JP", False)])
def test_a_database_that_has_not_every_character_takes_no_campaign(
    encoding: str, taken: bool, cluster: Cluster
) -> None:
    """A database whose encoding lacks characters is refused when it is opened, not after a trial was measured."""
    name = f"in_{encoding.lower()}"
    cluster.execute(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    if not taken:
        with pytest.raises(StoreError, match=encoding):
            Store.open(cluster.url_of(name))
        return
    with Store.open(cluster.url_of(name)) as opened:
        opened.create_campaign(campaign("c1").model_copy(update={"note": "日本 → µ"}))
        assert opened.campaign("c1").note == "日本 → µ"


def test_many_openers_make_one_store(empty: str) -> None:
    barrier, failures = threading.Barrier(8), []

    def work(index: int) -> None:
        try:
            barrier.wait()
            with Store.open(empty) as opened:
                opened.create_campaign(campaign(f"c{index}"))
                for block in range(5):
                    opened.add_trial(trial(block, campaign=f"c{index}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Store.open(empty) as opened:
        assert sorted(known.id for known in opened.campaigns()) == [f"c{index}" for index in range(8)]
        assert all(len(opened.finished(f"c{index}")) == 5 for index in range(8))


def test_reader_is_not_disturbed_by_a_writer(store: Store, url: str) -> None:
    store.create_campaign(campaign("c1"))
    with Store.open(url) as other, store._writing():
        assert other.campaign().id == "c1"


def test_neither_a_lock_nor_a_statement_without_an_end_is_waited_for(
    cluster: Cluster, current: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine of a fleet can lock rows, and the owner of a database can make a view of a table."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(database_errors, "STATEMENT_LIMIT_S", 3)
    name = cluster.database(like=current)
    with (
        Store.open(cluster.url_of(name)) as store,
        psycopg.connect(host=str(cluster.directory), user="fslab", dbname=name) as other,
    ):
        store.create_campaign(campaign())
        other.execute("SELECT FROM campaigns FOR UPDATE")
        with pytest.raises(StoreLostError, match="lock timeout") as locked:
            store.note_campaign(campaign().id, "mine")
        assert "another process has locked the store" in (locked.value.hint or "")
        other.execute("ALTER TABLE campaigns RENAME TO known")
        other.execute("CREATE VIEW campaigns AS SELECT known.* FROM known, pg_sleep(60)")
        other.commit()
        with pytest.raises(StoreError, match="statement timeout") as endless:
            store.has(campaign().id)
        assert "reading ends after 3 s" in (endless.value.hint or "")
        assert not isinstance(endless.value, StoreLostError), "it would be tried again"
        with store._writing() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(3.5)")  # what is written may take long


@pytest.mark.parametrize("other", ["0004", "9999"])
def test_store_with_another_schema_is_refused_and_left_alone(store: Store, url: str, other: str) -> None:
    store.close()
    sql(url, f"UPDATE {schema.VERSION_TABLE} SET version_num = '{other}'")
    with pytest.raises(
        StoreError, match=f"has schema {other}, and this fslab reads only schema {schema.SCHEMA}"
    ) as caught:
        Store.open(url)
    assert caught.value.where == store_url.place_of(store_url.store_url(url))
    assert sql(url, f"SELECT * FROM {schema.VERSION_TABLE}") == [(other,)]


def test_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "mail.sqlite"
    sql(f"sqlite:///{other}", "CREATE TABLE mail (id)")
    before = other.read_bytes()
    for create in (True, False):
        with pytest.raises(StoreError, match="another program"):
            Store.open(str(other), create=create)
    assert other.read_bytes() == before


def tables(url: str) -> list[str]:
    """Return the names of the tables of a database."""
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return inspect(connection).get_table_names()


def test_reading_makes_no_table_in_a_database_without_a_store(empty: str, tmp_path: Path, kind: str) -> None:
    if kind == "sqlite":
        (tmp_path / "new directory").mkdir()
        sql(empty, "PRAGMA user_version = 1")
    with pytest.raises(NotStoredError, match="the store does not exist"):
        Store.open(empty, create=False)
    assert tables(empty) == []


def test_a_table_of_another_program_on_a_server_stays_its_own(cluster: Cluster) -> None:
    url = cluster.url_of(cluster.database())
    sql(url, "CREATE TABLE metrics (id integer)")
    sql(url, "INSERT INTO metrics VALUES (1)")
    with pytest.raises(StoreError, match='"metrics" already exists') as caught:
        Store.open(url)
    assert "create one for fslab" in str(caught.value)
    sql(url, "UPDATE metrics SET id = 2")
    assert tables(url) == ["metrics"]


def test_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """SQLite removes files beside it that have the names of its journals."""
    texts = [tmp_path / f"notes{end}" for end in ("", "-journal", "-wal", "-shm")]
    for each in texts:
        each.write_text("no database\n" * 100)
    for create in (True, False):
        with pytest.raises(StoreError, match="file is not a database"):
            Store.open(str(texts[0]), create=create)
    assert [each.read_text() for each in texts] == ["no database\n" * 100] * 4


def test_places_that_cannot_hold_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="the store does not exist"):
        Store.open(str(tmp_path / "file"), create=False)
    assert (tmp_path / "file").read_bytes() == b""
    for create in (True, False):
        with pytest.raises(StoreError, match="is not a regular file"):
            Store.open(str(tmp_path / "pipe"), create=create)
    with pytest.raises(StoreError, match="is a directory"):
        Store.open(str(tmp_path))
    with pytest.raises(StoreError, match=r"cannot make its directory: (Not a directory|File exists)"):
        Store.open(str(tmp_path / "file" / "store.sqlite"))
    with pytest.raises(StoreError, match="no such kind of database: oracel"):
        Store.open("oracel://host/x")
    with pytest.raises(StoreError, match="not a path or a database URL"):
        Store.open("://")


def test_default_store_is_in_the_users_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert store_url.store_url(None).database == "/data/fslab/store.sqlite"
    # XDG Base Directory Specification 0.8: relative paths are invalid and to be ignored
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert store_url.default_path() == tmp_path / ".local/share/fslab/store.sqlite"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert store_url.default_path() == tmp_path / ".local/share/fslab/store.sqlite"


def test_url_may_be_a_path_or_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_url.store_url("my store.db").database == str(tmp_path / "my store.db")
    assert store_url.store_url("postgresql+psycopg://me@host/lab").drivername == "postgresql+psycopg"
    with Store.open(f"sqlite:///{tmp_path}/by-url.sqlite") as opened:
        assert opened.path == f"{tmp_path}/by-url.sqlite"


def test_password_is_never_shown() -> None:
    url = store_url.store_url("postgresql+psycopg://me:secret@host/lab")
    assert store_url.place_of(url) == "postgresql+psycopg://me:***@host/lab"
    assert store_url.store_option(store_url.place_of(url)) == " --store postgresql+psycopg://me@host/lab"


def test_a_read_that_the_disk_refuses_is_not_a_malformed_store() -> None:
    """SQLite reports EIO as SQLITE_CORRUPT. /proc/self/mem has nothing at offset 0: reading it is EIO, too."""
    said = DatabaseError("SELECT 1", None, sqlite3.DatabaseError("database disk image is malformed"))
    told = "cannot be read: Input/output error"
    with pytest.raises(StoreLostError, match=told), database_errors.translated("/proc/self/mem"):
        raise said


def test_a_store_that_is_malformed_is_not_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    file.write_bytes(b"SQLite format 3")
    said = DatabaseError("SELECT 1", None, sqlite3.DatabaseError("database disk image is malformed"))
    with pytest.raises(StoreError, match="malformed") as caught, database_errors.translated(str(file)):
        raise said
    assert not isinstance(caught.value, StoreLostError)
