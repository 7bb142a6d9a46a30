"""Keeps a machine's link to the scheduler running, and answers its requests to run an assignment."""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fslab import texts
from fslab.errors import FslabError
from fslab.fleet import confined, link
from fslab.names import is_word

LONGEST_WAIT_S = 30.0
CONNECTED_S = 120.0  # a link that runs for so long is connected: without the scheduler it ends earlier
AT_ONCE = 64
REQUEST_BYTES = 1024
ASKING_S = 10.0
LOOK_S = 5.0


@dataclass(kw_only=True, slots=True)
class LinkKeeper:
    """``request`` queues an assignment. ``is_waiting`` returns whether it is queued or running. Both are called from
    other threads. ``files``: the certificates. ``name``: prefix of the link's directory."""

    name: str
    settings: link.LinkSettings
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
    strange: bool = False

    @property
    def is_failing(self) -> bool:
        """Whether the link ended and has not been connected since. Without the scheduler it ends after a minute."""
        return self.failures > 0

    def keep(self) -> None:
        """Start the link if it does not run. The delay between starts doubles with each failure, up to
        ``LONGEST_WAIT_S``."""
        if self.program is not None and self.program.child.exit_code() is None:
            if time.monotonic() - self.started > CONNECTED_S:
                self.failures = 0
            return
        now = time.monotonic()
        if self.program is not None:
            self.failures += 1
            said = self.program.last_words() or "it closed the connection"
            self.tell(f"no connection to the scheduler: {said}; if the fleet was made anew, join it again")
            self.end()
            self.next_start = now + min(2.0 ** min(self.failures, 10) / 2, LONGEST_WAIT_S)
        if now >= self.next_start:
            self.started = now
            self._start()

    def _start(self) -> None:
        """Start the link. Where that fails, as on a full disk, the agent goes on, and the link is started later."""
        try:
            self.program = confined.start(
                self.name, "fslab.fleet.link", self.settings, self.user, self.files, self._listen
            )
        except (FslabError, OSError) as error:
            self.end()
            self.failures += 1
            self.next_start = self.started + min(2.0 ** min(self.failures, 10) / 2, LONGEST_WAIT_S)
            self.tell(f"cannot start the connection to the scheduler: {error}")

    def end(self) -> None:
        """End the link and close the socket."""
        if self.program is not None:
            self.program.end()
        if self.listening is not None:
            with contextlib.suppress(OSError):
                self.listening.shutdown(
                    socket.SHUT_RDWR
                )  # wakes the thread that waits for connections; closing alone does not
            self.listening.close()
        self.program = self.listening = None

    def _listen(self, directory: Path) -> None:
        """Listen on a socket that only the link's user can connect to."""
        path = directory / link.SOCKET
        self.listening = socket.socket(socket.AF_UNIX)
        place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # a socket's path has at most 107 bytes; that of the directory may be longer
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
                time.sleep(1)  # too many open files, or the connection was aborted
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
        except ValueError:  # the link is untrusted and may send anything, as often as it can
            if not self.strange:
                self.tell("the link asked for what is no assignment")
            self.strange = True
        finally:
            places.release()


def _assignment(asked: bytes) -> str:
    """Return the assignment's name in a request. Raises ValueError if there is none."""
    request = texts.json_of(asked)
    wanted = request.get("assignment") if isinstance(request, dict) else None
    if not isinstance(wanted, str) or not is_word(wanted):
        raise ValueError("no assignment")
    return wanted


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the other end closed the connection. Waits for at most ``LOOK_S`` seconds."""
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(LOOK_S * 1000))
