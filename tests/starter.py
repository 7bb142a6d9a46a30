"""Runs fslab in processes forked from one that has imported it. They start in 10 ms instead of a second of CPU time.

Each process has its own arguments, environment, directory, user, files, signals and exit status. Tests of the start
itself (locale, response time) use ``subprocess`` instead.
"""

from __future__ import annotations

import atexit
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
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the forking process, which runs this file
from tests import caches
from tests.limits import wait_for

# Numerical libraries start threads at import, but only a process with one thread can fork safely.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
LATE = {
    "numpy",
    "scipy.special",
    "rich.table",
    "rich.progress",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",
}
ROUND_S = 0.005  # of fslab.system.cpu_speed, instead of 50 ms
NOT_IMPORTED = ("fslab.campaign.guest_main",)  # the first process of a guest


class Forker:
    """The process that imports fslab and forks for each command. All workers of a session share it.

    It imports nothing before the first worker connects, and ends with the process that made it.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "starter"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(self.path))
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listening.fileno())],
                pass_fds=[listening.fileno()],
                stdin=subprocess.PIPE,
                env={**_plain(os.environ), **ONE_THREAD},
            )

    def close(self) -> None:
        """End the process. It does not wait for running commands."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Started:
    """A command that runs, with what tests use of ``subprocess.Popen``."""

    def __init__(self, reply: socket.socket, files: list[int]) -> None:
        self._reply, self._files, self._rest = reply, files, b""
        self.returncode: int | None = None
        self.pid = self._number()

    def _number(self) -> int:
        """Return the next line of the reply: first the process id, at the end the exit status."""
        while b"\n" not in self._rest:
            self._rest += (piece := self._reply.recv(64))
            assert piece, "the forking process has ended"
        line, _, self._rest = self._rest.partition(b"\n")
        return int(line)

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        with contextlib.suppress(TimeoutError, BlockingIOError):
            return self.wait(timeout=0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status. Raises TimeoutError after ``timeout`` seconds."""
        if self.returncode is None:
            self._reply.settimeout(timeout)
            self.returncode = self._number()
            self._reply.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end and return the output and the error output. TimeoutError as of ``wait``."""
        self.wait(timeout)
        out, err = map(_text, self._files)
        for file in self._files:
            os.close(file)
        return out, err

    def first_line(self) -> str:
        """Wait for the first line of the output and return it."""
        wait_for(lambda: b"\n" in os.pread(self._files[0], 4096, 0))
        return os.pread(self._files[0], 4096, 0).decode().splitlines()[0]

    def send_signal(self, signum: int) -> None:
        """Send a signal to it, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    def kill(self) -> None:
        """Send SIGKILL to it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class Starter:
    """The tests' side: asks the ``Forker`` at ``path`` to run commands."""

    def __init__(self, path: Path) -> None:
        self._path = os.environ.get("PYTHONPATH")
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.connect(str(path))

    def run(
        self, argv: list[str], *, cwd: Path, timeout_s: float, user: int | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run one fslab command to its end. ``more``: as of ``start``.

        Raises TimeoutError after ``timeout_s`` (subprocess.TimeoutExpired if PYTHONPATH has changed). ``user``: the uid
        to run as.
        """
        # A test of plugins has changed it, and Python reads it only when it starts.
        if os.environ.get("PYTHONPATH") != self._path:
            return subprocess.run(
                argv, capture_output=True, text=True, cwd=cwd, timeout=timeout_s, user=user, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        process = self.start(argv, cwd=cwd, user=user, **more)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except TimeoutError:
            process.kill()
            raise
        return subprocess.CompletedProcess(argv, process.wait(), out, err)

    def start(
        self,
        argv: list[str],
        *,
        cwd: Path,
        user: int | None = None,
        terminal: int | None = None,
        beside: int | None = None,
        **environment: str,
    ) -> Started:
        """Start one fslab command, with the environment of this process and these variables.

        ``terminal``: descriptor for its standard streams, which is closed here; by default they are files, and empty
        input. ``beside``: a process in whose namespaces of network and host name it runs.
        """
        request = {
            "argv": argv,
            "cwd": str(cwd),
            "environment": {**os.environ, **environment},
            "user": user,
            "may_drop": caches.allowed(),
            "terminal": terminal is not None,
            "beside": beside,
        }
        ours, theirs = socket.socketpair()
        files = [os.memfd_create(name) for name in ("stdout", "stderr")] if terminal is None else []
        with theirs:
            sent = files if terminal is None else [terminal, terminal]
            socket.send_fds(self._channel, [json.dumps(request).encode()], [*sent, theirs.fileno()])
        if terminal is not None:
            os.close(terminal)
        return Started(ours, files)

    def close(self) -> None:
        self._channel.close()


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
    from fslab.system import cpu_speed

    cpu_speed.ROUND_S = ROUND_S
    _build_commands()
    environment = import_module("fslab.report.page.render")._environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a library started a thread"


def _build_commands() -> None:
    """Build the tree of commands once: typer does so at each start, for 10 ms."""
    typer, app = import_module("typer.main"), import_module("fslab.cli").app
    build: Callable[[Any], Any] = typer.get_command
    built = build(app)
    built.commands["crash"].list_commands(None)  # loads them
    vars(typer)["get_command"] = lambda each: built if each is app else build(each)


class _Server:
    """The forking process: accepts workers, forks for each request, and reports the exit status of each child."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._channels: dict[int, socket.socket] = {}
        self._running: dict[int, tuple[int, int]] = {}

    def serve(self) -> dict[str, Any] | None:
        """Return the request in each child, and None in the parent when standard input ends."""
        while True:
            waiting = [0, self._listening.fileno(), *self._channels, *self._running]
            for ready in select.select(waiting, [], [])[0]:
                if ready == 0:
                    return None
                if ready == self._listening.fileno():
                    self._accept()
                elif ready in self._running:
                    _report(ready, *self._running.pop(ready))
                elif (request := self._fork(ready)) is not None:
                    return request

    def _accept(self) -> None:
        if not self._channels:
            _import_all()
        channel, _ = self._listening.accept()
        self._channels[channel.fileno()] = channel

    def _fork(self, channel: int) -> dict[str, Any] | None:
        """Fork for the request that waits in a worker's channel. Return the request in the child."""
        message, files, _, _ = socket.recv_fds(self._channels[channel], 1 << 20, 3)
        if not message:
            self._channels.pop(channel).close()
            return None
        pid = os.fork()
        if pid == 0:
            for each in (self._listening, *self._channels.values()):
                each.detach()
            return _become(json.loads(message), *files)
        *written, reply = files
        for file in written:
            os.close(file)
        os.write(reply, f"{pid}\n".encode())
        self._running[os.pidfd_open(pid)] = (pid, reply)
        return None


def _report(ended: int, pid: int, reply: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(reply, f"{code}\n".encode())
    os.close(reply)
    os.close(ended)


def _become(request: dict[str, Any], out: int, err: int, _reply: int) -> dict[str, Any]:
    """Set the files, environment, directory, user and arguments of this process as requested."""
    if request["terminal"]:
        os.dup2(out, 0)
    else:
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    if request["terminal"]:  # those of the forking process can seek
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, 1) for n, mode in enumerate("rww"))
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    if request["beside"] is not None:
        from fslab.system import syscalls

        for kind in ("net", "uts"):
            with Path(f"/proc/{request['beside']}/ns/{kind}").open() as namespace:
                syscalls.setns(namespace.fileno(), 0)
    os.chdir(request["cwd"])
    if request["user"] is not None:
        os.setreuid(request["user"], request["user"])
    sys.argv = request["argv"]
    caches.allow(request["may_drop"])
    caches.guard()
    return request


def _run() -> None:
    """Run fslab and end this process as Python does, but leave its memory to the kernel: releasing each object would
    copy the pages of the forking process one by one, which takes as long as a short command."""
    from fslab.__main__ import main

    try:
        main()
    except SystemExit as ended:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)


if __name__ == "__main__":
    if _Server(socket.socket(fileno=int(sys.argv[1]))).serve() is not None:
        _run()
