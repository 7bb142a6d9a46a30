"""Starts a program of ours as a user without privileges, with a directory of its own that has what it needs to know.

For the two programs that speak Dask's protocol: whoever has a certificate of the fleet can run code in them.
"""

import contextlib
import json
import os
import pwd
import resource
import select
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fslab.errors import UnsupportedError, UsageError
from fslab.system import paths, proc

START_S = 60.0
SENDING_S = 30.0
TAIL_BYTES = 8192
FILE_BYTES = 16 << 20
# Dask reads all YAML files of DASK_CONFIG before its loggers are made.
QUIET = (
    b"logging: {distributed: warning, distributed.client: warning, distributed.worker: warning, bokeh: error}"
)


@dataclass(kw_only=True, slots=True)
class ConfinedProgram:
    """A running program. ``directory`` is its own: mode 0700, current directory and home. Nothing there is trusted once
    it runs: what it prints goes to ``log``, a file that has no name; ``input`` is the end of a pipe to it."""

    child: proc.Child
    directory: Path
    log: int
    input: int

    def end(self) -> None:
        """End it and remove its directory."""
        self.child.end()
        os.close(self.log)
        os.close(self.input)
        _remove(self.directory)

    def send(self, line: bytes) -> None:
        """Write a line to its standard input; BrokenPipeError if it has ended, TimeoutError if it does not read."""
        rest = line + b"\n"
        poller = select.poll()
        poller.register(self.input, select.POLLOUT)
        while rest:
            if not poller.poll(SENDING_S * 1000):
                raise TimeoutError("it does not read")
            rest = rest[os.write(self.input, rest) :]

    def last_words(self) -> str:
        """The last line that it printed, 500 characters at most."""
        size = os.fstat(self.log).st_size
        return last_line(os.pread(self.log, TAIL_BYTES, max(0, size - TAIL_BYTES)))


def ids_of(user: str) -> tuple[int, int] | None:
    """User and group id; None where this process cannot change its user, or is that one already. UsageError if there is
    no such user."""
    try:
        found = pwd.getpwnam(user)
    except KeyError as error:
        raise UsageError(f"there is no user '{user}'", where="link_user") from error
    return None if os.geteuid() != 0 or found.pw_uid == 0 else (found.pw_uid, found.pw_gid)


def check(user: tuple[int, int] | None) -> None:
    """UnsupportedError if this user cannot run our programs: fslab may be installed where others cannot read."""
    if user is None:
        return
    argv = [sys.executable, "-c", "import distributed, fslab.fleet.link"]
    log = os.memfd_create("fslab-check", os.MFD_CLOEXEC)
    try:
        child = proc.start(argv, output=log, cwd=Path("/"), user=user)
        code = child.wait(START_S)
        child.end()
    except PermissionError:
        code = None
    finally:
        os.close(log)
    if code != 0:
        raise UnsupportedError(
            f"user {user[0]} cannot run fslab with its fleet support ({sys.executable})",
            hint="install it where all users can read it, such as /opt/fslab; or let it run as root",
        )


def place(name: str) -> Path:
    """A new directory for a program (mode 0700), ``NAME-`` and some characters; what was left of that name is removed
    as far as it can be."""
    paths.fleet().mkdir(parents=True, exist_ok=True)
    paths.fleet().chmod(0o711)  # a program without privileges passes through
    for left in paths.fleet().glob(f"{name}-????????"):
        _remove(left)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=paths.fleet()))


def _remove(directory: Path) -> None:
    """Whatever is in it was made by who knows whom: it may be too deep, or grow meanwhile."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(directory)


def start(
    name: str,
    module: str,
    settings: Mapping[str, Any],
    user: tuple[int, int] | None,
    files: Mapping[str, bytes],
    prepare: Callable[[Path], object] = lambda _: None,
) -> ConfinedProgram:
    """Start a module in ``place(name)``; there it finds ``files``, ``settings.json`` and what ``prepare`` makes."""
    directory = place(name)
    log = os.memfd_create("fslab-log", os.MFD_CLOEXEC)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    try:
        contents = {**files, "settings.json": json.dumps(settings).encode(), "dask.yaml": QUIET}
        for file, content in contents.items():
            path = directory / file
            path.write_bytes(content)
            path.chmod(0o600)
            if user is not None:
                os.chown(path, *user)
        prepare(directory)
        if user is not None:
            os.chown(directory, *user)  # last: from here on its user can put links there, and we follow none
        env = {"HOME": str(directory), "TMPDIR": str(directory), "DASK_CONFIG": str(directory)}
        argv = [sys.executable, "-m", module]
        child = proc.start(argv, output=log, stdin=reading, cwd=directory, env=env, user=user)
    except BaseException:
        os.close(log)
        os.close(writing)
        _remove(directory)
        raise
    finally:
        os.close(reading)
    return ConfinedProgram(child=child, directory=directory, log=log, input=writing)


def limit_itself() -> None:
    """For a confined program: what it prints, and each file that it makes, has a bound; how many it makes has not."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def last_line(said: bytes) -> str:
    """The last line of a text that is not empty, 500 characters at most."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""
