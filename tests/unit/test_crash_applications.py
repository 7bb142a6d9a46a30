"""Tests of the applications of crash tests: transactions in a real directory, lost and damaged ones, and promises."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.test_crash import promises
from typer.testing import CliRunner

from fslab.applications import (
    REGISTRY,
    DurableApplication,
    RecoveredData,
    _postgresql_server,
    _untrusted_data,
    durable,
    mariadb,
    parse_settings,
)
from fslab.applications._servers import DamagedError
from fslab.applications.vm_image import Places, block_of
from fslab.cli import app
from fslab.crash import application_runs as source_of_runs
from fslab.crash import bounded_sequences, recording
from fslab.crash.application_runs import Runs
from fslab.crash.sequences import Sequences
from fslab.crash.sources import Kind, Progress, directory_of
from fslab.crash.trial_request import Alphabet, CrashRequest, Cuts
from fslab.errors import FslabError, ToolFailedError, UsageError
from fslab.system import proc, tools

DURABLE = [name for name, each in REGISTRY if isinstance(each, DurableApplication)]
SETS = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\n7\r\n$3\r\nabc\r\n"
LONG = {("postgresql", "fsync"), ("postgresql", "full_page_writes")}
# Each start of PostgreSQL takes as long as all other applications together.
EVERY = [
    pytest.param(
        name,
        f"{setting}={value}",
        marks=[pytest.mark.slow] if (name, setting) in LONG else [],
        id=f"{name}-{setting}={value}",
    )
    for name in DURABLE
    for setting, values in durable(name).settings.items()
    for value in values
]


def runs(name: str, settings: str = "", count: int = 1, transactions: int = 3) -> Runs:
    application = durable(name)
    for tool in application.tools:
        if tools.find(tool.program) is None:
            pytest.skip(f"needs {tool.program}")
    return Runs(
        application=application, settings=parse_settings(application, settings), runs=count,
        transactions=transactions, seed=3,
    )  # fmt: skip


def judged(
    source: Runs, found: RecoveredData, done: int, begun: int | None = None
) -> list[tuple[Kind, bool]]:
    progress = Progress(number=0, done=done, begun=done if begun is None else begun)
    return [(finding.kind, finding.broken) for finding in source.judge(progress, found, promises()).findings]


@pytest.mark.parametrize(("name", "setting"), EVERY)
def test_what_was_committed_is_read_back(name: str, setting: str, tmp_path: Path) -> None:
    source = runs(name, setting, count=2)
    source.lay_out(tmp_path)
    marks: list[str] = []
    source.perform(tmp_path, 1, marks.append)
    assert marks == [f"1:{step}:{what}" for step in (1, 2, 3) for what in ("begins", "returned")]
    assert source.look(directory_of(tmp_path, 1)) == RecoveredData(transactions=frozenset({1, 2, 3}))
    assert source.look(directory_of(tmp_path, 0)) == RecoveredData()
    assert judged(source, source.look(directory_of(tmp_path, 1)), done=3) == []
    assert Runs.loaded(source.stored()) == source


@pytest.mark.parametrize(
    ("status", "said", "complaint", "damaged"),
    [
        (1, "2026-01-01  1:00:00 0 [ERROR] InnoDB: Page is corrupted", "", True),
        (-signal.SIGABRT, "", "ERROR 2013 (HY000) at line 1: Lost connection to server", True),
        (None, "", "ERROR 1712 (HY000) at line 1: Index PRIMARY is corrupted", True),
        (None, "", "ERROR 2013 (HY000) at line 1: Lost connection to server", False),
        (None, "", "", False),
        (-signal.SIGKILL, "", "", False),
        (126, "setpriv: failed to execute mariadbd: Resource temporarily unavailable", "", False),
        (1, "2026-01-01  1:00:00 0 [ERROR] mariadbd: Out of memory (Needed 128180224 bytes)", "", False),
        (1, "2026-01-01  1:00:00 0 [ERROR] Error in accept: Too many open files", "", False),
        (1, "2026-01-01  1:00:00 0 [ERROR] InnoDB: Operating system error number 24", "", False),
        (1, "2026-01-01  1:00:00 0 [ERROR] InnoDB: Cannot map innodb_buffer_pool_size_max=1m", "", False),
    ],
)
def test_mariadb_blames_its_data_for_what_the_data_can_cause(
    status: int | None, said: str, complaint: str, damaged: bool
) -> None:
    server: Any = SimpleNamespace(child=SimpleNamespace(wait=lambda _: status), said=lambda: said)
    assert isinstance(mariadb.failure(server, complaint), DamagedError) == damaged


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EIO, "Input/output error"), "cannot read its files: Input/output error"),
        (OSError(errno.ENOENT, "No such file", "data"), None),
        (
            OSError(errno.ENOTDIR, "Not a directory", "0/data"),
            "cannot read its files 'data': Not a directory",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "scratch"), None),
    ],
)
def test_what_cannot_be_read_is_damage_and_an_error_elsewhere_is_not(
    error: OSError, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "0"
    if error.filename is not None:
        error.filename = str(tmp_path / error.filename)

    def look(*_: object) -> RecoveredData:
        raise error

    source = runs("maildir")
    monkeypatch.setattr(type(source.application), "look", look)
    if told is None:
        with pytest.raises(OSError, match=error.strerror):
            source.look(directory)
    else:
        assert source.look(directory).problem == told


@pytest.mark.parametrize("lacking", [errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_a_shortage_of_the_machine_is_no_loss(
    lacking: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    application, steps = (
        runs("log-file", "sync=fdatasync"),
        Sequences(chosen=(bounded_sequences.parse(["fsync a"]),)),
    )
    for source in (application, steps):
        root = tmp_path / str(source is steps)
        root.mkdir()
        source.lay_out(root)

    def refuse(path: Path, *_: object) -> None:
        raise OSError(lacking, os.strerror(lacking), str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    for source in (application, steps):
        directory = directory_of(tmp_path / str(source is steps), 0)
        with pytest.raises(ToolFailedError, match=os.strerror(lacking)):
            source.look(directory)


def test_a_log_that_cannot_be_read_is_damage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = runs("log-file", "sync=fdatasync")
    source.lay_out(tmp_path)

    def refuse(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert source.look(directory_of(tmp_path, 0)).problem == "cannot read its files 'log': Input/output error"


def test_a_recorder_s_store_from_another_machine_takes_no_time(tmp_path: Path) -> None:
    source = runs("recorder")
    source.lay_out(tmp_path)
    (directory_of(tmp_path, 0) / "0/999999999999").touch()
    assert source.look(directory_of(tmp_path, 0)).problem == "damaged: a segment with the number 999999999999"
    (directory_of(tmp_path, 0) / "0/999999999999").rename(directory_of(tmp_path, 0) / "0/000000")
    (directory_of(tmp_path, 0) / "store").write_text("1 99999999999 1 0")
    assert source.look(directory_of(tmp_path, 0)).problem == "damaged: a segment with the number 0"


@pytest.mark.parametrize("name", ["log-file", "maildir", "recorder"])
def test_nothing_endless_is_read(name: str, tmp_path: Path) -> None:
    """A recording of another machine can have a pipe, and a file that fills the memory."""
    source, directory = runs(name), directory_of(tmp_path, 0)
    source.lay_out(tmp_path)
    for number, path in enumerate(path for path in [*directory.rglob("*")] if path.is_dir()):
        os.mkfifo(path / str(number))
        assert (
            source.look(directory).problem
            == f"'{path.relative_to(directory)}/{number}' is a pipe or too large to read"
        )
        (path / str(number)).unlink()
    with (directory / "log").open("wb") as file:
        file.truncate(1 << 40)
    assert source.look(directory).problem == "'log' is a pipe or too large to read"


@pytest.mark.parametrize("name", [name for name in DURABLE if name != "log-file"])
def test_damage_is_found(name: str, tmp_path: Path) -> None:
    source = runs(name)
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    directory = directory_of(tmp_path, 0)
    # PostgreSQL's log has spare segments, which contain nothing.
    files = [path for path in directory.rglob("*") if path.is_file() and "pg_wal" not in path.parts]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.chmod(0o600)
    largest.write_bytes(b"\xa5" * largest.stat().st_size)
    found = source.look(directory)
    assert found.problem is not None
    (verdict,) = judged(source, found, done=3)
    assert verdict[0] is Kind.DAMAGED
    shutil.rmtree(directory)
    directory.mkdir()
    # An empty share is one to which nothing was uploaded.
    assert (source.look(directory).problem is None) is (name == "samba"), "nothing is there"


@pytest.mark.parametrize("name", ["log-file", "recorder"])
def test_a_record_that_a_full_disk_takes_in_part_is_not_committed(name: str, tmp_path: Path) -> None:
    """What is then missing would count as lost by the file system. A limit of files also cuts a write short."""
    source = runs(name)
    source.lay_out(tmp_path)
    there = directory_of(tmp_path, 0)
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    with source.application.opened(there, source.settings) as commit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, former[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                commit(1, bytes(4000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, former)


def test_of_a_log_file_each_record_is_there_or_not(tmp_path: Path) -> None:
    source = runs("log-file")
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    file = directory_of(tmp_path, 0) / "log"
    whole, second = file.read_bytes(), len(source.contents(1))
    file.write_bytes(
        whole[:second] + bytes(len(source.contents(2))) + whole[second + len(source.contents(2)) : -1]
    )
    assert source.look(file.parent) == RecoveredData(transactions=frozenset({1})), (
        "zeros, then one that is cut"
    )
    verdict = source.judge(Progress(number=0, done=3, begun=3), source.look(file.parent), promises())
    assert verdict.lost == {2, 3}
    file.unlink()
    assert source.look(file.parent) == RecoveredData()


def test_the_segments_of_a_log_are_preallocated_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of a segment are read, whatever is lost of the one before. There is no pause of none: it takes time."""
    monkeypatch.setattr("fslab.crash.application_runs.time.sleep", None)
    source = runs("log-file", "sync=fdatasync,segment=16k", transactions=40)
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    first, *later = sorted(directory_of(tmp_path, 0).iterdir())
    sizes = [len(source.contents(number)) for number in range(1, 41)]
    assert len(later) >= 2
    begun = int(later[0].suffix[1:])
    assert first.stat().st_size == sum(sizes[: begun - 1]) >= 16 << 10 > sum(sizes[: begun - 2])
    assert later[-1].stat().st_size == 16 << 10
    os.truncate(first, sizes[0])
    (first.parent / "log.new").write_bytes(b"x")
    assert source.look(first.parent) == RecoveredData(transactions=frozenset({1, *range(begun, 41)}))


def test_a_record_is_acknowledged_before_the_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut in the pause must not take it."""
    seen: list[str | float] = []
    monkeypatch.setattr("fslab.crash.application_runs.time.sleep", seen.append)
    source = runs("log-file", "sync=fdatasync,interval=10ms", transactions=2)
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, seen.append)
    assert seen == ["0:1:begins", "0:1:returned", 0.01, "0:2:begins", "0:2:returned", 0.01]


@pytest.mark.parametrize(
    ("sync", "missed"),
    [("no", ()), ("segment", (23,)), ("interval", (23, 27)), ("each", (23, 27, 29))],
)
def test_of_a_recorder_what_was_synced_before_a_later_piece_is_there(
    sync: str, missed: tuple[int, ...], tmp_path: Path
) -> None:
    """Of 30 pieces of two streams, the last two segments are kept: 17, 19, 21, 23, and 25, 27, 29 of the first one."""
    source = runs("recorder", f"sync={sync}", transactions=30)
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    full, newest = (directory_of(tmp_path, 0) / "0" / name for name in ("000002", "000003"))
    assert sorted(full.parent.iterdir()) == [full, newest], "the oldest were deleted"
    sizes = {number: len(source.contents(number)) for number in range(1, 31)}
    for path, lost in ((newest, [29]), (newest, [27, 29]), (full, [23])):
        written = path.read_bytes()
        kept = written[: -sum(sizes[number] for number in lost)]
        for damaged in (kept, written[: len(kept) + 1], kept + bytes(len(written) - len(kept))):
            path.write_bytes(damaged)
            seen = source.look(directory_of(tmp_path, 0))
            if lost[0] in missed:
                assert seen.problem == f"piece {lost[0]} was synced before piece 30 began, and is missing"
            else:
                assert seen == RecoveredData(transactions=frozenset(sizes) - {*lost})
        longer = path == full
        path.write_bytes(written + b"x" if longer else kept + b"x" * sizes[lost[0]])
        problem = str(source.look(directory_of(tmp_path, 0)).problem)
        assert ("longer than a segment" if longer else "other contents") in problem
        path.write_bytes(written)
    newest.unlink()
    seen = source.look(directory_of(tmp_path, 0))
    assert seen.transactions == frozenset(sizes) - {25, 27, 29}, (
        "its name is lost, not the deletion that it caused"
    )


def test_of_an_image_each_sector_tells_its_write(tmp_path: Path) -> None:
    """A write over another one can be there in part; then it is missing, and the one below it is not."""
    source = runs("vm-image", transactions=40)
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    directory = directory_of(tmp_path, 0)
    places, path = Places.of(directory), directory / "image"
    whole, every = path.read_bytes(), frozenset(range(1, 41))
    over, under = next(
        (later, earlier)
        for later in range(40, 0, -1)
        for earlier in range(later - 1, 0, -1)
        if places.slot(earlier) == places.slot(later)
        and later == max(each for each in every if places.slot(each) == places.slot(later))
        and len(source.contents(earlier)) > 1000
        and len(source.contents(later)) > 1000
    )
    second, below = places.offset(over) + 512, block_of(under, source.contents(under))
    for sector, missing in ((below[512:1024], {over}), (bytes(512), {over, under})):
        path.write_bytes(whole[:second] + sector + whole[second + 512 :])
        found = source.look(directory)
        assert found.problem is None
        assert (
            missing
            <= every - found.transactions
            <= {each for each in every if places.offset(each) + 512 == second}
        )
    elsewhere = next(each for each in every if places.slot(each) != places.slot(over))
    for sector in (block_of(elsewhere, source.contents(elsewhere))[512:1024], b"stale".ljust(512)):
        path.write_bytes(whole[:second] + sector.ljust(512, b"x") + whole[second + 512 :])
        assert "has bytes that were never written there" in str(source.look(directory).problem)
    os.truncate(path, second)
    assert over not in source.look(directory).transactions


@pytest.mark.parametrize(
    "options", [("-b", "/etc/passwd", "-F", "raw"), ("-o", "data_file=other"), ("-o", "extended_l2=on")]
)
def test_an_image_that_names_another_file_is_not_opened(options: tuple[str, ...], tmp_path: Path) -> None:
    source = runs("vm-image", "format=qcow2")
    source.lay_out(tmp_path)
    directory = directory_of(tmp_path, 0)
    assert source.look(directory) == RecoveredData()
    proc.run(["qemu-img", "create", "-q", "-u", "-f", "qcow2", *options, "image", "512k"], cwd=directory)
    assert "names another file" in str(source.look(directory).problem)


@pytest.mark.parametrize(
    "half", ["DELETE FROM transactions WHERE number = 2", "UPDATE counter SET last = NULL"]
)
def test_half_a_transaction_is_found(half: str, tmp_path: Path) -> None:
    source = runs("sqlite")
    source.lay_out(tmp_path)
    source.perform(tmp_path, 0, lambda _: None)
    with closing(sqlite3.connect(directory_of(tmp_path, 0) / "database")) as database, database:
        database.execute(half)
    assert "a partial transaction" in (source.look(directory_of(tmp_path, 0)).problem or "")


@pytest.mark.parametrize(
    ("name", "settings", "durable", "consistent"),
    [
        # If the removal of the journal was not synced, SQLite rolls the last commit back.
        ("sqlite", "", False, True),
        ("sqlite", "synchronous=extra", True, True),
        ("sqlite", "journal_mode=wal", True, True),
        ("sqlite", "journal_mode=wal,synchronous=normal", False, True),
        ("sqlite", "synchronous=normal", False, False),
        ("sqlite", "journal_mode=wal,synchronous=off", False, False),
        ("sqlite", "journal_mode=off", False, False),
        ("maildir", "", False, True),
        ("maildir", "fsync_directory=yes", True, True),
        ("mariadb", "", True, True),
        ("mariadb", "innodb_flush_log_at_trx_commit=2", False, True),
        ("mariadb", "innodb_doublewrite=off", False, False),
        ("vm-image", "cache_mode=none", True, True),
        ("vm-image", "cache_mode=unsafe", False, True),
        ("vm-image", "format=qcow2,cache_mode=unsafe", False, False),
    ],
)
def test_what_applications_promise(name: str, settings: str, durable: bool, consistent: bool) -> None:
    source = runs(name, settings)
    lost = judged(source, RecoveredData(transactions=frozenset({1})), done=2)
    assert lost == ([(Kind.LOST_DATA, True)] if durable else [])
    assert judged(source, RecoveredData(problem="broken"), done=2) == [(Kind.DAMAGED, consistent)]


def test_a_file_that_is_only_appended_to_is_whole_where_no_unwritten_block_is_exposed() -> None:
    """ext2 can write the size before the data: then there are zeros in the middle of what was not synced."""
    given = {
        (name, appendfsync): durable("redis").contract(
            {"appendfsync": appendfsync}, promises(name, journal=journal)
        )
        for name, journal in (("xfs", True), ("ext2", False))
        for appendfsync in ("no", "always")
    }
    assert [(each.durable.given, each.consistent.given) for each in given.values()] == [
        (False, True), (True, True), (False, False), (True, False),
    ]  # fmt: skip


def test_what_was_not_promised_is_counted_and_what_had_not_begun_is_none_of_ours() -> None:
    source = runs("sqlite", "journal_mode=wal,synchronous=normal")
    verdict = source.judge(
        Progress(number=0, done=3, begun=4), RecoveredData(transactions=frozenset({1})), promises()
    )
    assert (verdict.lost, verdict.findings) == ({2, 3}, [])
    assert source.promised(Progress(number=0, done=3, begun=4), promises()) == set()
    assert judged(source, RecoveredData(transactions=frozenset({1, 2, 3})), done=2, begun=3) == []
    assert judged(source, RecoveredData(transactions=frozenset({1, 2, 3})), done=2) == [
        (Kind.RESURRECTED, True)
    ]


@pytest.mark.parametrize(
    "seen", [RecoveredData(transactions=frozenset({2})), RecoveredData(problem="broken")]
)
def test_each_transaction_that_is_missing_is_a_broken_promise(seen: RecoveredData) -> None:
    source = runs("sqlite", "journal_mode=wal")
    progress = Progress(number=0, done=5, begun=5)
    (finding,) = source.judge(progress, seen, promises()).findings
    assert finding.broken_steps == source.promised(progress, promises()) - seen.transactions


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("journal=wal", "unknown setting 'journal'"),
        ("journal_mode=fast", "invalid value 'fast' for journal_mode"),
        ("journal_mode", "invalid value ''"),
        ("=", "unknown setting ''"),
    ],
)
def test_settings_that_there_are_not(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_settings(durable("sqlite"), text)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "sqlite3"},
        {"name": 7},
        {"settings": {"journal_mode": "fast"}},
        {"runs": "x"},
        {"runs": 10**9},
        {"transactions": 0},
        {"seed": None},
    ],
)
def test_what_is_stored_is_checked(changed: dict[str, Any]) -> None:
    stored = runs("sqlite").stored()
    with pytest.raises((UsageError, ValueError, TypeError)):
        Runs.loaded({"application": {**stored["application"], **changed}})


def test_contents_differ() -> None:
    source = runs("sqlite")
    made = [source.contents(number) for number in range(1, 50)]
    assert len(set(made)) == len(made)
    assert {len(each) >= source_of_runs.SMALLEST_BYTES for each in made} == {True}


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--settings", "journal_mode=wal"], "'settings' needs 'application'"),
        (
            ["--application", "sqlite", "--sequence", "creat A"],
            "'sequence' cannot be combined with 'application'",
        ),
        (["--sector", "1000"], "--sector: '1000' is not a multiple of 512"),
        (["--sequence", "write n; wright a"], "--sequence: invalid step 'wright a'"),
        (["--scratch", "/not/there"], "--scratch: is not a directory"),
    ],
)
def test_what_does_not_go_together_is_said_before_anything_is_recorded(
    argv: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fslab.api.crash.check_root", lambda: None)
    done = CliRunner().invoke(app, ["crash", "test", "/nowhere", *argv])
    assert isinstance(done.exception, UsageError)
    assert told in str(done.exception)


@pytest.mark.parametrize(
    "own",
    [
        {
            "length": 2,
            "operations": Alphabet.METADATA,
            "skip": 3,
            "sequence": ("write n; sync", "mkdir n; sync"),
        },
        {"application": "sqlite", "settings": "journal_mode=wal", "transactions": 8},
    ],
)
def test_each_field_of_a_request_is_an_option(own: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[CrashRequest] = []
    monkeypatch.setattr("fslab.api.crash.check_root", lambda: None)

    def crash_test(request: CrashRequest) -> dict[str, Any]:
        asked.append(request)
        return {}

    monkeypatch.setattr("fslab.api.crash.crash_test", crash_test)
    wish = CrashRequest(
        directory=Path("/d"), sequences=7, threads=2, states=9, cuts=Cuts.ENDS, recoveries=0, repairs=0, sector="512",
        seed=4, scratch=Path("/s"), recordings=Path("/r"), **own,
    )  # fmt: skip
    words = [
        word
        for name, value in wish.model_dump(
            mode="json", exclude={"do", "directory"}, exclude_none=True
        ).items()
        for each in (value if isinstance(value, list) else [value])
        for word in (f"--{name}", str(each))
    ]
    done = CliRunner().invoke(app, ["crash", "test", "/d", *words])
    assert (asked, done.exception) == ([wish], None)


def test_a_step_that_the_file_system_refuses_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), "a")

    monkeypatch.setattr(recording, "server_of", lambda directory: directory)
    monkeypatch.setattr(Runs, "lay_out", refuse)
    with pytest.raises(FslabError, match="refuses a step 'a': Operation not supported"):
        recording.record(tmp_path, runs("sqlite"), tmp_path)


def test_git_runs_no_program_that_a_repository_names(tmp_path: Path) -> None:
    """A recording of another machine holds a repository of any contents: `git log` would run its ``gpg.program``."""
    source = runs("git")
    there, ran, program = tmp_path / "there", tmp_path / "ran", tmp_path / "program"
    there.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o700)
    git = ("git", "-C", str(there))
    source.application.lay_out(there, source.settings)
    with source.application.opened(there, source.settings) as commit:
        commit(1, b"x")
    assert source.look(there) == RecoveredData(transactions=frozenset({1}))
    head, _, message = proc.run([*git, "cat-file", "commit", "HEAD"]).stdout.partition("\n\n")
    (tmp_path / "signed").write_text(f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n\n{message}")
    signed = proc.run([*git, "hash-object", "-w", "-t", "commit", "--literally", str(tmp_path / "signed")])
    proc.run([*git, "update-ref", "HEAD", signed.stdout.strip()])
    config = there / ".git/config"
    written = config.read_text()
    config.write_text(f"{written}[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n")
    assert "other contents" in str(source.look(there).problem)
    config.write_text(written)
    outside = tmp_path / "outside"
    (there / ".git").rename(outside)
    for place, text in ((there / ".git", f"gitdir: {outside}"), (outside / "commondir", str(outside))):
        place.write_text(text)
        assert "names another" in str(source.look(there).problem)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (b"", None),
        (SETS, None),
        (SETS[:-1], None),
        (SETS[:-30], None),
        *((SETS + SETS[:cut], None) for cut in range(len(SETS))),
        (SETS + b"*1\r\n$8\r\nSHUTDOWN\r\n", "other contents"),
        (SETS.replace(b"$1\r\n7", b"$2\r\n7"), "other contents"),
        (SETS.replace(b"$3\r\nabc", b"$2\r\nabc") + SETS, "other contents"),
        (SETS + bytes(9), "other contents"),
        (b"REDIS0010" + SETS, "other contents"),
    ],
)
def test_redis_loads_no_log_with_other_commands(log: bytes, told: str | None, tmp_path: Path) -> None:
    """A server executes each command of its log: of another machine's, also one that loads a library."""
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir/appendonly.aof.1.incr.aof").write_bytes(log)
    manifest = tmp_path / "appendonlydir/appendonly.aof.manifest"
    assert "manifest" in str(_untrusted_data.redis_problem(tmp_path)), "is missing"
    manifest.write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    found = _untrusted_data.redis_problem(tmp_path)
    assert found is None if told is None else told in str(found)
    manifest.write_text("file ../x.aof seq 1 type i\n")
    assert "manifest" in str(_untrusted_data.redis_problem(tmp_path))
    (tmp_path / "appendonly.aof").touch()
    assert "another file" in str(_untrusted_data.redis_problem(tmp_path))


def test_sqlite_deletes_no_file_that_a_journal_names(tmp_path: Path) -> None:
    source = runs("sqlite")
    there, other = tmp_path / "there", tmp_path / "other"
    there.mkdir()
    other.write_text("precious")
    source.application.lay_out(there, source.settings)
    database, journal = there / "database", there / "database-journal"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO transactions VALUES (?, ?)", ((at, bytes(3000)) for at in range(200))
        )
        hot, changed = journal.read_bytes(), database.read_bytes()
    name = str(other).encode()
    sector, page = (int.from_bytes(hot[at : at + 4], "big") for at in (20, 24))
    numbers = ((1 << 30) // page + 1, len(name), sum(name))
    lock, length, checksum = (number.to_bytes(4, "big") for number in numbers)
    named = lock + name + length + checksum + hot[:8]
    database.write_bytes(changed)
    journal.write_bytes(hot + bytes(-len(hot) % sector) + named)
    assert "names another file" in str(source.look(there).problem)
    assert other.exists()
    journal.write_bytes(hot)
    assert source.look(there) == RecoveredData()


def test_sqlite_reads_no_view(tmp_path: Path) -> None:
    """A view can be endless."""
    source = runs("sqlite")
    source.application.lay_out(tmp_path, source.settings)
    with closing(sqlite3.connect(tmp_path / "database")) as connection:
        connection.execute("ALTER TABLE transactions RENAME TO former")
        connection.execute("CREATE VIEW transactions AS SELECT 1 AS number, x'00' AS contents")
        connection.commit()
    assert "other tables" in str(source.look(tmp_path).problem)


def test_postgresql_loads_and_runs_nothing_that_a_configuration_names() -> None:
    source = runs("postgresql")
    (tool,) = source.application.tools
    listed = proc.run([tools.require(tool), "--describe-config"]).stdout
    every = {line.partition("\t")[0] for line in listed.splitlines()}
    running = {name for name in every if re.search("librar|provider|_command$", name)}
    without = {
        "archive_command": "archive_mode",
        "archive_library": "archive_mode",
        "ssl_passphrase_command": "ssl",
    }
    own = _postgresql_server._OWN
    unset = {without.get(name, name) for name in running} - own.keys()
    assert unset == {"dynamic_library_path"}, "where libraries are looked for that functions name"
