"""Starts a program of fslab as a user without privileges, in a directory of its own that contains its settings.

For the two programs that speak Dask's protocol, because anyone with a certificate of the fleet can run code in them.
"""

import contextlib
import os
import pwd
import resource
import select
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from fslab.errors import ToolFailedError, UnsupportedError, UsageError
from fslab.system import files, paths, proc, trees

START_S = 60.0
SENDING_S = 30.0
TAIL_BYTES = 8192
FILE_BYTES = 16 << 20
# Dask reads all YAML files of DASK_CONFIG before it creates its loggers.
QUIET = (
    b"logging: {distributed: warning, distributed.client: warning, distributed.worker: warning, bokeh: error}"
)


@dataclass(kw_only=True, slots=True)
class ConfinedProgram:
    """A running program. ``directory``: its current directory and home, mode 0700; no file there is trusted once the
    program runs. ``log``: descriptor of an unnamed file with the program's output. ``input``: descriptor of a pipe to
    the program's standard input."""

    child: proc.Child
    directory: Path
    log: int
    input: int

    def end(self) -> None:
        """End the program and remove its directory."""
        self.child.end()
        os.close(self.log)
        os.close(self.input)
        _remove(self.directory)

    def send(self, line: bytes) -> None:
        """Write a line to its standard input. Raises BrokenPipeError if it has ended, TimeoutError if it does not
        read."""
        rest = line + b"\n"
        poller = select.poll()
        poller.register(self.input, select.POLLOUT)
        while rest:
            if not poller.poll(SENDING_S * 1000):
                raise TimeoutError("it does not read")
            rest = rest[os.write(self.input, rest) :]

    def last_words(self) -> str:
        """Return the last line that the program printed, at most 500 characters."""
        size = os.fstat(self.log).st_size
        return last_line(os.pread(self.log, TAIL_BYTES, max(0, size - TAIL_BYTES)))


def ids_of(user: str) -> tuple[int, int] | None:
    """Return the user and group id of ``user``; None if this process cannot change its user, or if ``user`` is root.

    Raises UsageError if there is no such user.
    """
    try:
        found = pwd.getpwnam(user)
    except KeyError as error:
        raise UsageError(f"there is no user '{user}'", where="link_user") from error
    return None if os.geteuid() != 0 or found.pw_uid == 0 else (found.pw_uid, found.pw_gid)


def check(user: tuple[int, int] | None) -> None:
    """Raise UnsupportedError if this user cannot run fslab: its directory may be unreadable for other users."""
    if user is None:
        return
    argv = [sys.executable, "-P", "-c", "import distributed, fslab.fleet.link"]
    log = os.memfd_create("fslab-check", os.MFD_CLOEXEC)
    try:
        child = proc.start(argv, output=log, cwd=Path("/"), user=user)
        code = child.wait(START_S)
        child.end()
    except ToolFailedError:
        code = None
    finally:
        os.close(log)
    if code != 0:
        raise UnsupportedError(
            f"user {user[0]} cannot run fslab with its fleet support ({sys.executable})",
            hint="install it where all users can read it, such as /opt/fslab; or let it run as root",
        )


def place(name: str) -> Path:
    """Create and return a directory for a program (mode 0700), named ``NAME-`` and eight random characters.

    Removes leftover directories of the same name as far as possible.
    """
    files.own_directory(paths.fleet(), 0o711)  # a program without privileges must be able to pass through it
    for left in paths.fleet().glob(f"{name}-????????"):
        _remove(left)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=paths.fleet()))


def _remove(directory: Path) -> None:
    """Remove a directory as far as possible. Its content is untrusted: it may still grow."""
    with contextlib.suppress(OSError):
        trees.remove(directory)


def start(
    name: str,
    module: str,
    settings: BaseModel,
    user: tuple[int, int] | None,
    files: Mapping[str, bytes],
    prepare: Callable[[Path], object] = lambda _: None,
) -> ConfinedProgram:
    """Start a module in a directory from ``place(name)``, which contains ``files``, ``settings.json`` and what
    ``prepare`` adds."""
    directory = place(name)
    log = os.memfd_create("fslab-log", os.MFD_CLOEXEC)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    try:
        contents = {**files, "settings.json": settings.model_dump_json().encode(), "dask.yaml": QUIET}
        for file, content in contents.items():
            path = directory / file
            path.write_bytes(content)
            path.chmod(0o600)
            if user is not None:
                os.chown(path, *user)
        prepare(directory)
        if user is not None:
            os.chown(directory, *user)  # last: afterwards its user can create links there; fslab follows none
        env = {"HOME": str(directory), "TMPDIR": str(directory), "DASK_CONFIG": str(directory)}
        argv = [sys.executable, "-P", "-m", module]
        child = proc.start(argv, output=log, stdin=reading, cwd=directory, env=env, user=user)
    except BaseException:
        os.close(log)
        os.close(writing)
        _remove(directory)
        raise
    finally:
        os.close(reading)
    return ConfinedProgram(child=child, directory=directory, log=log, input=writing)


def limit_itself(memory_bytes: int) -> None:
    """Limit this confined program's memory, its output and each file that it writes; not the number of files.

    The limit of memory is one of private writable mappings (RLIMIT_DATA, getrlimit(2)). A program that reaches it gets
    MemoryError, ends, and is started again.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def last_line(said: bytes) -> str:
    """Return the last non-empty line of a text, at most 500 characters."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""
