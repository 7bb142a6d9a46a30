"""A running guest: short messages over a line, bulk data through a shared directory, disks plugged and unplugged.

Requests and replies are JSON documents. This module does not interpret them. A guest that panics, hangs or ends causes
an error. No call blocks forever. For root, the shared directory is a tmpfs, which limits how much the guest can write.
A user who may not mount gets a plain directory, whose free space is checked.
"""

import json
import logging
import math
import os
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fslab import untrusted_text
from fslab.errors import FslabError, GuestError, GuestHungError, GuestPanickedError, NoSpaceError
from fslab.storage import Drive, Growth, Workspace, images, undone_later
from fslab.system import mounts, proc, trees, untrusted_files
from fslab.system.files import closed_after
from fslab.system.proc import Child
from fslab.units import format_size

BOOT_LIMIT_S = 120.0
CONSOLE = "console"
PANIC = "Kernel panic"
# Prefix of the guest's progress messages, and the answer that the guest waits for after each.
TOLD, GO_ON = "told ", "go on"
# A line that the guest sends periodically. Its kernel can still answer interrupts although it no longer runs programs:
# seen in User-Mode Linux 6.1, idle after it lost its timer.
ALIVE, ALIVE_EVERY_S, SILENT_LIMIT_S = "alive", 5.0, 60.0
END_LIMIT_S = 5.0
# A guest that leaves PINGS pings in a row unanswered has hung. A busy guest still answers, between two instructions.
PING_EVERY_S = 10.0
PING_LIMIT_S = 10.0
PINGS = 3
# A guest that does not read what the host sends, so that its line is full, has hung.
SEND_LIMIT_S = 10.0
# Limits that no working guest reaches. A reply is a record with the output of all tools. A line is short: "done 17".
REPLY_LIMIT_BYTES = 64 << 20
LINE_LIMIT_BYTES = 4 << 10
LOG_LIMIT_BYTES = 256 << 10
CONSOLE_LIMIT_BYTES = 64 << 20
LOOK_EVERY_S = 0.2  # interval of the checks whether the guest still runs and how much space it uses
log = logging.getLogger("fslab.guest")
# Enough for the longest reply and kernel log, and for the free space below which a guest is ended
# (images.RESERVE_BYTES).
SHARE_BYTES = 256 << 20
SHARE_FILES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """A disk in a guest: its node ``device`` there, or the ``serial`` number by which the guest finds it.

    ``bind``: the device to which the guest must bind the driver first. ``facts`` are stored in the record.
    """

    device: str | None = None
    serial: str | None = None
    bind: str | None = None
    rotational: bool = False
    discard: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "facts": dict(self.facts)}


@dataclass(kw_only=True)
class Guest(ABC):
    """One booted guest.

    ``directory`` is shared with the guest and removed with it. ``line`` carries one short line per request and reply.
    ``facts`` are stored with every trial. ``growths``: of the disks that are plugged in for the current request.
    """

    directory: Path
    child: Child
    line: socket.socket
    facts: Mapping[str, Any]
    count: int = 0
    is_up: bool = False
    broken: bool = False
    growths: Sequence[Growth] = ()
    _rest: bytes = b""

    @abstractmethod
    def plug(self, drive: Drive) -> Disk:
        """Plug a disk into the guest. GuestError if the guest refuses it."""

    @abstractmethod
    def unplug(self, disk: Disk) -> None:
        """Unplug the disk. GuestError if the guest does not release it; such a guest must be ended."""

    @abstractmethod
    def answers(self, within_s: float) -> bool:
        """Return whether the guest's kernel still answers. Its programs need not."""

    def wait_ready(self) -> None:
        """Wait until the guest is up and accepts requests."""
        self._expect("ready", time.monotonic() + BOOT_LIMIT_S)
        self.is_up = True

    def ask(
        self,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        told: Callable[[str], object] = lambda _: None,
    ) -> dict[str, Any]:
        """Return the guest's reply to a request. GuestError, GuestPanickedError, GuestHungError.

        ``told`` is called with each progress message of the guest. The guest waits until it returns.
        """
        self.count += 1
        path = self.directory / f"request-{self.count}.json"
        with self.changing_files():
            untrusted_files.write_new(path, json.dumps(request).encode())
        self._send(f"run {self.count}")
        self._expect(f"done {self.count}", time.monotonic() + timeout_s, told)
        answer = self.directory / f"reply-{self.count}.json"
        try:
            reply = untrusted_text.json_of(untrusted_files.read(answer, limit_bytes=REPLY_LIMIT_BYTES))
        except (OSError, ValueError) as error:
            raise self._broke(GuestError(f"cannot read the guest's reply: {error}")) from error
        if not isinstance(reply, dict):
            raise self._broke(GuestError("invalid reply from the guest"))
        with self.changing_files():
            trees.remove(path)
            trees.remove(answer)
        return reply

    @contextmanager
    def changing_files(self) -> Iterator[None]:
        """Make an error of the block, which changes files of the host in the shared directory, one of the guest, which
        has put something else there."""
        try:
            yield
        except OSError as error:
            what = f"the guest changed what only the host may change: {error.strerror}"
            raise self._broke(GuestError(what, where=str(error.filename or self.directory))) from error

    def console_end(self) -> int:
        try:
            return (self.directory / CONSOLE).lstat().st_size
        except FileNotFoundError:
            return 0

    def log_text(self, since: int = 0) -> str:
        """Return the kernel log from byte ``since`` on, at most its last LOG_LIMIT_BYTES.

        Empty if the log is missing or is no longer a regular file.
        """
        try:
            descriptor = untrusted_files.open_regular(self.directory / CONSOLE)
        except OSError:
            return ""
        with closed_after(descriptor):
            start = max(since, os.fstat(descriptor).st_size - LOG_LIMIT_BYTES)
            said = untrusted_files.read_at(descriptor, start, LOG_LIMIT_BYTES)
        return said.decode("utf-8", "replace").replace("\r\n", "\n")

    def end(self) -> None:
        """Kill the guest and remove its directory, as ``remove_share`` does. Can be called twice."""
        self.child.end()
        self.line.close()
        remove_share(self.directory)

    def _expect(self, wanted: str, deadline: float, told: Callable[[str], object] = lambda _: None) -> None:
        """Wait for the line ``wanted``. Skip lines of earlier requests; answer progress messages."""
        while (got := self._read_line(min(deadline, self._silent_until()))) != wanted:
            if got is None and time.monotonic() < deadline:
                raise self._hung(f"no program has run in the guest for {SILENT_LIMIT_S:.0f} s")
            if got is None or time.monotonic() > deadline:
                raise self._hung(f"timeout while waiting for '{wanted}' from the guest")
            if got.startswith(TOLD):
                self._answer(got.removeprefix(TOLD), told)

    def _silent_until(self) -> float:
        return time.monotonic() + SILENT_LIMIT_S if self.is_up else math.inf

    def _answer(self, what: str, told: Callable[[str], object]) -> None:
        try:
            told(what)
        except BaseException:
            self.broken = True  # the guest waits for an answer that it will not get
            raise
        self._send(GO_ON)

    def _send(self, text: str) -> None:
        self.line.settimeout(SEND_LIMIT_S)
        try:
            self.line.sendall(f"{text}\n".encode())
        except TimeoutError as error:
            raise self._hung("the guest does not read the messages of the host") from error
        except OSError as error:
            raise self._ended() from error

    def _read_line(self, deadline: float) -> str | None:
        next_ping, unanswered = time.monotonic() + PING_EVERY_S, 0
        while b"\n" not in self._rest:
            if time.monotonic() > next_ping:
                unanswered = 0 if self.answers(PING_LIMIT_S) else unanswered + 1
                next_ping = time.monotonic() + (1.0 if unanswered else PING_EVERY_S)
                if unanswered >= PINGS and self.child.exit_code() is None:
                    raise self._hung("the guest's kernel no longer answers")
            self._check_filled()
            # What has arrived is read even after the deadline: fslab itself may have been stopped meanwhile.
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self.line], [], [], min(left, LOOK_EVERY_S))
            if not ready:
                if self.child.exit_code() is not None:
                    raise self._ended()
                if left == 0:
                    return None
                continue
            try:
                data = self.line.recv(4096)
            except OSError:
                data = b""
            if not data:
                raise self._ended()
            self._rest += data
            if b"\n" not in self._rest and len(self._rest) > LINE_LIMIT_BYTES:
                raise self._broke(GuestError("invalid message from the guest: too long for a line"))
        found, _, self._rest = self._rest.partition(b"\n")
        return found.decode("ascii", "replace").strip()

    def _check_filled(self) -> None:
        """Raise GuestError if the kernel log is too long or the file system of the shared directory is nearly full,
        NoSpaceError if a disk has no more room."""
        if self.console_end() > CONSOLE_LIMIT_BYTES:
            raise self._broke(
                GuestError(f"the guest's kernel log is larger than {format_size(CONSOLE_LIMIT_BYTES)}")
            )
        try:
            images.check_room(self.directory, 0)
        except NoSpaceError as error:
            raise self._broke(
                GuestError(
                    f"the guest was stopped, because it filled the directory shared with the host ({error.what})",
                    where=error.where,
                )
            ) from error
        try:
            self.check_growth()
        except FslabError:
            self.broken = True  # it still writes to the disk
            raise

    def check_growth(self) -> None:
        """Raise NoSpaceError if a disk has no more room."""
        for growth in self.growths:
            images.check_growth(growth)

    def _ended(self) -> FslabError:
        """Return why the guest ended. Its exit status alone is not enough: after a panic it is SIGABRT or 0."""
        code = self.child.wait(END_LIMIT_S)
        if PANIC in self.log_text():
            return self._broke(GuestPanickedError("the guest's kernel panicked", hint=self._last_words()))
        how = "closed its connection" if code is None else f"ended (exit status {code})"
        return self._broke(GuestError(f"the guest {how}", hint=self._last_words()))

    def _hung(self, what: str) -> FslabError:
        return self._broke(GuestHungError(what, hint=self._last_words()))

    def _broke(self, error: FslabError) -> FslabError:
        self.broken = True
        return error

    def _last_words(self) -> str | None:
        said = [text.strip() for text in self.log_text().splitlines() if text.strip()]
        panic = [text for text in said if PANIC in text]
        return "its kernel log ends with: " + " | ".join(panic or said[-3:]) if said else None


G = TypeVar("G", bound=Guest)


def open_console(directory: Path) -> int:
    """Open the guest's kernel log. It is a file, so that no process has to read it while the guest runs."""
    return os.open(
        directory / CONSOLE, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
    )


def booted(guest: G) -> G:
    """Wait until the guest is up and return it. If it does not boot, end it and raise GuestError."""
    try:
        guest.wait_ready()
    except GuestError as error:
        guest.end()
        hint = (
            error.hint or "its kernel log is empty: check that the kernel is built for this kind of machine"
        )
        raise type(error)(f"the guest did not boot: {error.what}", where=error.where, hint=hint) from error
    except BaseException:
        guest.end()
        raise
    return guest


def share_argv(directory: Path) -> list[str]:
    """Return the command that mounts the tmpfs. Device nodes and set-user-ID bits of a guest's root have no effect."""
    options = f"size={SHARE_BYTES},nr_inodes={SHARE_FILES},mode=0700,nosuid,nodev"
    return ["mount", "-t", "tmpfs", "-o", options, "fslab", str(directory)]


def make_share(directory: Path, workspace: Workspace) -> None:
    """Create a journalled directory, limited in size if this user may mount. The end of the campaign removes it."""
    kinds = ("tree", "mount") if os.geteuid() == 0 else ("tree",)
    for kind in kinds:
        undone_later(workspace.journal, kind, directory, workspace.exit, partial(_remove_share, directory))
    directory.mkdir(mode=0o700)
    if "mount" in kinds:  # in a container, even root may be refused
        proc.run(share_argv(directory), check=False)


def remove_share(directory: Path) -> None:
    """Remove the directory and its contents before the end of the campaign. While it is in use, it stays until then:
    another process can keep it busy, but must not keep a guest from being ended. Can be called twice."""
    try:
        _remove_share(directory)
    except (FslabError, OSError) as error:
        log.warning("tried again at the end of the campaign: %s", error)


def _remove_share(directory: Path) -> None:
    mounts.unmount(directory)
    trees.remove(directory)
