"""Tests of applications on a disk that loses power: which losses are found, and which break a promise."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.root.conftest import FSLAB

from fslab.applications import RecoveredData, durable, parse_settings
from fslab.applications import _postgresql_server as server
from fslab.applications._servers import DamagedError
from fslab.errors import ToolFailedError
from fslab.storage.filesystems import REGISTRY as FILESYSTEMS
from fslab.system import proc

FEW = ("--sequences", "2", "--transactions", "10")


def application(name: str, settings: str = "") -> tuple[str, ...]:
    return ("--application", name, "--settings", settings, *FEW)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sqlite", "journal_mode=wal"),
        ("log-file", "sync=fdatasync,segment=16k"),
        ("recorder", "sync=each"),
        ("redis", "appendfsync=always"),
        ("vm-image", "format=qcow2"),
        ("samba", "sync_always=yes"),
        pytest.param("vm-image", "cache_mode=none", marks=pytest.mark.slow),
        pytest.param("maildir", "fsync_directory=yes", marks=pytest.mark.slow),
        pytest.param("mariadb", "", marks=pytest.mark.slow),
        pytest.param("postgresql", "", marks=pytest.mark.slow),
    ],
)
def test_what_is_promised_is_kept(crash: Any, name: str, settings: str) -> None:
    found = crash("ext4", "--states", "20", *application(name, settings))
    assert (found["states"], found["states_damaged"], found["findings"]) == (20, 0, [])
    assert found["promises_kept"] > 5
    assert found["lost_operations"] == 0


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("git", ""),
        pytest.param("sqlite", "", marks=pytest.mark.slow),
        pytest.param("redis", "", marks=pytest.mark.slow),
        pytest.param("vm-image", "cache_mode=unsafe", marks=pytest.mark.slow),
        pytest.param("samba", "", marks=pytest.mark.slow),
        pytest.param("maildir", "", marks=pytest.mark.slow),
        pytest.param("mariadb", "innodb_flush_log_at_trx_commit=2", marks=pytest.mark.slow),
        pytest.param("postgresql", "synchronous_commit=off", marks=pytest.mark.slow),
    ],
)
def test_what_is_not_promised_may_go(crash: Any, name: str, settings: str) -> None:
    """A loss that the documentation allows is counted, but is not a broken promise.

    For example, SQLite by default removes its journal without syncing the directory. A cut can then roll back the
    last commit.
    """
    found = crash("ext4", "--states", "15", *application(name, settings))
    assert (found["promises_broken"], found["states_damaged"]) == (0, 0)
    assert found["lost_operations"] > 0


def test_postgresql_tells_what_it_finds(tmp_path: Path) -> None:
    """The server runs as nobody, below a directory of root. Its recovery is tried on intact and on damaged data."""
    tmp_path.chmod(0o700)
    application = durable("postgresql")
    settings = parse_settings(application, "")
    directory = tmp_path / "cluster"
    directory.mkdir()
    application.lay_out(directory, settings)
    assert application.look(directory, contents) == RecoveredData()
    with application.opened(directory, settings) as commit:
        for number in range(1, 7):
            commit(number, contents(number))
    assert application.look(directory, contents) == RecoveredData(transactions=frozenset(range(1, 7)))
    other = application.look(directory, lambda number: contents(number + 1))
    assert "transaction 1 has other contents" in str(other.problem)
    (table,) = (path for path in directory.glob("base/*/*") if contents(3)[:64] in path.read_bytes())
    damaged = bytearray(table.read_bytes())
    damaged[-100] ^= 1
    table.write_bytes(damaged)
    assert "invalid page" in str(application.look(directory, contents).problem)
    (directory / "global/pg_control").unlink()
    found = application.look(directory, contents)
    assert found.transactions == frozenset()
    assert found.problem
    with (
        pytest.raises(ToolFailedError, match="PostgreSQL: "),
        application.opened(directory, settings) as commit,
    ):
        commit(7, b"")
    assert directory.stat().st_ino & 0xFFFFFFFF not in segments(), (
        "a server that fails removes its shared memory"
    )


def test_a_function_in_a_cluster_reads_no_file_of_root(tmp_path: Path) -> None:
    """Recordings come from other machines. The cluster is below a directory that only root may enter."""
    tmp_path.chmod(0o700)
    directory, secret = tmp_path / "cluster", Path("/etc/shadow")
    directory.mkdir()
    server.initialise(directory)
    with server.session(directory, {}) as say:
        assert "127.0.0.1" in say("SELECT pg_read_file('/etc/hosts')")
        assert directory.stat().st_ino & 0xFFFFFFFF not in segments(), (
            "it would outlive a server that is killed"
        )
        with pytest.raises(DamagedError, match="Permission denied"):
            say(f"SELECT pg_read_file('{secret}')")
    assert server.bad_checksums(directory) is None
    (tmp_path / "link").symlink_to(directory)
    for lost in (tmp_path / "missing", tmp_path / "link"):
        with pytest.raises(DamagedError, match="directory"), server.session(lost, {}):
            pass


def test_postgresql_promises_what_its_settings_keep() -> None:
    application = durable("postgresql")
    promises = FILESYSTEMS.get("ext4").promises((), bytes(4096))
    assert promises is not None

    def given(text: str) -> tuple[bool, bool]:
        contract = application.contract(parse_settings(application, text), promises)
        return contract.durable.given, contract.consistent.given

    assert given("") == (True, True)
    assert given("synchronous_commit=off") == (False, True)
    assert given("fsync=off") == given("full_page_writes=off") == (False, False)


def segments() -> set[int]:
    """Return the keys of all System V segments. That of a server is the inode number of its directory."""
    return {
        int(line.split()[0]) & 0xFFFFFFFF for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    }


def contents(number: int) -> bytes:
    return Random(number).randbytes(3000)


@pytest.mark.slow
def test_a_disk_that_ignores_flushes_is_found_and_the_state_made_again(crash: Any, tmp_path: Path) -> None:
    found = crash("ext4", "--states", "40", *application("sqlite", "journal_mode=wal"), fault="ignore-flush")
    assert found["promises_broken"] > 0
    finding = next(each for each in found["findings"] if each["broken"] and each["sequence"])
    assert finding["sequence"] == ["10 transactions of sqlite with journal_mode=wal,synchronous=full"]
    argv = [FSLAB, "crash", "replay", finding["id"], "--output", str(tmp_path / "again.img"), "--json"]
    where = {"XDG_STATE_HOME": str(tmp_path / "recordings")}
    again = json.loads(proc.run(argv, env=where).stdout)
    assert (finding["kind"], finding["step"]) in [(each["kind"], each["step"]) for each in again["findings"]]
    kept = proc.run([FSLAB, "crash", "list"], env=where).stdout
    assert kept.startswith(
        f"{finding['id'].partition('.')[0]}  ext4  runs: 2, the first: 10 transactions of sqlite"
    )


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("redis", "appendfsync=always"),
        ("log-file", "sync=fdatasync,segment=16k"),
        ("recorder", "sync=segment"),
        ("vm-image", "format=qcow2,cache_mode=none"),
        ("sqlite", "journal_mode=wal"),
        ("maildir", "fsync_directory=yes"),
        ("samba", "sync_always=yes"),
        ("mariadb", ""),
        ("postgresql", ""),
    ],
)
@pytest.mark.parametrize("fault", [None, "ignore-flush"])
def test_what_is_synced_is_kept_unless_the_disk_ignores_it(
    crash: Any, filesystem: str, name: str, settings: str, fault: str | None
) -> None:
    # Of 10 pieces the recorder syncs two segments, and 40 states may be of no cut between them and the end.
    amount = ("--sequences", "2", "--transactions", "60") if name == "recorder" else FEW
    tested = ("--application", name, "--settings", settings, *amount)
    found = crash(filesystem, "--states", "40", *tested, fault=fault)
    broken = [each for each in found["findings"] if each["broken"]]
    if fault is None:
        assert broken == [], found
    assert (found["promises_broken"] == 0) == (fault is None), found


@pytest.mark.slow
def test_options_that_weaken_a_promise_are_named(crash: Any) -> None:
    found = crash("ext4", "--states", "60", *application("sqlite", "journal_mode=wal"), options="barrier=0")
    assert found["promises_broken"] > 0
    assert any("barrier" in finding["source"] for finding in found["findings"])
