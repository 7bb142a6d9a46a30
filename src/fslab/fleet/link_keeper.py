"""Keeps a machine's link to the scheduler running, and answers what it asks: to run an assignment, by its name."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab.fleet import confined, link
from fslab.names import is_word

LONGEST_WAIT_S = 30.0
AT_ONCE = 64
REQUEST_BYTES = 1024


@dataclass(kw_only=True, slots=True)
class LinkKeeper:
    """``run`` runs an assignment and returns when it is over; it is called in threads. ``files``: certificates;
    ``name``: of its directory."""

    name: str
    settings: Mapping[str, Any]
    files: Mapping[str, bytes]
    user: tuple[int, int] | None
    run: Callable[[str], object]
    tell: Callable[[str], object]
    program: confined.ConfinedProgram | None = None
    listening: socket.socket | None = None
    wait_s: float = 0.0
    next_start: float = 0.0
    started: float = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether it ended soon after its last start."""
        return self.wait_s > 1.0

    def keep(self) -> None:
        """Start it if it does not run; at most so often as its failures allow."""
        if self.program is not None and self.program.child.exit_code() is None:
            if time.monotonic() - self.started > LONGEST_WAIT_S:
                self.wait_s = 0.0
            return
        now = time.monotonic()
        if self.program is not None:
            lived = now - self.started > LONGEST_WAIT_S
            self.wait_s = 1.0 if lived else min(2 * max(self.wait_s, 1.0), LONGEST_WAIT_S)
            self.tell(
                f"no connection to the scheduler: {self.program.last_words() or 'it closed the connection'}"
            )
            self.end()
            self.next_start = now + self.wait_s
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
            self.listening.close()
        self.program = self.listening = None

    def _listen(self, directory: Path) -> None:
        """A socket that only the link's user can connect to."""
        path = directory / link.SOCKET
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
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
            except OSError:  # closed
                return
            if places.acquire(blocking=False):
                threading.Thread(target=self._answer, args=(connection, places), daemon=True).start()
            else:
                connection.close()

    def _answer(self, connection: socket.socket, places: threading.BoundedSemaphore) -> None:
        try:
            with connection, connection.makefile("rb") as asked:
                connection.settimeout(10)
                wanted = json.loads(asked.readline(REQUEST_BYTES)).get("assignment")
                if isinstance(wanted, str) and is_word(wanted):
                    self.run(wanted)
                    connection.sendall(b"over\n")
        except OSError:  # the link has ended
            pass
        except (ValueError, AttributeError) as error:  # whoever speaks for the link may say anything
            self.tell(f"the link asked for what is no assignment: {type(error).__name__}")
        finally:
            places.release()
