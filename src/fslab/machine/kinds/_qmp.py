"""QEMU's machine protocol (QMP) over a socket pair: commands, replies, and the events between them.

Source: QEMU documentation, "QMP Protocol Specification". Each line is one JSON object.
"""

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from fslab import texts
from fslab.errors import GuestError

TIMEOUT_S = 60.0


class Monitor:
    """The monitor of a running QEMU."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self._greeted = False
        self._sent = 0

    def ask(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """Run a command and return QEMU's reply. GuestError if QEMU reports an error or does not answer."""
        deadline = time.monotonic() + timeout_s
        if not self._greeted:
            self._next("QMP", command, deadline)
            self._greeted = True
            self.ask("qmp_capabilities", timeout_s=timeout_s)
        self._sent += 1
        request = {"execute": command, "id": self._sent}
        self._send({**request, **({"arguments": dict(arguments)} if arguments else {})}, command)
        return self._next("return", command, deadline)

    def close(self) -> None:
        """Close the socket. Can be called twice."""
        self._line.close()

    def wait_for(self, event: str, device: str) -> None:
        """Wait for an event of a device. GuestError at the timeout."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for seen in self._events:
                if seen["event"] == event and seen.get("data", {}).get("device") == device:
                    self._events.remove(seen)
                    return
            message = self._read(event, deadline)
            if "event" in message:
                self._events.append(message)

    def _next(self, key: str, command: str, deadline: float) -> Any:
        while True:
            message = self._read(command, deadline)
            if message.get("id", self._sent) != self._sent:
                continue  # the reply to a command whose time was over
            if "error" in message:
                raise GuestError(f"QEMU reports an error: {message['error'].get('desc')}", where=command)
            if "event" in message:
                self._events.append(message)
            if key in message:
                return message[key]

    def _send(self, message: Mapping[str, Any], command: str) -> None:
        try:
            self._line.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise GuestError(f"QEMU does not answer: {error}", where=command) from error

    def _read(self, command: str, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._rest:
            try:
                self._line.settimeout(max(0.01, deadline - time.monotonic()))
                data = self._line.recv(65536)
            except OSError as error:
                raise GuestError(f"QEMU does not answer: {error}", where=command) from error
            if not data:
                raise GuestError("QEMU has ended", where=command)
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\n")
        try:
            message: dict[str, Any] = texts.json_of(text)
        except ValueError as error:
            raise GuestError(f"cannot read QEMU's reply: {error}", where=command) from error
        return message
