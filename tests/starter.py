"""Runs fslab in processes forked from one that has imported it. They start in 10 ms instead of a second of CPU time.

Each process has its own arguments, environment, directory, user, files, signals and exit status. Tests of the start
itself (terminal, locale, response time) use ``subprocess`` instead.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the forking process, which runs this file
from tests import caches

# Numerical libraries start threads at import, but only a process with one thread can fork safely.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
LATE = {"alembic.command", "numpy", "scipy.special", "rich.table", "rich.progress", "typer._adapters"}
# Modules that only Alembic imports, and that of the first process of a guest.
NOT_IMPORTED = ("fslab.store.migrations.env", "fslab.store.migrations.versions", "fslab.campaign.guest_main")


class Starter:
    """The tests' side: starts a process that imports fslab and forks for each ``run``."""

    def __init__(self) -> None:
        self._path = os.environ.get("PYTHONPATH")
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, env={**_plain(os.environ), **ONE_THREAD},
            )  # fmt: skip

    def run(
        self, argv: list[str], *, cwd: Path, timeout_s: float, user: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one fslab command to its end, with the environment of this process.

        Raises TimeoutError after ``timeout_s`` (subprocess.TimeoutExpired if PYTHONPATH has changed). ``user``: the uid
        to run as.
        """
        # A test of plugins has changed it, and Python reads it only when it starts.
        if os.environ.get("PYTHONPATH") != self._path:
            return subprocess.run(
                argv, capture_output=True, text=True, cwd=cwd, timeout=timeout_s, user=user, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        request = {
            "argv": argv,
            "cwd": str(cwd),
            "environment": dict(os.environ),
            "user": user,
            "may_drop": caches.allowed(),
        }
        ours, theirs = socket.socketpair()
        files = [os.memfd_create(name) for name in ("stdout", "stderr")]
        with ours, contextlib.ExitStack() as close:
            for file in files:
                close.callback(os.close, file)
            with theirs:
                message = json.dumps(request).encode()
                socket.send_fds(self._channel, [message], [*files, theirs.fileno()])
            with ours.makefile("r") as said:
                ours.settimeout(timeout_s)
                pid = int(said.readline())
                try:
                    code = int(said.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise
            out, err = (_text(file) for file in files)
        return subprocess.CompletedProcess(argv, code, out, err)

    def close(self) -> None:
        """End the forking process. It does not wait for running commands."""
        self._channel.close()
        self._process.wait()


def _plain(environment: Any) -> dict[str, str]:
    """Return the environment without the variables of a single test."""
    return {
        key: text for key, text in environment.items() if not key.startswith(("XDG_", "FSLAB_", "PYTEST_"))
    }


def _text(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file)) as stream:
        return stream.read()


def _import_all() -> None:
    package = import_module("fslab")
    for module in pkgutil.walk_packages(package.__path__, "fslab."):
        if not module.name.startswith(NOT_IMPORTED):
            import_module(module.name)
    for name in LATE:
        import_module(name)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a library started a thread"


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and report the exit status of each child.

    Returns the request in each child, and None in the parent when the other end closes the channel.
    """
    running: dict[int, tuple[int, int]] = {}
    while True:
        for ready in select.select([channel.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, reply = running.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):
                    os.write(reply, f"{code}\n".encode())
                os.close(reply)
                os.close(ready)
                continue
            message, files, _, _ = socket.recv_fds(channel, 1 << 20, 3)
            if not message:
                return None
            pid = os.fork()
            if pid == 0:
                channel.detach()
                return _become(json.loads(message), *files)
            *written, reply = files
            for file in written:
                os.close(file)
            os.write(reply, f"{pid}\n".encode())
            running[os.pidfd_open(pid)] = (pid, reply)


def _become(request: dict[str, Any], out: int, err: int, _reply: int) -> dict[str, Any]:
    """Set the files, environment, directory, user and arguments of this process as requested."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    if request["user"] is not None:
        os.setreuid(request["user"], request["user"])
    sys.argv = request["argv"]
    caches.allow(request["may_drop"])
    caches.guard()
    return request


if __name__ == "__main__":
    _import_all()
    if _serve(socket.socket(fileno=int(sys.argv[1]))) is not None:
        from fslab.__main__ import main

        main()
