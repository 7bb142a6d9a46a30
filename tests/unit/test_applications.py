"""Tests of measured applications: their commands, their figures, and that their checks find what is wrong."""

from __future__ import annotations

import errno
import json
import lzma
import os
import shutil
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from fslab import workloads
from fslab.applications import (
    REGISTRY,
    Driven,
    DriveRequest,
    SteppedApplication,
    _measured_run,
    _redis,
    durable,
    maildir,
    mariadb,
    postgresql,
    rocksdb,
    samba,
    sampled,
)
from fslab.applications.sqlite import Sqlite
from fslab.applications.untar import Untar
from fslab.cell import WorkloadSpec
from fslab.errors import ToolFailedError, ToolMissingError, ToolOutputError, UsageError
from fslab.filesystem_abilities import Ability
from fslab.registry import Registry
from fslab.system import mountinfo, namespaces, tools
from fslab.tracing import figures
from fslab.workloads import Job, ParsedWorkload, ToolOutput

JOB = Job(directory=Path("/work"), scratch=Path("/scratch"), seed=5)


def tool(name: str, **parameters: Any) -> ParsedWorkload[Any]:
    return workloads.parsed(WorkloadSpec(name="w", tool=name, parameters=parameters))


def request(tmp_path: Path, name: str, **load: Any) -> DriveRequest:
    parsed = REGISTRY.get(name).Load.model_validate(load)
    return DriveRequest(directory=tmp_path, scratch=tmp_path, load=parsed, run_s=parsed.run_s, seed=1)


def test_no_application_has_the_name_of_another_tool() -> None:
    files: Registry[Any] = Registry("workload", "fslab.workloads", workloads.Workload)
    assert not set(REGISTRY.names()) & set(files.names())


def test_trials_that_differ_in_durability_begin_with_the_same_files() -> None:
    strict, loose = (tool("postgresql", synchronous_commit=value).commands(JOB) for value in ("on", "off"))
    assert strict.prepare == loose.prepare
    assert strict.run != loose.run
    assert tool("postgresql", scale=3).commands(JOB).prepare != strict.prepare
    assert strict.prepared == ()


def test_a_run_in_turns_has_the_time_of_all() -> None:
    job = Job(directory=Path("/work"), scratch=Path("/scratch"), seed=5, turns=3)
    told = json.loads(tool("sqlite", runtime="2s").commands(job).run[-1])
    assert told["run_s"] == 2 * 3
    assert (told["turns"], told["operations"]) == (3, "transactions.log")
    assert json.loads(tool("sqlite", transactions=7).commands(job).run[-1])["run_s"] is None
    alone = tool("sqlite").commands(JOB)
    assert (alone.operations, json.loads(alone.run[-1])["operations"]) == (None, None)
    assert tool("untar").commands(job).operations is None, "steps are no operations"


def test_transactions_are_logged_with_their_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, each ends when the next one begins. Of very many, a sample is logged."""
    latencies = array("q", [4_000_000, 1_000, 2_000_000, 6_000_000])
    ends = [10_004_000_000, 10_004_001_000, 10_006_001_000, 10_012_001_000]
    driven = _measured_run.Driven(
        count=4, began_s=10.0, ended_s=10.1, latencies_ns=latencies, ended_ns=iter(ends)
    )
    driven.log(tmp_path / "log")
    found = list(figures.logged_operations((tmp_path / "log").read_text().splitlines()))
    assert [end for end, _ in found] == pytest.approx([end / 1e9 for end in ends])
    assert [took for _, took in found] == pytest.approx([took / 1e9 for took in latencies])
    monkeypatch.setattr(_measured_run, "_MOST_LOGGED", 2)
    replace(driven, ended_ns=ends).log(tmp_path / "log")
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_the_loop_knows_when_each_transaction_ended(tmp_path: Path) -> None:
    driven = _measured_run.repeated(request(tmp_path, "maildir", transactions=5), lambda _: None)
    ends = list(driven.ended_ns)
    assert len(ends) == 5
    assert ends == sorted(ends)
    assert ends[-1] / 1e9 == pytest.approx(driven.ended_s)


def test_a_pause_is_in_no_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that is synced in 4 ms, and in 8 ms: with pauses of 100 ms, the rate hides the difference."""
    now_ms = 0.0

    def passed(milliseconds: float) -> None:
        nonlocal now_ms
        now_ms += milliseconds

    monkeypatch.setattr(time, "monotonic_ns", lambda: round(now_ms * 1e6))
    monkeypatch.setattr(time, "sleep", lambda paused_s: passed(paused_s * 1000))
    drive = request(tmp_path, "log-file", transactions=3)
    for took_ms in (4, 8):
        now_ms = 0.0
        driven = _measured_run.repeated(drive, lambda _: passed(took_ms), 0.1)  # noqa: B023 - called at once
        assert list(driven.latencies_ns) == [took_ms * 10**6] * 3
        assert list(driven.ended_ns) == [(took_ms * n + 100 * (n - 1)) * 10**6 for n in (1, 2, 3)]
        assert driven.ended_s == pytest.approx(0.3 + 0.003 * took_ms)


def test_the_first_figure_of_a_log_with_pauses_is_its_latency() -> None:
    names = ["transaction_p50", "transaction_rate", "transaction_p99"]
    for interval, wanted in (("0s", names[1:]), ("10ms", names)):
        paced = tool("log-file", interval=interval)
        assert list(paced.headline()) == wanted
        assert [metric.name for metric in paced.metrics()][: len(wanted)] == wanted


def test_logs_of_pgbench(tmp_path: Path) -> None:
    """Client, transaction, microseconds, script, and the end by the day's clock."""
    now_s = time.time()
    (tmp_path / "pgbench.17").write_text(f"0 1 2500 0 {int(now_s)} 250000\n1 1 900 0 {int(now_s)} 750000\n")
    latencies, ended = postgresql._logged(tmp_path)
    assert list(latencies) == [2_500_000, 900_000]
    assert ended[1] - ended[0] == 500_000_000
    assert abs(ended[0] / 1e9 - time.monotonic()) < 60
    assert not list(tmp_path.iterdir())


def test_figures_of_a_document() -> None:
    document = {
        "version": 1, "transactions": 50, "began_s": 10.0, "ended_s": 12.0,
        "latencies_ns": {"50": 300, "95": 900, "99": None}, "problem": None,
    }  # fmt: skip
    read = tool("sqlite", runtime="2s").read(
        ToolOutput(stdout=json.dumps(document), stderr="", duration_s=4.0)
    )
    assert read.metrics == {
        "transaction_rate": 25.0, "transaction_p50": 300.0, "transaction_p95": 900.0, "transaction_p99": None,
    }  # fmt: skip
    assert (read.measured_s, read.asked_s, read.wrong) == (2.0, 2.0, {})
    assert read.windows["transaction_rate"] == read.part_windows["run"] == (10.0, 12.0)
    document["problem"] = "a row is missing"
    read = tool("sqlite").read(ToolOutput(stdout=json.dumps(document), stderr="", duration_s=4.0))
    assert read.wrong == {"check": ("a row is missing", "no problem")}


def test_programs_that_take_whole_seconds_run_for_no_less_than_was_asked(tmp_path: Path) -> None:
    """A run that is shorter by a tenth is invalid."""
    told: list[str] = []

    def sysbench(_: DriveRequest, *words: str) -> str:
        told.extend(words)
        return ""

    server: Any = SimpleNamespace(sysbench=sysbench)
    with pytest.raises(ToolFailedError, match="completed no transaction"):
        mariadb.measured(server, request(tmp_path, "mariadb", runtime="1400ms"))
    # The time of pgbench includes that in which its clients connect, and its rate does not.
    told += postgresql._words(request(tmp_path, "postgresql", runtime="1400ms"))
    told += postgresql._words(request(tmp_path, "postgresql", runtime="1400ms", clients=1000))
    told += rocksdb._words(request(tmp_path, "rocksdb", runtime="1400ms"))
    assert [word for word in told if word.startswith(("--time", "--duration"))] == [
        "--time=2",
        "--time=3",
        "--time=7",
        "--duration=2",
    ]


def test_the_histogram_of_sysbench(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sysbench 1.0.20. A bucket without a bar has few events. A sample has each n-th event."""
    said = """
       value  ------------- distribution ------------- count
       0.811 |*                                        2
       1.184 |                                         1
      86.002 |**************************************** 5
"""
    assert list(sampled(mariadb._buckets(said))) == [811_000] * 2 + [1_184_000] + [86_002_000] * 5
    monkeypatch.setattr(_measured_run, "SAMPLE", 4)
    assert list(sampled(mariadb._buckets(said))) == [811_000, 1_184_000, 86_002_000, 86_002_000]


def test_a_number_of_a_study_is_a_setting() -> None:
    parsed = tool("mariadb", innodb_flush_log_at_trx_commit=2, innodb_doublewrite=False).parameters
    assert parsed.settings() == {"innodb_flush_log_at_trx_commit": "2", "innodb_doublewrite": "off"}
    with pytest.raises(ValidationError, match="innodb_flush_log_at_trx_commit"):
        tool("mariadb", innodb_flush_log_at_trx_commit=3)


def test_rows_that_mariadb_has_lost_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    application, drive = durable("mariadb"), request(tmp_path, "mariadb", transactions=20, rows=100)
    for each in application.tools:
        if tools.find(each.program) is None:
            pytest.skip(f"needs {each.program}")
    application.prepare(drive)
    assert application.drive(drive).problem is None
    lossy = mariadb.measured

    def losing(server: mariadb.MariadbServer, drive: DriveRequest) -> Driven:
        server.say("DELETE FROM fslab.sbtest1 LIMIT 1")
        return lossy(server, drive)

    monkeypatch.setattr(mariadb, "measured", losing)
    assert application.drive(drive).problem == "sbtest1 has 99 rows, and not 100"


def test_a_percentile_needs_a_value_above_it() -> None:
    hundred = list(range(1, 101))
    assert [_measured_run.percentile(hundred, each) for each in (50, 95, 99)] == [50, 95, 99]
    assert _measured_run.percentile(hundred[:20], 95) == 19
    assert [_measured_run.percentile(hundred[:count], 95) for count in (0, 1, 19)] == [None] * 3


class LossyMaildir(maildir.Maildir):
    """Acknowledges the second message without delivering it."""

    @contextmanager
    def opened(self, directory: Path, settings: Any) -> Iterator[Callable[[int, bytes], None]]:
        with super().opened(directory, settings) as deliver:
            yield lambda number, contents: None if number == 2 else deliver(number, contents)


@pytest.mark.parametrize(
    ("application", "told"),
    [(maildir.Maildir(), None), (LossyMaildir(), "4 messages are there, and not the 5 that must be")],
)
def test_what_was_acknowledged_must_be_there(
    application: maildir.Maildir, told: str | None, tmp_path: Path
) -> None:
    drive = request(tmp_path, "maildir", transactions=5)
    application.prepare(drive)
    found = application.drive(drive)
    assert (found.count, len(found.latencies_ns), found.problem) == (5, 5, told)


@pytest.mark.parametrize(
    ("operation", "numbers"),
    [("deliver", range(1, 31)), ("read", range(1, 26)), ("serve", range(6, 31))],
)
def test_a_mailbox_has_the_messages_that_must_be_there(
    operation: str, numbers: range, tmp_path: Path
) -> None:
    """Of 25 messages before, and 5 transactions."""
    drive = request(tmp_path, "maildir", operation=operation, messages=25, transactions=5)
    application = maildir.Maildir()
    application.prepare(drive)
    copy = shutil.copytree(tmp_path, tmp_path / "copy")
    assert application.drive(drive).problem is None
    assert application.look(tmp_path, drive.contents).transactions == frozenset(numbers)
    (copy / "box/cur/99.fslab:2,S").write_bytes(maildir._message(99, drive.contents(99)))
    found = application.drive(replace(drive, directory=copy))
    assert found.problem == f"{len(numbers) + 1} messages are there, and not the {len(numbers)} that must be"


def test_a_recorder_keeps_the_newest_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = {"transactions": 31, "size": "600", "streams": 3, "segment": 2, "keep": 2, "sync": "interval"}
    application, drive = durable("recorder"), request(tmp_path, "recorder", **load)
    application.prepare(drive)
    assert application.drive(drive).problem is None
    there = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.glob("*/*")}
    numbers = {
        "0/000004": (25, 28), "0/000005": (31,), "1/000003": (20, 23), "1/000004": (26, 29), "2/000003": (21, 24),
        "2/000004": (27, 30),
    }  # fmt: skip
    assert there == {name: b"".join(map(drive.contents, held)) for name, held in numbers.items()}
    (tmp_path / "0/000005").write_bytes(b"")
    assert application.look(tmp_path, drive.contents).transactions == frozenset(range(1, 31))
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    application.prepare(drive)
    monkeypatch.setattr(Path, "unlink", lambda _: None)
    assert application.drive(drive).problem == "stream 0 has other segments than 4 to 5"


def test_a_scaled_recorder_deletes_as_many_segments() -> None:
    load = REGISTRY.get("recorder").Load.model_validate({"transactions": 6400})
    assert {key: each.value for key, each in load.scaled(0.25).items()} == {
        "transactions": 1600,
        "segment": 16,
    }
    assert load.space_bytes == 6400 * (256 << 10)
    assert load.model_copy(update={"transactions": None}).space_bytes == 8 * (16 + 1) * 64 * (256 << 10)


@pytest.mark.parametrize("operation", ["commit", "status", "checkout", "clone"])
def test_git_works_on_the_files_that_were_prepared(operation: str, tmp_path: Path) -> None:
    drive = request(tmp_path, "git", transactions=3, operation=operation, files=30, size="100")
    application = durable("git")
    application.prepare(drive)
    found = application.drive(drive)
    assert (found.count, found.problem) == (3, None)
    (tmp_path / "00000/0000007").write_text("changed")
    if operation == "status":
        with pytest.raises(ToolFailedError, match="the working tree has changes"):
            application.drive(drive)


def test_sqlite_counts_the_rows_of_batches_and_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = request(tmp_path, "sqlite", transactions=4, batch=3, rows=10, journal_mode="wal")
    application = Sqlite()
    application.prepare(drive)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path, copy, ignore=lambda *_: ["copy"])
    assert application.drive(drive).problem is None
    with closing(sqlite3.connect(tmp_path / "database")) as database:
        assert database.execute("SELECT count(*), max(number) FROM transactions").fetchone() == (22, 22)

    def without_last(drive: DriveRequest, transaction: Callable[[int], object]) -> Driven:
        transaction(1)
        return Driven(count=2, began_s=0, ended_s=1, latencies_ns=array("q", [1, 1]))

    monkeypatch.setattr("fslab.applications.sqlite.repeated", without_last)
    lossy = application.drive(request(copy, "sqlite", batch=3, rows=10, journal_mode="wal"))
    assert lossy.problem == "13 rows are there, and not the 16 that must be"


STEPPED: dict[str, dict[str, Any]] = {
    "untar": {"files": 40},
    "rsync": {"files": 40},
    "restic": {"files": 12, "size": "1k"},
    "compile": {"files": 20, "jobs": 2},
    "packages": {"files": 40, "packages": 3},
    "containers": {"files": 100, "layers": 3, "appends": 7},
}


def needs_overlay(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: another user's process would enter a namespace")
    try:
        namespaces.try_overlay(tmp_path / "attempt")
    except OSError as error:
        pytest.skip(f"needs an overlayfs: {error}")


def stepped(tmp_path: Path, name: str, **load: Any) -> tuple[SteppedApplication, DriveRequest]:
    application = REGISTRY.get(name)
    assert isinstance(application, SteppedApplication)
    for tool in application.tools:
        if tools.find(tool.program) is None:
            pytest.skip(f"needs {tool.program}")
    if Ability.OVERLAY in application.abilities:
        needs_overlay(tmp_path)
    return application, request(tmp_path, name, **STEPPED[name], **load)


def worked(tmp_path: Path, name: str, **load: Any) -> tuple[SteppedApplication, DriveRequest]:
    """Return an application that has done its steps, without a problem."""
    application, drive = stepped(tmp_path, name, **load)
    application.prepare(drive)
    assert application.drive(drive).problem is None
    return application, drive


def test_steps_have_all_applications_that_are_no_transactions() -> None:
    assert {name for name, each in REGISTRY if isinstance(each, SteppedApplication)} == {*STEPPED}


@pytest.mark.parametrize("name", STEPPED)
def test_all_steps_are_done_in_order_and_their_figures_are_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application, drive = stepped(tmp_path, name)
    application.prepare(drive)
    document = application.drive(drive).document()
    assert capsys.readouterr().err == 2 * len(drive.load.known) * "\n", "samples where steps begin and end"
    assert document["problem"] is None
    assert [step["name"] for step in document["steps"]] == list(drive.load.known)
    times = [step[at] for step in document["steps"] for at in ("began_s", "ended_s")]
    assert times == sorted(times)
    output = ToolOutput(stdout=json.dumps(document), stderr="", duration_s=9.0)
    parsed = tool(name, **STEPPED[name])
    read = parsed.read(output)
    assert {*read.metrics} == {metric.name for metric in parsed.metrics()} == {*read.windows}
    assert {*read.part_windows} == {*read.parts_s} == {*drive.load.known}
    assert read.measured_s == pytest.approx(sum(read.parts_s.values()))
    assert (read.asked_s, read.wrong) == (None, {})
    document["problem"] = "a file is missing"
    wrong = parsed.read(replace(output, stdout=json.dumps(document))).wrong
    assert wrong == {"check": ("a file is missing", "no problem")}


@pytest.mark.parametrize("name", STEPPED)
def test_a_step_of_its_own_finds_what_those_before_it_have_made(name: str, tmp_path: Path) -> None:
    """The last step, which needs all others."""
    step = tool(name).parameters.known[-1]
    application, drive = stepped(tmp_path, name, steps=step)
    application.prepare(drive)
    found = application.drive(drive)
    assert [each.name for each in found.steps] == [step]
    assert found.problem is None


def test_a_restored_file_with_other_contents_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "restic", steps="restore")
    (tmp_path / "restored/tree/0/7").write_bytes(b"other")
    assert application.problem(drive, "restore") == "the restored file 0/7 has other contents than the tree"


def test_damage_of_a_tree_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "untar", steps="unpack")
    path = tmp_path / "tree/000/0/1/000017.c"
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert application.problem(drive, "unpack") == "000/0/1/000017.c has other contents"
    path.unlink()
    assert application.problem(drive, "unpack") == "39 of 40 files are there"
    path.with_name("other").write_bytes(whole)
    assert application.problem(drive, "unpack") == "000/0/1/000017.c is missing"
    assert application.problem(drive, "remove") == "tree is still there"


def test_damage_of_a_copy_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "rsync")
    assert application.problem(drive, "unchanged") == "000/0/0/000000.c has other contents", "it has changed"
    shutil.copy(tmp_path / "copy/000/0/0/000001.c", tmp_path / "copy/000/0/0/000002.c")
    assert application.problem(drive, "changed") == "000/0/0/000002.c has other contents"


def test_damage_of_unpacked_packages_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "packages", steps="unpack,upgrade")
    assert application.problem(drive, "unpack") == "000/0/0/000000.c has other contents", "it was replaced"
    (tmp_path / "root/srv/fslab/000/0/1/000020.c").unlink()
    assert application.problem(drive, "upgrade") == "39 of 40 files are there"
    assert application.problem(drive, "remove") == "srv/fslab is still there"


def test_a_program_without_one_of_its_sources_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "compile", steps="build")
    assert application.problem(drive, "rebuild") == "unit_000000.c is not in the program as it was compiled"
    assert "is still there" in (application.problem(drive, "clean") or "")
    with pytest.raises(ToolOutputError, match="make compiled 0 sources instead of 21"):
        application.perform(drive, "build")
    program = tmp_path / "program"
    program.write_bytes(program.read_bytes().replace(b"fslab-unit-000007-0", b"fslab-unit-000008-0"))
    assert application.problem(drive, "build") == "unit_000007.c is not in the program as it was compiled"


@pytest.mark.parametrize(
    ("name", "steps", "made", "changed"),
    [
        ("compile", ("build", "rebuild"), "program", "part_0000/unit_000000.c"),
        ("restic", ("backup", "changed"), "tree/0/0", "tree/0/0"),
    ],
)
def test_a_change_is_later_than_what_was_made(
    name: str, steps: tuple[str, str], made: str, changed: str, tmp_path: Path
) -> None:
    """ext2 with inodes of 128 bytes keeps times in whole seconds, and the programs go by them. Here, what was made is
    of the next second."""
    application, drive = worked(tmp_path, name, steps=steps[0])
    made_ns = time.time_ns() + 1_000_000_000
    os.utime(tmp_path / made, ns=(made_ns, made_ns))
    application.before(drive, steps[1])
    assert (tmp_path / changed).stat().st_mtime_ns > made_ns
    application.perform(drive, steps[1])
    if name == "compile":
        assert application.problem(drive, steps[1]) is None


def test_damage_of_an_image_is_found(tmp_path: Path) -> None:
    application, drive = worked(tmp_path, "containers", steps="load")
    whiteout = next(path for path in (tmp_path / "layers/02").rglob("*.c") if path.is_char_device())
    whiteout.unlink()
    assert application.problem(drive, "load") == "101 of 100 files are there"
    namespaces.white_out(whiteout)
    assert application.problem(drive, "load") is None
    replaced = next(path for path in (tmp_path / "layers/03").rglob("*.c") if path.is_file())
    replaced.write_bytes(replaced.read_bytes()[:-1])
    assert "has other contents" in (application.problem(drive, "load") or "")
    assert application.problem(drive, "prune") == "layers is still there"


def test_too_many_namespaces_are_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unshare(flags: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fslab.system.syscalls.unshare", unshare)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(PermissionError, match=r"needs Linux 5\.11 and user namespaces"):
        namespaces.try_overlay(tmp_path / "attempt")
    assert list(tmp_path.iterdir()) == []


def test_a_container_changes_only_its_own_copies(tmp_path: Path) -> None:
    application, drive = stepped(tmp_path, "containers", steps="write")
    application.prepare(drive)
    layers = {path: path.read_bytes() for path in (tmp_path / "layers").rglob("*.c") if path.is_file()}
    assert application.drive(drive).problem is None
    copies = [path for path in (tmp_path / "container/upper").rglob("*.c") if path.is_file()]
    assert len(copies) == drive.load.appended == 7
    assert {path: path.read_bytes() for path in layers} == layers
    assert [each for each in mountinfo.mounted() if each.target.is_relative_to(tmp_path)] == []
    copies[0].write_bytes(copies[0].read_bytes()[:-1])
    assert "has other contents" in (application.problem(drive, "write") or "")


class Damaging(Untar):
    """Loses a file before the step that removes the tree."""

    def before(self, drive: DriveRequest, step: str) -> None:
        if step == "walk":
            (drive.directory / "tree/000/0/1/000017.c").unlink()


def test_what_steps_have_made_is_checked_before_it_is_removed(tmp_path: Path) -> None:
    _, drive = stepped(tmp_path, "untar")
    Damaging().prepare(drive)
    assert Damaging().drive(drive).problem == "39 of 40 files are there"


def test_a_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    application, drive = stepped(tmp_path, "untar")
    assert {tool.program for tool in application.tools} <= {each.program for each in tool("untar").tools()}
    found = tools.find
    monkeypatch.setattr("fslab.system.tools.find", lambda name: None if name == "tar" else found(name))
    with pytest.raises(ToolMissingError, match="'tar' is not installed"):
        application.prepare(drive)


def test_a_missing_server_is_named_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tools.find
    monkeypatch.setattr("fslab.system.tools.find", lambda name: None if name == "smbd" else found(name))
    with (
        pytest.raises(ToolMissingError, match="'smbd' is not installed") as told,
        samba.connected(tmp_path, {}),
    ):
        pass
    assert "samba" in str(told.value.hint)


def test_power_cuts_are_offered_for_what_promises_something() -> None:
    with pytest.raises(ValidationError, match="the power of 'untar' cannot be cut: it promises nothing"):
        tool("crash", application="untar")
    with pytest.raises(UsageError) as told:
        durable("untar")
    assert "sqlite" in str(told.value.hint)
    assert "untar" not in str(told.value.hint)


@pytest.mark.parametrize(
    ("test", "count", "sums", "told"),
    [
        ("tpcb-like", 9, "200000|9|-5|-5|-5|-5", None),
        ("tpcb-like", 9, "200000|9|-5|-5|-4|-5", "the sums of the tables differ: [-5, -5, -4, -5]"),
        ("tpcb-like", 9, "200000|8|-5|-5|-5|-5", "8 rows of 9 transactions are there"),
        ("simple-update", 9, "200000|9|7|7|0|0", None),
        ("select-only", 9, "200000|0|0|0|0|0", None),
        ("select-only", 9, "199999|0|0|0|0|0", "199999 of 200000 accounts are there"),
    ],
)
def test_the_sums_of_pgbench(test: str, count: int, sums: str, told: str | None) -> None:
    load = postgresql.PgbenchLoad.model_validate({"test": test, "scale": 2})
    assert postgresql.difference(load, count, sums.split("|")) == told


DB_BENCH = """\
overwrite    :    1080.780 micros/op 1844 ops/sec 2.167 seconds 400 operations;    1.8 MB/s
Microseconds per write:
Count: 400 Average: 1082.3799  StdDev: 1716.72
Percentiles: P50: 445.84 P75: 774.00 P99: 9036.50 P99.9: 15603.20 P99.99: 18686.00
------------------------------------------------------
[       0,       1 ]      100  25.000%  25.000% #####
(       1,       2 ]      200  50.000%  75.000% ##########
(     110,     170 ]      100  25.000% 100.000% #####

"""


def test_the_histogram_of_db_bench() -> None:
    latencies = sorted(sampled(rocksdb._buckets(DB_BENCH)))
    assert [_measured_run.percentile(latencies, each) for each in (50, 75)] == [1498, 1998]
    assert (len(latencies), latencies[-1]) == (400, 169_700)
    many = list(sampled(rocksdb._buckets(DB_BENCH.replace("00  ", "00000  "))))
    assert len(many) == _measured_run.SAMPLE
    assert _measured_run.percentile(many, 50) == pytest.approx(1500, abs=1)
    assert list(sampled(rocksdb._buckets(""))) == []


@pytest.mark.parametrize(
    ("operation", "there", "size", "told"),
    [
        ("overwrite", 1000, 1024, None),
        ("overwrite", 999, 1024, "999 of 1000 keys are there"),
        ("overwrite", 1000, 1000, "values of another size than 1024"),
        ("fillrandom", 632, 1024, None),
        ("fillrandom", 450, 1024, "450 keys are there, but 1000 writes of random ones make 632"),
        ("fillrandom", 1000, 1024, "1000 keys are there, but 1000 writes of random ones make 632"),
    ],
)
def test_the_keys_of_rocksdb(operation: str, there: int, size: int, told: str | None) -> None:
    load = rocksdb.RocksdbLoad.model_validate({"operation": operation, "keys": 1000})
    counted = f"Keys in range: {there}\nCount: {there} Average: 1.0\nMin: {size}  Median: 1  Max: 1024\n"
    found = rocksdb.problem(load, 1000, counted)
    assert found is None if told is None else told in str(found)
    assert rocksdb.problem(load, 1000, "") is not None


class Replies:
    """A connection to a server that has what was set, except for one key."""

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self._values = values

    def call(self, *commands: Any) -> list[Any]:
        return [
            len(self._values) if words == [b"DBSIZE"] else [self._values.get(key) for key in words[1:]]
            for words in commands
        ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, None),
        ({b"key:1:0": b"2 "}, "key:1:0 has another value than it was set to last"),
        ({b"key:9:0": b""}, "5 of 4 keys are there"),
    ],
)
def test_each_key_has_the_value_that_it_was_set_to_last(
    changed: dict[bytes, bytes], told: str | None, tmp_path: Path
) -> None:
    keys = _redis.Keys(request(tmp_path, "redis", clients=2, keys=5))
    assert (keys.each, keys.clients) == (2, 2)
    values: dict[bytes, bytes] = {}
    for client, end in enumerate((2, 5)):
        values.update(keys.set(client, number)[1:] for number in range(end))
    assert keys.difference(Replies(values | changed), (2, 5)) == told  # type: ignore[arg-type]


def test_a_bare_on_is_the_word() -> None:
    assert tool("postgresql", fsync=False, synchronous_commit=True).parameters.settings() == {
        "synchronous_commit": "on", "fsync": "off", "full_page_writes": "on",
    }  # fmt: skip
    assert tool("maildir", fsync_directory=True).parameters.fsync_directory == "yes"


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        ("sqlite", {"runtime": "1s", "transactions": 5}, "'runtime' and 'transactions' cannot be combined"),
        ("sqlite", {"runtime": "0s"}, "must be greater than zero"),
        ("sqlite", {"operation": "read", "batch": 2}, "'batch' is not supported by operation: read"),
        ("postgresql", {"max_wal_size": "16m"}, "'max_wal_size' must be at least 32m"),
        ("postgresql", {"synchronous_commit": "maybe"}, "synchronous_commit"),
        ("untar", {"steps": "unpak"}, "no step 'unpak': did you mean 'unpack'"),
        ("untar", {"steps": "remove,unpack"}, "must be in this order, each once: unpack,walk,remove"),
        ("untar", {"runtime": "1s"}, "runtime"),
        ("redis", {"keys": 49}, "'keys' must be at least 50"),
        ("containers", {"files": 100, "appends": 101}, "'appends' must not be more than 'files'"),
        ("vm-image", {"size": "1000"}, "'size' must be a multiple of 512, and at most 64m"),
        ("vm-image", {"size": "4k", "image": "2k"}, "and at most 2k"),
        ("vm-image", {"cluster_size": "64k"}, "'cluster_size' is not supported by format: raw"),
        ("vm-image", {"cluster_size": "96k", "format": "qcow2"}, "must be a power of two from 4k to 2m"),
        ("vm-image", {"operation": "read", "batch": 2}, "'batch' is not supported by operation: read"),
    ],
)
def test_mistakes_in_a_study(name: str, parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        tool(name, **parameters)


@pytest.mark.parametrize("size", [512, 1 << 10, 4096, 5000, 16 << 10, 60_000])
def test_contents_do_not_repeat_in_what_a_file_system_compresses_at_once(size: int, tmp_path: Path) -> None:
    drive = DriveRequest(
        directory=tmp_path, scratch=tmp_path, load=SimpleNamespace(size_bytes=size), run_s=None, seed=1
    )
    written = b"".join(drive.contents(number) for number in range((512 << 10) // size))
    assert len(lzma.compress(written)) > len(written)


@pytest.mark.parametrize(("size", "different"), [(64 << 10, 61), (8 << 20, 7), (32 << 20, 2)])
def test_contents_take_bounded_memory(size: int, different: int, tmp_path: Path) -> None:
    drive = DriveRequest(
        directory=tmp_path, scratch=tmp_path, load=SimpleNamespace(size_bytes=size), run_s=None, seed=1
    )
    assert len({id(drive.contents(number)) for number in range(100)}) == different
