"""Keeps a machine's link to the scheduler running, and answers what it asks: to run an assignment, by its name."""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab import texts
from fslab.fleet import confined, link
from fslab.names import is_word

LONGEST_WAIT_S = 30.0
CONNECTED_S = 120.0  # without the scheduler it ends earlier
AT_ONCE = 64
REQUEST_BYTES = 1024
ASKING_S = 10.0
LOOK_S = 5.0


@dataclass(kw_only=True, slots=True)
class LinkKeeper:
    """``request`` has an assignment run, and ``is_waiting`` says whether it is not over; both are called in threads.
    ``files``: certificates; ``name``: of its directory."""

    name: str
    settings: Mapping[str, Any]
    files: Mapping[str, bytes]
    user: tuple[int, int] | None
    request: Callable[[str], object]
    is_waiting: Callable[[str], bool]
    tell: Callable[[str], object]
    program: confined.ConfinedProgram | None = None
    listening: socket.socket | None = None
    failures: int = 0
    next_start: float = 0.0
    started: float = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether it has ended again and again: without the scheduler it does so after a minute."""
        return self.failures > 0

    def keep(self) -> None:
        """Start it if it does not run; at most so often as its failures allow."""
        if self.program is not None and self.program.child.exit_code() is None:
            if time.monotonic() - self.started > CONNECTED_S:
                self.failures = 0
            return
        now = time.monotonic()
        if self.program is not None:
            self.failures += 1
            self.tell(
                f"no connection to the scheduler: {self.program.last_words() or 'it closed the connection'}"
            )
            self.end()
            self.next_start = now + min(2.0 ** min(self.failures, 10) / 2, LONGEST_WAIT_S)
        if now >= self.next_start:
            self.started = now
            self.program = confined.start(
                self.name, "fslab.fleet.link", self.settings, self.user, self.files, self._listen
            )

    def end(self) -> None:
        """End it, and the socket."""
        if self.program is not None:
            self.program.end()
        if self.listening is not None:
            with contextlib.suppress(OSError):
                self.listening.shutdown(
                    socket.SHUT_RDWR
                )  # wakes who waits for connections; closing alone does not
            self.listening.close()
        self.program = self.listening = None

    def _listen(self, directory: Path) -> None:
        """A socket that only the link's user can connect to."""
        path = directory / link.SOCKET
        self.listening = socket.socket(socket.AF_UNIX)
        place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # names of sockets have 107 bytes, and directories may have more
            self.listening.bind(f"/proc/self/fd/{place}/{link.SOCKET}")
        finally:
            os.close(place)
        path.chmod(0o600)
        if self.user is not None:
            os.chown(path, *self.user)
        self.listening.listen(AT_ONCE)
        threading.Thread(target=self._serve, args=(self.listening,), daemon=True).start()

    def _serve(self, listening: socket.socket) -> None:
        places = threading.BoundedSemaphore(AT_ONCE)
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                if listening.fileno() < 0 or listening is not self.listening:  # closed
                    return
                time.sleep(1)  # too many open files, or a connection that was given up
                continue
            if places.acquire(blocking=False):
                threading.Thread(target=self._answer, args=(connection, places), daemon=True).start()
            else:
                connection.close()

    def _answer(self, connection: socket.socket, places: threading.BoundedSemaphore) -> None:
        try:
            with connection:
                connection.settimeout(ASKING_S)
                wanted = _assignment(connection.recv(REQUEST_BYTES))
                self.request(wanted)
                while self.is_waiting(wanted):
                    if _is_closed(connection):
                        return
                connection.sendall(b"over\n")
        except OSError:  # the link has ended
            pass
        except ValueError:  # whoever speaks for the link may say anything
            self.tell("the link asked for what is no assignment")
        finally:
            places.release()


def _assignment(asked: bytes) -> str:
    """The name in a request; ValueError if there is none."""
    request = texts.json_of(asked)
    wanted = request.get("assignment") if isinstance(request, dict) else None
    if not isinstance(wanted, str) or not is_word(wanted):
        raise ValueError("no assignment")
    return wanted


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end has gone; waits for a while."""
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(LOOK_S * 1000))
