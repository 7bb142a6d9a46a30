"""The program: sets up signals and standard streams, runs the command line, and turns errors into exit codes."""

import contextlib
import errno
import gc
import io
import os
import signal
import stat
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NoReturn

from fslab import safe_output
from fslab.errors import FULL_DISK, FslabError, InterruptedBySignal, NoSpaceError, UsageError
from fslab.names import shown
from fslab.system import mountinfo, signals

# Python searches for garbage after every 700 new objects. This takes a seventh of the start-up time, and finds
# nothing, because objects that imports create stay in use.
GARBAGE = 20_000
# Errors of writes to standard output if it is a file; EFBIG: setrlimit(2), RLIMIT_FSIZE.
_FULL = FULL_DISK | {errno.EFBIG}
# A name that is too long, a loop of links, a file in the place of a directory; what root may not read or write, what is
# full, or whose server has ended (FUSE, NFS).
_OF_PATHS = _FULL | {
    errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOTDIR, errno.EACCES, errno.EROFS, errno.ENOTCONN,
    errno.ESTALE,
}  # fmt: skip


def main() -> NoReturn:
    """Run the command line and exit with 0, the error's own code, or 128 + signal."""
    _open_standard_streams()
    if sys.flags.optimize > 1:
        print("fslab: its options are in docstrings: run it without -OO and PYTHONOPTIMIZE", file=sys.stderr)
        sys.exit(UsageError.exit_code)
    sys.excepthook = _print_bug
    signals.install()
    gc.set_threshold(GARBAGE)
    os.umask(os.umask(0o077) | stat.S_IWOTH)  # root works in no directory that others can write to
    safe_output.buffer_standard_output()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ★ and µ must not cause an error
    try:
        # A library may answer to the exception of a signal with its own error, as pydantic while it makes a model.
        code: int | str | None = 0
        try:
            with signals.kept():
                check_places(sys.argv[1:])
                from fslab.cli import app  # noqa: PLC0415 - after the handlers are in place

                app()
        except SystemExit as end:  # Click ends every command with it
            code = end.code
        sys.stdout.flush()
    except (FslabError, InterruptedBySignal) as error:
        _tell(str(error))
        code = error.exit_code
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE  # the reader (head, less) has ended
    except (OSError, RuntimeError) as error:
        full = isinstance(error, OSError) and error.errno in _FULL
        if (name := _unusable(error)) is not None:
            _tell(name)
            code = NoSpaceError.exit_code if full else UsageError.exit_code
        elif isinstance(error, OSError) and error.filename is None and (full or error.errno == errno.EIO):
            _tell(f"cannot write standard output: {error.strerror}")
            code = NoSpaceError.exit_code
        else:
            raise
    _drop_unwritten()
    gc.freeze()  # Python would search all objects for garbage once more: a tenth of the time of a short command
    sys.exit(code)


def check_places(args: Sequence[str]) -> None:
    """Raise MountError if the arguments, or variables of fslab and of XDG, name a place on a mount whose server does
    not answer: Typer asks for paths itself, in this process, which no signal would end."""
    if mountinfo.OWN.exists() and any(mount.is_served for mount in mountinfo.mounted()):
        from fslab.system import mounts  # noqa: PLC0415 - few machines have such mounts

        mounts.check_servers(_places(args))


def _places(args: Sequence[str]) -> Iterator[str]:
    """Yield what looks like a path. Of a variable, only an absolute one counts (XDG Base Directory Specification)."""
    for word in args:
        place = word.partition("=")[2] if word.startswith("-") else word
        if "/" in place or "." in place:
            yield place
    for name, value in os.environ.items():
        if name.startswith(("FSLAB_", "XDG_")) and value.startswith("/"):
            yield value


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):  # Ctrl-C also ends a reader, such as tee
        print(f"fslab: {shown(text)}", file=sys.stderr)


def _drop_unwritten() -> None:
    """Drop what standard output and standard error do not take. Python would write it at exit, print the error, and
    exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error that is not expected. It may quote a file or a store of others."""
    print(shown("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)


def _unusable(error: OSError | RuntimeError) -> str | None:
    """Return the message for an error that a path caused or the limit of open files; None for other errors."""
    if isinstance(error, OSError) and error.errno in _OF_PATHS and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if (
        isinstance(error, FileNotFoundError) and error.filename is None
    ):  # of getcwd(2), or tempfile's sentence
        gone = error.strerror == os.strerror(errno.ENOENT)
        return "the current directory was removed: change to another one" if gone else error.strerror
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return f"{error.strerror}: raise the limit (ulimit -n)"
    if str(error).startswith("Could not determine home directory"):  # pathlib's expanduser
        return "a path begins with '~', but that user has no home directory: write the whole path"
    # pathlib before Python 3.13 raises RuntimeError for a loop.
    return str(error) if str(error).startswith("Symlink loop from ") else None


def _open_standard_streams() -> None:
    """Open /dev/null for each closed standard stream. Otherwise the next opened file, a database or a disk, would get
    its descriptor, and with it the output of a program."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
            os.set_inheritable(opened, True)
            setattr(sys, name, open(opened, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
