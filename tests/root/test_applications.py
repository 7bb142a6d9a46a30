"""Tests of measured applications: small real runs on a RAM disk, and what is left of those that fail."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests import made
from tests.directories import SESSION
from tests.limits import LIMIT_S

from fslab import workloads
from fslab.applications import REGISTRY, durable, samba
from fslab.applications import _postgresql_server as server
from fslab.applications import _servers as servers
from fslab.errors import FailureClass, ToolFailedError, UnsupportedError
from fslab.storage import Workspace
from fslab.system import mounts, proc, tools, users
from fslab.trial_record import Severity, Status, TrialRecord

SMALL_SERVER = {"scale": 1, "clients": 2, "max_wal_size": "32m", "shared_buffers": "16m"}
FEW_KEYS = {"clients": 4, "keys": 400}
SMALLEST: list[tuple[str, dict[str, Any]]] = [
    ("sqlite", {"transactions": 200}),
    ("sqlite", {"transactions": 50, "journal_mode": "wal", "batch": 20, "rows": 100}),
    ("sqlite", {"operation": "read", "transactions": 200, "rows": 500}),
    ("git", {"transactions": 20, "core.fsync": "all"}),
    ("git", {"transactions": 3, "operation": "clone", "files": 50}),
    ("maildir", {"transactions": 200, "fsync_directory": "yes"}),
    ("log-file", {"transactions": 200, "sync": "fdatasync", "segment": "16k"}),
    ("recorder", {"transactions": 200, "size": "4k", "segment": 4, "keep": 3, "sync": "segment"}),
    ("vm-image", {"transactions": 200, "image": "8m", "cache_mode": "none"}),
    (
        "vm-image",
        {"transactions": 50, "batch": 4, "image": "8m", "format": "qcow2", "preallocation": "metadata"},
    ),
    (
        "vm-image",
        {"transactions": 200, "operation": "read", "image": "8m", "format": "qcow2", "cluster_size": "4k"},
    ),
    ("redis", {"transactions": 2000, "appendfsync": "always", **FEW_KEYS}),
    ("redis", {"runtime": "1s", **FEW_KEYS}),
    ("rocksdb", {"transactions": 2000, "keys": 1000, "sync": "yes"}),
    ("rocksdb", {"transactions": 2000, "keys": 1000, "operation": "overwrite", "threads": 2}),
    ("rocksdb", {"transactions": 2000, "keys": 1000, "operation": "readwhilewriting"}),
    ("mariadb", {"transactions": 200, "rows": 500, "log_file_size": "8m"}),
    ("samba", {"transactions": 50, "sync_always": "yes", "strict_allocate": "yes"}),
    ("samba", {"transactions": 50, "operation": "serve", "files": 50, "use_sendfile": "yes"}),
    ("samba", {"transactions": 20, "operation": "list", "files": 50}),
    ("postgresql", {"transactions": 400, **SMALL_SERVER}),
    ("postgresql", {"runtime": "1s", "test": "select-only", **SMALL_SERVER}),
]


STEPS: list[Any] = [
    ("untar", {"files": 300}),
    ("untar", {"files": 300, "steps": "walk"}),
    ("rsync", {"files": 300}),
    ("restic", {"files": 100, "size": "4k"}),
    # Half a second of CPU time for each command. tests/unit/test_applications.py has such a step of it, too.
    pytest.param("restic", {"files": 100, "size": "4k", "steps": "unchanged,prune"}, marks=pytest.mark.slow),
    ("compile", {"files": 20}),
    ("packages", {"files": 100, "packages": 4}),
    ("containers", {"files": 100, "layers": 2, "appends": 9}),
    ("containers", {"files": 100, "layers": 2, "appends": 9, "steps": "start"}),
]


FILESYSTEMS = ["ext4", *(pytest.param(each, marks=pytest.mark.slow) for each in ("xfs", "btrfs"))]


def skipped_without(tool: str) -> None:
    for program in REGISTRY.get(tool).tools:
        if tools.find(program.program) is None:
            pytest.skip(f"needs {program.program}: {program.remedy}")


def run(
    workspace: Workspace,
    tool: str,
    parameters: dict[str, Any],
    *,
    size: str | None = None,
    limit_s: float = LIMIT_S,
    filesystem: str = "ext4",
    mkfs_options: str = "",
) -> TrialRecord:
    skipped_without(tool)
    size = size or {"ext4": "160m"}.get(filesystem, "400m")
    stack = made.spec(filesystem, options={"size": size, "room": size}, mkfs_options=mkfs_options)
    return made.run(workspace, made.cell(stack, tool, parameters, time_limit_s=limit_s))


def processes(workspace: Workspace, word: str = "") -> list[int]:
    """Return the processes of applications in this workspace: they work in it, or name it in their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line, place = (path / "cmdline").read_bytes(), str((path / "cwd").readlink())
        except OSError:
            continue
        if str(workspace.runtime) in line.decode("utf-8", "replace") + place and word.encode() in line:
            found.append(int(path.name))
    return [pid for pid in found if pid != os.getpid()]


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(
    ("tool", "parameters"), SMALLEST, ids=lambda each: each if isinstance(each, str) else ""
)
def test_each_application_is_measured_and_checked(
    tool: str, parameters: dict[str, Any], filesystem: str, workspace: Workspace
) -> None:
    record = run(workspace, tool, parameters, filesystem=filesystem)
    assert record.status is Status.OK, (record.error, record.validity)
    values = {name: value.value for name, value in record.metrics.items()}
    rate, middle = values["transaction_rate"], values["transaction_p50"]
    assert rate is not None
    assert middle is not None
    # Little's law: at most `clients` transactions are in flight, and half of them take at least the median.
    assert rate * middle / 2e9 <= parameters.get("clients", 4)
    assert [each for each in record.validity if each.severity is Severity.INVALID] == []
    assert processes(workspace) == []


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(
    ("tool", "parameters"), STEPS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_each_step_is_timed_and_checked(
    tool: str, parameters: dict[str, Any], filesystem: str, workspace: Workspace
) -> None:
    record = run(workspace, tool, parameters, filesystem=filesystem)
    assert record.status is Status.OK, (record.error, record.validity)
    assert [each for each in record.validity if each.severity is Severity.INVALID] == []
    known = workloads.parsed(record.cell.workload).parameters.chosen
    values = {name: value.value for name, value in record.metrics.items()}
    assert [*values] == [f"{step}_{what}" for what in ("time", "rate") for step in known]
    for step in known:
        part, seconds, rate = record.provenance.parts[step], values[f"{step}_time"], values[f"{step}_rate"]
        assert part.seconds == pytest.approx(seconds)
        assert seconds
        assert rate
        assert seconds * rate == pytest.approx(round(seconds * rate)), "a number of files"
    assert processes(workspace) == []


@pytest.mark.parametrize(
    ("tool", "parameters", "size"),
    [
        ("sqlite", {"transactions": 20_000, "size": "16k", "synchronous": "off"}, "64m"),
        ("postgresql", {"transactions": 400, **SMALL_SERVER}, "80m"),
        ("mariadb", {"runtime": "60s", "rows": 20_000, "test": "oltp_write_only"}, "160m"),
        ("untar", {"files": 3000}, "64m"),
        ("rocksdb", {"transactions": 9000, "size": "16k"}, "64m"),
        ("redis", {"transactions": 9000, "size": "16k", **FEW_KEYS}, "64m"),
        ("redis", {"transactions": 9000, "size": "16k", "appendfsync": "always", **FEW_KEYS}, "64m"),
        ("rsync", {"files": 3000}, "64m"),
        ("samba", {"transactions": 2000}, "64m"),
        ("containers", {"files": 3000}, "96m"),
        ("recorder", {"transactions": 2000}, "64m"),
        ("git", {"operation": "clone", "files": 1000, "size": "32k", "transactions": 2}, "64m"),
        ("maildir", {"transactions": 9000, "size": "16k"}, "64m"),
        ("log-file", {"transactions": 9000, "size": "16k"}, "64m"),
        ("restic", {"files": 200}, "64m"),
        ("compile", {"files": 120}, "8m"),
        ("packages", {"files": 2000}, "64m"),
        ("vm-image", {"transactions": 2000, "image": "256m", "size": "64k"}, "64m"),
        ("vm-image", {"transactions": 2000, "image": "256m", "size": "64k", "format": "qcow2"}, "64m"),
        ("vm-image", {"transactions": 2000, "image": "256m", "preallocation": "falloc"}, "64m"),
    ],
)
def test_a_full_disk_is_named(tool: str, parameters: dict[str, Any], size: str, workspace: Workspace) -> None:
    record = run(workspace, tool, parameters, size=size)
    assert (record.status, record.failure) == (Status.FAILED, FailureClass.NO_SPACE), record.error
    assert processes(workspace) == []


@contextmanager
def killed_when(happens: Callable[[], object], victims: Callable[[], list[int]]) -> Iterator[list[int]]:
    """Kill processes as soon as something happens in the block. Yield those that were killed."""
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 60
        while not killed and (began := time.monotonic()) < until:
            if happens():
                for pid in victims():
                    with suppress(ProcessLookupError):  # it ended after it was listed
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
            time.sleep(3 * (time.monotonic() - began))  # a quarter of a CPU: the run needs the others

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        killer.join()


@pytest.mark.parametrize(
    ("tool", "parameters", "word", "told"),
    [
        ("postgresql", SMALL_SERVER, "postgres\0-D", "PostgreSQL was ended by signal 9"),
        ("postgresql", SMALL_SERVER, "_process\0drive", "signal 9"),
        ("redis", FEW_KEYS, "redis-server\0", "Redis was ended by signal 9"),
        ("redis", FEW_KEYS, "_process\0drive", "signal 9"),
        ("rocksdb", {}, "db_bench\0--db", "db_bench was ended by signal 9"),
        ("rocksdb", {}, "_process\0drive", "signal 9"),
        ("packages", {"files": 1000}, "dpkg\0", "signal 9"),
        ("git", {}, "_process\0drive", "signal 9"),
        ("restic", {"files": 1000}, "restic\0--repo", "signal 9"),
        ("compile", {"files": 500}, "make\0", "signal 9"),
        ("compile", {"files": 500}, "_process\0drive", "signal 9"),
        ("mariadb", {"rows": 500}, "mariadbd\0", "MariaDB was ended by signal 9"),
        ("samba", {}, "smbd\0--configfile", "smbd was ended by signal 9"),
        ("samba", {}, "_process\0drive", "signal 9"),
        ("vm-image", {"image": "8m"}, "qemu-io\0-f", "qemu-io was ended by signal 9"),
        ("vm-image", {"image": "8m"}, "_process\0drive", "signal 9"),
        *(
            pytest.param(tool, parameters, "_process\0drive", "signal 9", marks=pytest.mark.slow)
            for tool, parameters in (
                ("packages", {"files": 1000}),
                ("restic", {"files": 1000}),
                ("mariadb", {"rows": 500}),
            )
        ),
    ],
)
def test_nothing_is_left_of_what_is_killed(
    tool: str, parameters: dict[str, Any], word: str, told: str, workspace: Workspace
) -> None:
    """Either the program or the process that drives it is killed: the trial fails, and the file system is unmounted."""
    running = {
        "postgresql": "--builtin",
        "redis": "everysec",
        "rocksdb": "--benchmarks",
        "packages": "--unpack",
        "git": "_process\0drive",  # each command of git is over before it is seen
        "restic": "backup\0",
        "compile": "cc1\0",
        "vm-image": "writeback",
        "mariadb": "\0run\0",  # of sysbench; its "prepare" may have ended, and its server not yet
        "samba": "smbclient\0",
    }[tool]
    runtime = {} if tool in {"packages", "restic", "compile"} else {"runtime": "60s"}
    with killed_when(lambda: processes(workspace, running), lambda: processes(workspace, word)) as killed:
        record = run(workspace, tool, {**runtime, **parameters})
    assert killed
    assert record.status is Status.FAILED
    assert told in str(record.error)
    assert processes(workspace) == []


def test_a_container_that_is_killed_does_not_stay_mounted(workspace: Workspace) -> None:
    """If its overlayfs were still mounted, the stack below it could not be unmounted."""
    parameters = {"files": 3000, "layers": 1, "appends": 3000, "steps": "write"}

    def copies_up() -> bool:
        return any(workspace.runtime.glob("mnt/*/application/container/upper/tree/*"))

    with killed_when(copies_up, lambda: processes(workspace, "_process\0drive")) as killed:
        record = run(workspace, "containers", parameters)
    assert killed
    assert record.status is Status.FAILED
    assert "signal 9" in str(record.error)
    assert mounts.at(workspace.runtime / "mnt") is None


def test_a_file_system_that_cannot_be_below_an_overlayfs_is_named(workspace: Workspace) -> None:
    record = run(workspace, "containers", {"files": 100}, mkfs_options="-O ^filetype")
    assert record.failure == FailureClass.UNSUPPORTED, record.error
    assert "it needs overlayfs on top, which fails on ext4 here" in str(record.error)
    assert "d_type" in str(record.error)


@pytest.mark.parametrize(
    ("application", "load"),
    [
        ("containers", {"files": 100, "layers": 2, "appends": 9}),
        ("samba", {"transactions": 20, "operation": "serve", "files": 20}),
    ],
)
def test_another_user_needs_only_namespaces_of_the_process(application: str, load: dict[str, Any]) -> None:
    """To mount an overlayfs, and to have a loopback that nothing else reaches."""
    skipped_without(application)
    # Another user cannot enter the directories of a session.
    with tempfile.TemporaryDirectory(prefix=f"{SESSION}{os.getpid()}-", dir="/var/tmp") as place:
        os.chown(place, users.NOBODY, users.NOBODY)
        request = {
            "application": application, "directory": f"{place}/application", "scratch": place, "seed": 1,
            "load": load, "run_s": None, "turns": 1, "operations": None,
        }  # fmt: skip
        for what in ("prepare", "drive"):
            argv = [
                sys.executable,
                "-P",
                "-B",
                "-m",
                "fslab.applications._process",
                what,
                json.dumps(request),
            ]
            done = proc.run(users.unprivileged(argv), cwd=Path("/"))
    document = json.loads(done.stdout)
    assert document["problem"] is None
    if application == "containers":
        assert [step["name"] for step in document["steps"]] == ["load", "start", "write", "prune"]


def test_a_run_that_takes_too_long_is_ended_with_its_server(workspace: Workspace) -> None:
    record = run(workspace, "postgresql", {"runtime": "60s", **SMALL_SERVER}, limit_s=8)
    assert record.failure == FailureClass.TIMED_OUT, record.error
    assert processes(workspace) == []


def test_a_cluster_of_another_version_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    directory.mkdir()
    durable("postgresql").lay_out(directory, {})
    (directory / "PG_VERSION").write_text("9.4\n")
    with pytest.raises(ToolFailedError, match="incompatible with server"), server.running(directory, {}):
        pass


def test_a_git_that_would_ignore_a_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git ignores keys that it does not know: figures of the default would be those of ``core.fsync: all``."""
    old, directory = tmp_path / "git", tmp_path / "repository"
    old.write_text('#!/bin/sh\nfor word; do [ "$word" != help ] || exit 0; done\nexec git "$@"\n')
    old.chmod(0o700)
    directory.mkdir()
    monkeypatch.setattr("fslab.applications.git.require", lambda _: str(old))
    durable("git").lay_out(directory, {"core.fsync": "default"})
    with pytest.raises(UnsupportedError, match=r"does not know 'core\.fsync'"):
        durable("git").lay_out(directory, {"core.fsync": "all"})


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (("false",), "protocol negotiation failed: NT_STATUS_CONNECTION"),
        pytest.param(("sleep", "infinity"), None, marks=pytest.mark.slow),  # smbclient waits for 20 s
    ],
)
def test_a_file_server_that_does_not_begin_is_tried_again_or_told_about(
    first: tuple[str, ...], told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped_without("samba")
    directory, real, others = tmp_path / "exported", servers.ending_with_parent, [first]
    directory.mkdir()
    servers.own_directory(directory)

    def replaced(*argv: str, by: signal.Signals) -> list[str]:
        return real(*(others.pop() if others and argv[0].endswith("smbd") else argv), by=by)

    monkeypatch.setattr(servers, "ending_with_parent", replaced)
    with ExitStack() as undo:
        if told is not None:
            undo.enter_context(pytest.raises(ToolFailedError, match=told))
        undo.enter_context(samba.connected(directory, {})).upload("1", b"contents")
    assert [path.name for path in directory.iterdir()] == ([] if told else ["1"])


def test_a_client_that_is_earlier_than_a_part_of_the_file_server_connects_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped_without("samba")
    directory, real = tmp_path / "exported", samba.SmbClient.say
    failures = ["smbclient: tree connect failed: NT_STATUS_NO_MEMORY"]
    directory.mkdir()
    servers.own_directory(directory)

    def say(client: samba.SmbClient, command: str) -> str:
        if failures:
            raise ToolFailedError(failures.pop())
        return real(client, command)

    monkeypatch.setattr(samba.SmbClient, "say", say)
    with samba.connected(directory, {}) as client:
        client.upload("1", b"contents")
    assert [path.name for path in directory.iterdir()] == ["1"]
