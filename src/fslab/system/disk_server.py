"""Start, ask, end and clean up ``fslab-disk``, which serves a virtual disk (engine/disk/PROTOCOL.md).

A server ends with the process that started it, which holds the other end of a pipe. Its log is read as a table: one row
for each request and each mark.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fslab import untrusted_text
from fslab.errors import FslabError, ToolFailedError, ToolOutputError, UnsupportedError
from fslab.system import proc, process_marks, processes, rights, tools
from fslab.system.files import opened
from fslab.system.tools import Tool

if TYPE_CHECKING:
    import polars as pl

TOOL = Tool(program="fslab-disk", package=None)
FILE = "disk"
OF_USER = "virtual-disk"  # in a journal: one that fslab has not made
UNMOUNTED = "--unmounted"
SERIAL_LENGTH = 20  # of a virtio disk
READY_LIMIT_S = 300.0  # an SSD that must start full is written over first
ASK_LIMIT_S = 60.0
END_LIMIT_S = 10.0
LOOK_EVERY_S = 0.2
ANSWER_BYTES = 1 << 20
FUSE = Path("/dev/fuse")
MAGIC = b"FSLABDSK"
LOG_HEADER_BYTES = 64
_SIZE_AT, _CACHE_AT, _DURABLE = 16, 32, 1  # in the header; the last one: the disk has no volatile cache
OPERATIONS = ("read", "write", "flush", "discard", "mark")
FAILED, FAULT, IGNORED = 1, 2, 4
_FIELDS: list[Any] = [
    ("id", "<u8"), ("arrived_ns", "<u8"), ("done_ns", "<u8"), ("offset", "<u8"), ("data", "<u8"), ("length", "<u4"),
    ("epoch", "<u4"), ("phase", "<u2"), ("op", "u1"), ("flags", "u1"), ("pad", "V12"),
]  # fmt: skip


class Unflushed(StrEnum):
    """What a power cut does to writes on the disk that no flush covered: keep or lose each at random, lose all, or keep
    all."""

    RANDOM = "random"
    LOST = "lost"
    KEPT = "kept"


def check_supported(*, mounted: bool = True) -> None:
    """Raise ToolMissingError or UnsupportedError if no disk can be served. Without ``mounted``, no FUSE is needed."""
    tools.require(TOOL)
    if mounted and not FUSE.exists():
        raise UnsupportedError(
            "this kernel has no FUSE",
            where=str(FUSE),
            hint="load it (modprobe fuse), or use a medium other than 'virtual'",
        )


def may_flush(pid: int | None = None) -> bool | None:
    """Return whether a process (by default this one) may set PR_SET_IO_FLUSHER, so that memory reclaim never waits for
    it; None if unknown."""
    return rights.has(rights.SYS_RESOURCE, pid)


def control_of(directory: Path) -> Path:
    """Return the control socket of the disk that is mounted on ``directory``."""
    return directory.with_name(f"{directory.name}.control")


def log_of(directory: Path) -> Path:
    """Return the log of the disk mounted on ``directory``. Its data and names are in files with further suffixes."""
    return directory.with_name(f"{directory.name}.log")


def guest_socket_of(directory: Path) -> Path:
    """Return the socket where a guest finds the disk mounted on ``directory``, once the disk is offered."""
    return directory.with_name(f"{directory.name}.guest")


def ask(directory: Path, do: str, *, pid: int | None = None, **arguments: Any) -> dict[str, Any]:
    """Return the server's answer to one request. ToolFailedError if the server has ended, FslabError if it refuses.

    With the server's ``pid``, this also detects a killed server that cannot end, because one of its threads waits for
    its own disk. The disk's connection is aborted then.
    """
    control = control_of(directory)
    # The path of a socket has at most 107 bytes; the path of a directory's descriptor is short.
    try:
        with (
            opened(control.parent, os.O_DIRECTORY) as parent,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(f"/proc/self/fd/{parent}/{control.name}")
            connection.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            line = _line(connection.fileno(), ASK_LIMIT_S, pid)
    except OSError as error:
        raise ToolFailedError(
            f"the virtual disk's server does not answer: {error}", where=str(directory), hint="fslab clean"
        ) from error
    if pid is not None and not processes.lives(pid):
        clean(directory)
    if not line.endswith(b"\n"):
        raise ToolFailedError("the virtual disk's server has ended", where=str(directory), hint="fslab clean")
    answer: dict[str, Any] = untrusted_text.json_of(line)
    if not answer.get("ok"):
        raise FslabError(f"the virtual disk refuses '{do}': {answer.get('error')}", where=str(directory))
    return answer


def set_back(directory: Path) -> None:
    """Undo what a killed test has set on a disk of the user: faults, a power cut, time that is not real. Nothing is to
    be done if the server has ended."""
    with contextlib.suppress(ToolFailedError):
        ask(directory, "disarm")
        ask(directory, "power_on")
        ask(directory, "pace", real=True)


def clean(directory: Path) -> None:
    """Remove what a server left, and the mounts and loop devices on its disk. Does not wait for the server.

    Can be called twice.
    """
    proc.run([TOOL.program, "clean", str(directory)], timeout_s=60)
    log = log_of(directory)
    logs = (log, *(Path(f"{log}.{suffix}") for suffix in ("data", "json")))
    for path in (control_of(directory), guest_socket_of(directory), *logs):
        path.unlink(missing_ok=True)


@dataclass(kw_only=True, slots=True)
class Server:
    """A running server. ``options``: of its command line. ``ready``: its message that the disk can be used."""

    directory: Path
    options: tuple[str, ...]
    child: proc.Child
    lifeline: int
    errors: int
    ready: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file with the contents of the disk, for a loop device or a guest."""
        return self.directory / FILE

    @property
    def timed(self) -> bool:
        """Whether the server answers in the time of the modelled disk; only then can it be offered to a guest."""
        return bool(self.ready["timed"])

    def offered(self) -> tuple[Path, str]:
        """Offer the disk to guests, if it is not offered yet. Return the vhost-user socket and the serial number."""
        socket, serial = guest_socket_of(self.directory), f"fslab-{self.directory.name}"[-SERIAL_LENGTH:]
        if not socket.exists():
            self.ask("offer", socket=socket.name, serial=serial)
        return socket, serial

    @property
    def runs(self) -> bool:
        """Whether the server still runs."""
        return self.child.exit_code() is None and processes.lives(self.child.pid)

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to one request."""
        return ask(self.directory, do, pid=self.child.pid, **arguments)

    def end(self) -> None:
        """End the server, and remove what it made. Can be called twice."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            os.close(self.errors)
            self.lifeline = -1
        if not self.runs or self.child.wait(END_LIMIT_S) is None:
            clean(self.directory)  # first, because it may wait for its own disk
        self.child.end()
        clean(self.directory)


def start(directory: Path, options: Sequence[str], *, mark: str) -> Server:
    """Serve a disk on the new ``directory``. ToolFailedError, with the server's message, if it does not get ready."""
    control = control_of(directory).name
    argv = [TOOL.program, "serve", str(directory), "--control", control, *options]
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    answer, said = os.pipe2(os.O_CLOEXEC)
    errors = os.memfd_create("fslab-disk-errors", os.MFD_CLOEXEC)
    try:
        child = proc.start(
            [*argv, "--lifeline", str(ours)], output=said, errors=errors, inherit=[ours], cwd=directory.parent,
            env={process_marks.MARK: mark}, kept=True,
        )  # fmt: skip
    except BaseException:
        for descriptor in (theirs, answer, errors):
            os.close(descriptor)
        raise
    finally:
        os.close(ours)
        os.close(said)
    server = Server(directory=directory, options=tuple(options), child=child, lifeline=theirs, errors=errors)
    try:
        server.ready = _ready(answer, server)
    except BaseException:
        with contextlib.suppress(FslabError):
            server.end()
        raise
    finally:
        os.close(answer)
    return server


def _ready(answer: int, server: Server) -> dict[str, Any]:
    """Wait for the message that the disk can be used, and return it."""
    line = _line(answer, READY_LIMIT_S, server.child.pid)
    try:
        ready: dict[str, Any] = untrusted_text.json_of(line)
    except ValueError as error:
        server.child.wait(1)
        said = os.pread(server.errors, 4096, 0).decode("utf-8", "replace").strip()
        why = said or f"it was not ready within {READY_LIMIT_S:g} s"
        raise ToolFailedError(
            f"the virtual disk could not be started: {why}", where=proc.shell_line(server.child.argv)
        ) from error
    return ready


def _line(descriptor: int, limit_s: float, pid: int | None) -> bytes:
    """Read up to the end of a line; less if the other end has closed, or if nothing arrives in time."""
    deadline, line = time.monotonic() + limit_s, b""
    while not line.endswith(b"\n") and len(line) < ANSWER_BYTES:
        found, _, _ = select.select([descriptor], [], [], LOOK_EVERY_S)
        if found:
            part = os.read(descriptor, 4096)
            if not part:
                break
            line += part
        elif time.monotonic() > deadline or (pid is not None and not processes.lives(pid)):
            break
    return line


def read_log(log: Path) -> pl.DataFrame:
    """Return the rows in the order in which requests were done: ``row``, ``id``, ``op``, ``offset``, ``length``,
    ``arrived_ns``, ``done_ns``, ``epoch``, ``phase`` and ``mark`` (names, or null), ``failed``, ``fault``, ``ignored``.

    Ask the server to ``sync`` first. ToolOutputError if the file is not such a log, or is damaged.
    """
    import numpy as np  # noqa: PLC0415 - 0.3 s
    import polars as pl  # noqa: PLC0415

    _header_of_log(log)
    names = _names_of_log(Path(f"{log}.json"))
    rows = np.fromfile(log, dtype=_FIELDS, offset=LOG_HEADER_BYTES)
    if rows.size and rows["op"].max() >= len(OPERATIONS):
        raise ToolOutputError("a row of this log is damaged", where=str(log))
    frame = pl.DataFrame({name: rows[name] for name, _ in _FIELDS if name != "pad"})
    is_mark = pl.col("op") == OPERATIONS.index("mark")
    marks = pl.when(is_mark).then(pl.col("offset")).otherwise(None)
    return frame.with_row_index("row").select(
        "row", "id", "arrived_ns", "done_ns", "length", "epoch",
        pl.when(is_mark).then(None).otherwise(pl.col("offset")).alias("offset"),
        pl.col("op").replace_strict(dict(enumerate(OPERATIONS))),
        pl.col("phase").replace_strict(dict(enumerate(names["phases"])), default=None, return_dtype=pl.String),
        marks.replace_strict(dict(enumerate(names["marks"])), default=None, return_dtype=pl.String).alias("mark"),
        *(
            (pl.col("flags") & flag != 0).alias(name)
            for name, flag in (("failed", FAILED), ("fault", FAULT), ("ignored", IGNORED))
        ),
    )  # fmt: skip


def writes(log: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the data of each write that did not fail, in the order of the log. It has its data.

    ToolOutputError if the file is not such a log, or is damaged.
    """
    import numpy as np  # noqa: PLC0415 - 0.3 s

    _header_of_log(log)
    rows = np.fromfile(log, dtype=_FIELDS, offset=LOG_HEADER_BYTES)
    rows = rows[(rows["op"] == OPERATIONS.index("write")) & (rows["flags"] & (FAILED | IGNORED) == 0)]
    with opened(f"{log}.data") as data:
        for offset, at, length in rows[["offset", "data", "length"]].tolist():
            written = os.pread(data, length, at)
            if len(written) != length:
                raise ToolOutputError("a row of this log is damaged", where=str(log))
            yield offset, written


def has_volatile_cache(log: Path) -> bool:
    """Return whether the disk could lose what it had acknowledged. ToolOutputError if the file is not such a log."""
    (flags,) = struct.unpack_from("<I", _header_of_log(log), _CACHE_AT)
    return not flags & _DURABLE


def size_in_log(log: Path) -> int:
    """Return the size of the disk in bytes. ToolOutputError if the file is not such a log."""
    (size,) = struct.unpack_from("<Q", _header_of_log(log), _SIZE_AT)
    return int(size)


def _header_of_log(log: Path) -> bytes:
    with log.open("rb") as file:
        header = file.read(LOG_HEADER_BYTES)
    if header[: len(MAGIC)] != MAGIC or len(header) < LOG_HEADER_BYTES:
        raise ToolOutputError("this is not a log of fslab-disk", where=str(log))
    return header


def _names_of_log(path: Path) -> dict[str, list[str]]:
    """Return the names of phases and of marks."""
    try:
        about = untrusted_text.json_of(path.read_bytes())
        names = {key: about[key] for key in ("phases", "marks")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolOutputError(f"the names in this log cannot be read: {error}", where=str(path)) from error
    if not all(
        isinstance(each, list) and all(isinstance(name, str) for name in each) for each in names.values()
    ):
        raise ToolOutputError("the names in this log are not lists of strings", where=str(path))
    return names
