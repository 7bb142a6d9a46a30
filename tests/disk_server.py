"""Runs fslab-disk for tests."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import loops
from tests.limits import LIMIT_S

from fslab.system import loop_devices

MIB = 1 << 20
SIZE = 256 * MIB
BINARY = Path(sys.executable).parent / "fslab-disk"


class Server:
    """A running server with one disk of ``size`` bytes, and its control socket."""

    def __init__(self, home: Path, *options: str, size: int = SIZE) -> None:
        self.directory = home / "fslab-disk"
        self.control = home / "control"
        self.disk = self.directory / "disk"
        argv = [str(BINARY), "serve", str(self.directory), "--control", str(self.control)]
        argv += ["--size", str(size), *options]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server did not become ready"
        self.ready = json.loads(line)
        self.loop: Path | None = None

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.control))
            connection.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile().readline())
        return answer

    def attach(self) -> Path:
        self.loop = loops.attached(self.disk, direct=True)
        return self.loop

    def clean(self) -> None:
        subprocess.run([BINARY, "clean", str(self.directory)], check=True, timeout=LIMIT_S)

    def end(self) -> None:
        with self.process:  # closes its output even if cleaning fails
            try:
                with contextlib.suppress(OSError):
                    self.clean()
            finally:
                self.process.kill()
        if self.loop is not None:
            assert not loop_devices.attached_to(self.disk)
        assert not self.directory.exists()
