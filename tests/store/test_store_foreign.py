"""Tests of SQLite stores that another user can write to: files beside them are not used, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from tests.made import campaign

from fslab.errors import StoreError, UnsafeError
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return the store of another user, in a directory of theirs."""
    directory = tmp_path / "theirs"
    directory.mkdir(mode=0o755)
    with Store.open(str(directory / "store.sqlite")) as store:
        store.create_campaign(campaign("c1"))
    for each in (directory, *directory.iterdir()):
        os.chown(each, NOBODY, NOBODY)
    return directory / "store.sqlite"


def hot_journal(store: Path, victim: Path) -> None:
    """Make a rollback journal that names ``victim`` as its super-journal, in the format of SQLite's pager.c: a header
    of one sector without pages; page number of the lock byte, name, its length, its checksum, magic."""
    with closing(sqlite3.connect(f"file:{store}?immutable=1", uri=True)) as database:
        ((page_bytes,),) = database.execute("PRAGMA page_size")
        ((pages,),) = database.execute("PRAGMA page_count")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    header = magic + struct.pack(">5I", 0, 0, pages, 512, page_bytes)
    record = (
        struct.pack(">I", (1 << 30) // page_bytes + 1)
        + name
        + struct.pack(">2I", len(name), sum(name))
        + magic
    )
    store.with_name(f"{store.name}-journal").write_bytes(header.ljust(512, b"\0") + record)
    victim.write_bytes(b"precious")


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in directory.iterdir()}


def test_a_hot_journal_deletes_no_file_and_nothing_is_written(theirs: Path, tmp_path: Path) -> None:
    (own := tmp_path / "own").mkdir()
    for name in ("store.sqlite", "plain.sqlite"):
        shutil.copyfile(theirs, own / name)
    hot_journal(theirs, victim := tmp_path / "victim")
    before = contents(theirs.parent)
    with Store.open(str(theirs), create=False) as store:
        assert [known.id for known in store.campaigns()] == ["c1"]
        with pytest.raises(StoreError, match="readonly"):
            store.set_campaign_status("c1", CampaignStatus.FINISHED)
    assert victim.read_bytes() == b"precious"
    assert contents(theirs.parent) == before
    # The attack is real: without this protection, SQLite itself deletes the file.
    hot_journal(own / "plain.sqlite", victim)
    with closing(sqlite3.connect(own / "plain.sqlite")) as database:
        database.execute("SELECT * FROM campaigns").fetchall()
    assert not victim.exists()


@pytest.mark.parametrize("how", ["directory", "sticky", "file", "above", "link"])
def test_whoever_can_put_a_file_beside_it_counts(how: str, theirs: Path, tmp_path: Path) -> None:
    directory, path = theirs.parent, theirs
    for each in (directory, *directory.iterdir()):
        os.chown(each, 0, 0)
    match how:
        case "directory":
            os.chown(directory, NOBODY, -1)
        case "sticky":  # such as /tmp
            directory.chmod(0o1777)
        case "file":
            theirs.chmod(0o666)
        case "above":
            (above := tmp_path / "above").mkdir()
            path = directory.rename(above / "theirs") / theirs.name
            above.chmod(0o777)
        case "link":
            directory.chmod(0o1777)
            (path := tmp_path / "link").symlink_to(theirs)
    before = contents(path.resolve().parent)
    hot_journal(path.resolve(), victim := tmp_path / "victim")
    with Store.open(str(path), create=False) as store:
        assert store.has("c1")
    assert victim.exists()
    path.resolve().with_name(f"{theirs.name}-journal").unlink()
    assert contents(path.resolve().parent) == before
    with pytest.raises(UnsafeError, match="not written"):
        Store.open(str(path))
    assert contents(path.resolve().parent) == before


@pytest.mark.parametrize("create", [False, True])
def test_a_journal_from_an_archive_that_root_unpacked_deletes_no_file(
    create: bool, theirs: Path, tmp_path: Path
) -> None:
    """All of it belongs to root then, and lies where only root can write."""
    for each in (theirs.parent, *theirs.parent.iterdir()):
        os.chown(each, 0, 0)
    hot_journal(theirs, victim := tmp_path / "victim")
    (link := tmp_path / "link.sqlite").symlink_to(theirs)
    for path in (theirs, link):
        with pytest.raises(UnsafeError, match="names another file"):
            Store.open(str(path), create=create)
    assert victim.read_bytes() == b"precious"
    theirs.with_name(f"{theirs.name}-journal").unlink()
    with Store.open(str(link), create=create) as store:
        assert store.has("c1")


def test_what_is_not_in_the_file_yet_is_reported(theirs: Path, caplog: pytest.LogCaptureFixture) -> None:
    theirs.with_name("store.sqlite-wal").write_bytes(b"x" * 4096)
    with Store.open(str(theirs), create=False) as store:
        assert store.has("c1")
    assert "is missing" in caplog.text


def test_a_sparse_file_is_copied_with_its_holes(theirs: Path) -> None:
    os.truncate(theirs, 1 << 40)
    with Store.open(str(theirs), create=False) as store:
        assert store.has("c1")


def test_a_copy_leaves_room_for_others(theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place := tmp_path / "copies").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    about = os.statvfs(place)
    little = os.statvfs_result((*about[:4], 2 * theirs.stat().st_size // about.f_frsize - 1, *about[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: little)
    with pytest.raises(StoreError, match=f"more than half of the free space in {place}"):
        Store.open(str(theirs), create=False)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "computed",
    [
        "CREATE VIEW Metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM old, n",
        "CREATE TABLE metrics(trial, name, position, value, unit AS (hex(zeroblob(trial * 100000000))))",
        "CREATE TABLE metrics(trial, name, position, value, unit DEFAULT 'one text of a megabyte for each trial')",
        "CREATE VIRTUAL TABLE metrics USING fts5(trial, name, position, value, unit)",
    ],
    ids=["view", "generated", "default", "virtual"],
)
def test_what_a_small_file_computes_is_not_read(computed: str, theirs: Path) -> None:
    with closing(sqlite3.connect(theirs)) as database:
        database.execute("ALTER TABLE metrics RENAME TO old")
        database.execute(computed)
        database.execute("CREATE VIEW mine AS SELECT count(*) FROM trials")  # of a user who analyses trials
    with pytest.raises(StoreError, match=r"table '[Mm]etrics' is not one that fslab made"):
        Store.open(str(theirs), create=False)


def test_a_trigger_of_others_changes_nothing_that_is_stored(theirs: Path) -> None:
    with closing(sqlite3.connect(theirs)) as database:
        database.execute("CREATE TABLE seen(id)")
        database.execute("CREATE TRIGGER of_a_user AFTER INSERT ON seen BEGIN DELETE FROM seen; END")
    with Store.open(str(theirs), create=False) as store:
        assert store.has("c1")
    with closing(sqlite3.connect(theirs)) as database:
        database.execute(
            "CREATE TRIGGER Later AFTER INSERT ON Campaigns BEGIN UPDATE campaigns SET note = 'x'; END"
        )
    with pytest.raises(StoreError, match="trigger 'Later' is not one that fslab made"):
        Store.open(str(theirs), create=False)


def test_the_caller_of_sudo_keeps_the_own_store(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    with Store.open(str(theirs), create=False) as store:
        store.set_campaign_status("c1", CampaignStatus.FINISHED)


def test_a_url_that_means_another_file_is_refused(theirs: Path) -> None:
    hot_journal(theirs, victim := theirs.parent.parent / "victim")
    with pytest.raises(StoreError, match="cannot have 'uri'"):
        Store.open(f"sqlite:///file:{theirs}?uri=true", create=False)
    with Store.open(f"sqlite:///{theirs}", create=False) as store:
        assert store.has("c1")
    assert victim.exists()


@pytest.mark.parametrize("place", ["new.sqlite", "deeper/below/new.sqlite"])
def test_root_makes_none_where_others_can_write(place: str, tmp_path: Path) -> None:
    (open_ := tmp_path / "open").mkdir()
    open_.chmod(0o777)
    with pytest.raises(UnsafeError, match="not written"):
        Store.open(str(open_ / place))
    assert list(open_.iterdir()) == []
    open_.chmod(0o1777)
    if "/" in place:  # a directory of ours in one with the sticky bit
        with Store.open(str(open_ / place)) as store:
            store.create_campaign(campaign("c1"))
