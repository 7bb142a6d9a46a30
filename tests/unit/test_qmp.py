"""Tests of the QEMU monitor: which reply belongs to which command."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from fslab.errors import GuestError
from fslab.machine.kinds._qemu import Monitor


class Qemu(threading.Thread):
    """Replies to each command with its name. Delays the reply to a command in ``slow`` until the next command."""

    def __init__(self, line: socket.socket, slow: set[str]) -> None:
        super().__init__(daemon=True)
        self.line, self.slow = line, slow

    def run(self) -> None:
        self.say({"QMP": {"version": {}}})
        late: list[dict[str, object]] = []
        for text in self.line.makefile("rb"):
            asked = json.loads(text)
            reply = {"return": asked["execute"], "id": asked["id"]}
            if asked["execute"] in self.slow:
                late.append(reply)
                continue
            self.say({"event": "RESUME", "data": {"device": "disk-1"}})
            for message in (*late, reply):
                self.say(message)
            late.clear()

    def say(self, message: dict[str, object]) -> None:
        self.line.sendall(json.dumps(message).encode() + b"\n")


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    ours, theirs = socket.socketpair()
    with theirs:
        qemu = Qemu(theirs, {"stop"})
        qemu.start()
        made = Monitor(ours)
        yield made
        made.close()
        qemu.join()


def test_a_late_reply_is_not_taken_for_that_of_the_next_command(monitor: Monitor) -> None:
    assert monitor.ask("query-status") == "query-status"
    with pytest.raises(GuestError, match="does not answer"):
        monitor.ask("stop", timeout_s=0.05)
    assert monitor.ask("cont") == "cont"
    assert monitor.ask("query-block") == "query-block"


def test_an_event_between_replies_is_kept(monitor: Monitor) -> None:
    monitor.ask("query-status")
    monitor.wait_for("RESUME", "disk-1")
