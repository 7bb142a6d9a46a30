"""Tests of fslab-disk with damaged logs, clients that hang, full disks, and numbers out of range."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY, MIB
from tests.limits import LIMIT_S, ran

from fslab.system import proc

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")

SIZE = 1 << 20
ADDRESS_SPACE = 1 << 30


def disk(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    argv = ["prlimit", f"--as={ADDRESS_SPACE}", BINARY, *arguments]
    return ran(argv, input=stdin)


def row(*, offset: int = 0, data: int = 0, length: int = 4096, operation: int = 1, phase: int = 0) -> bytes:
    return struct.pack("<QQQQQIIHBB12x", 1, 10, 20, offset, data, length, 0, phase, operation, 0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log with one write. Its data, its names and the base image are beside it."""
    log = tmp_path / "log"
    log.write_bytes(struct.pack("<8sIIQQ32x", b"FSLABDSK", 1, 64, SIZE, 0) + row())
    (tmp_path / "log.data").write_bytes(b"x" * 4096)
    (tmp_path / "log.json").write_text('{"phases": [], "marks": []}')
    with (tmp_path / "base").open("wb") as base:
        base.truncate(SIZE)
    return log


def states(log: Path, *, base: Path | None = None, **wanted: Any) -> subprocess.CompletedProcess[str]:
    request = {"cut": 1, "fate": "kept", "output": str(log.with_name("state")), **wanted}
    return disk("states", "--base", base or log.with_name("base"), log, stdin=f"{json.dumps(request)}\n")


def test_a_whole_log_makes_a_state(log: Path) -> None:
    assert states(log).returncode == 0
    assert log.with_name("state").read_bytes() == b"x" * 4096 + bytes(SIZE - 4096)


@pytest.mark.parametrize(
    "damaged",
    [
        row(offset=SIZE), row(offset=(1 << 64) - 100), row(data=1), row(data=1 << 63), row(length=1 << 31),
        row(operation=9), row(operation=3, length=(1 << 32) - 1), row(operation=3, offset=(1 << 64) - 1),
    ],
)  # fmt: skip
def test_an_altered_log_is_refused(damaged: bytes, log: Path) -> None:
    with log.open("ab") as file:
        file.write(damaged)
    told = states(log)
    assert (told.returncode, told.stdout) == (1, "")
    assert "row 1 is damaged" in told.stderr


@pytest.mark.parametrize("name", ["log", "log.data", "base"])
@pytest.mark.parametrize("kind", ["fifo", "endless", "directory"])
def test_only_files_are_read(name: str, kind: str, log: Path) -> None:
    path = log.with_name(name)
    path.unlink()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    told = states(log)
    assert told.returncode == 1
    assert "not a regular file" in told.stderr


@pytest.mark.parametrize("size", [SIZE + 1, SIZE - 4096, 0])
def test_a_base_of_another_size_than_the_disk(size: int, log: Path) -> None:
    """What is missing would count as zeros."""
    os.truncate(log.with_name("base"), size)
    told = states(log)
    assert (told.returncode, told.stdout) == (1, "")
    assert f"has {size} bytes, and the disk of the log {SIZE}" in told.stderr


@pytest.mark.parametrize(
    "request_",
    [
        '{"cut": 2}',
        "[" * 100_000,
        "\0",
        '{"cut": 1, "fate": "kept", "output": "/nowhere/x"}',
        "x" * (17 << 20),
    ],
)
def test_any_line_is_answered(request_: str, log: Path) -> None:
    told = disk("states", "--base", log.with_name("base"), log, stdin=f"{request_}\n")
    assert told.returncode in {0, 1}
    assert "panicked" not in told.stderr
    assert told.returncode or json.loads(told.stdout.splitlines()[1])["ok"] is False


def test_a_state_for_which_there_is_no_room_leaves_nothing(log: Path, small_disk: Path) -> None:
    (small_disk / "full").write_bytes(bytes(2 * MIB))
    told = states(log, output=str(small_disk / "state"))
    assert "No space left" in told.stdout
    assert not (small_disk / "state").exists()


@pytest.mark.parametrize("data", [True, False])
def test_a_log_that_lacks_a_write_is_not_a_log(data: bool, serve: Any, small_disk: Path) -> None:
    """After a request could not be logged, the log is marked as incomplete until it is cleared.

    States built from an incomplete log would show losses that did not happen.
    """
    server = serve("--log", str(small_disk / "log"), *(["--log-data"] if data else ["--timed"]))
    (small_disk / "full").write_bytes(bytes(2 * MIB - 8192))
    with server.disk.open("r+b", buffering=0) as file:
        for number in range(16 if data else 8192):
            os.pwrite(file.fileno(), b"x" * (MIB if data else 512), number * 512)
    assert server.ask("statistics")["logging"] is False
    for verb in ({"do": "mark", "name": "m"}, {"do": "sync"}):
        assert f"incomplete: {'only' if data else 'No space left'}" in server.ask(**verb)["error"]
    (small_disk / "full").unlink()
    assert server.ask("clear")["ok"]
    assert server.ask("mark", name="m")["ok"]


@pytest.mark.parametrize("data", [True, False])
def test_a_log_has_a_limit(data: bool, serve: Any, tmp_path: Path) -> None:
    log, limit = tmp_path / "log", 64 << 10
    words = ("--log-limit", str(limit), *(["--log-data"] if data else []))
    server = serve("--log", str(log), *words)
    with server.disk.open("r+b", buffering=0) as file:
        for number in range(2048):
            os.pwrite(file.fileno(), b"x" * 512, number * 512)
    assert server.ask("statistics")["logging"] is False
    assert f"incomplete: its limit of {limit} bytes is reached" in server.ask("sync")["error"]
    assert server.ask("clear")["ok"]
    with server.disk.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"x" * 512, 0)
    assert server.ask("sync")["ok"]


def test_nothing_is_logged_until_what_needs_the_log_clears_it(serve: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = serve("--log", str(log), "--log-data")

    def write() -> None:
        with server.disk.open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"x" * MIB, 0)

    server.ask("clear", unlogged=True)
    write()
    assert server.ask("statistics")["logging"] is False
    assert "stopped until it is cleared" in server.ask("sync")["error"]
    server.ask("clear")
    assert not Path(f"{log}.data").stat().st_size
    write()
    assert server.ask("sync")["ok"]
    assert Path(f"{log}.data").stat().st_size == MIB


def test_a_log_leaves_an_eighth_of_its_file_system_free(serve: Any, small_disk: Path) -> None:
    proc.run(["mount", "-o", "remount,size=32m", str(small_disk)])
    server = serve("--log", str(small_disk / "log"), "--log-data")
    with server.disk.open("r+b", buffering=0) as file:
        for number in range(64):
            os.pwrite(file.fileno(), b"x" * MIB, number * MIB)
    assert "bytes are free" in server.ask("sync")["error"]
    room = os.statvfs(small_disk)
    assert room.f_bavail * room.f_frsize > 2 * MIB


def test_silent_clients_delay_no_others(serve: Any) -> None:
    server = serve()
    with contextlib.ExitStack() as stack:
        for number in range(32):
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(server.control))
            silent.sendall(b'{"do": ' if number % 2 else b"")
        assert server.ask("statistics")["ok"]
        refused = 0
        for _ in range(64):
            more = stack.enter_context(socket.socket(socket.AF_UNIX))
            more.settimeout(LIMIT_S)
            more.connect(str(server.control))
            with contextlib.suppress(BrokenPipeError):  # the server closes a refused connection
                more.sendall(b'{"do": "statistics"}\n')
            refused += b"too many connections" in more.makefile("rb").readline()
        assert 30 <= refused <= 40
    assert server.process.poll() is None


@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"{}\n", b"x" * (17 << 20)])
def test_garbage_ends_no_server(text: bytes, serve: Any) -> None:
    server = serve()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT_S)
        connection.connect(str(server.control))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            assert b'"ok":false' in connection.makefile("rb").readline() or len(text) > 16 << 20
    assert server.ask("statistics")["ok"]


@pytest.mark.parametrize(
    "options",
    [
        ["--size", str(1 << 50), "--profile", "ssd-nvme"],
        ["--size", "4096", "--lifeline=-1"],
        ["--size", str(1 << 63)],
    ],
)
def test_a_disk_that_cannot_be_leaves_nothing(options: list[str], tmp_path: Path) -> None:
    told = disk("serve", tmp_path / "fslab-disk", "--control", tmp_path / "control", *options)
    assert told.returncode in {1, 2}
    assert "panicked" not in told.stderr
    assert not list(tmp_path.iterdir())
