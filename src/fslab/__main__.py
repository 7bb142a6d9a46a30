"""The program: signals, logging, and errors turned into exit codes. Nothing else."""

import errno
import gc
import io
import os
import signal
import sys
from typing import NoReturn

from fslab import outputs
from fslab.errors import FslabError, InterruptedBySignal, NoSpaceError, UsageError
from fslab.names import shown
from fslab.system import signals

# Python looks for garbage after each 700 new objects, a seventh of the time of a start: imports make objects that stay.
GARBAGE = 20_000
# What writing may fail with where standard output is a file; EFBIG: setrlimit(2), RLIMIT_FSIZE.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def main() -> NoReturn:
    """Run the command line and exit: 0, an error's own code, or 128 + signal."""
    _open_standard_streams()
    signals.install()
    gc.set_threshold(GARBAGE)
    outputs.buffer_standard_output()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ★ and µ is no reason to fail
    from fslab.cli import app  # noqa: PLC0415 - after the handlers are in place

    try:
        app()
        sys.stdout.flush()
        code = 0
    except (FslabError, InterruptedBySignal) as error:
        print(f"fslab: {shown(str(error))}", file=sys.stderr)
        code = error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has gone. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except (OSError, RuntimeError) as error:
        if (name := _unusable(error)) is not None:
            print(f"fslab: {shown(name)}", file=sys.stderr)
            sys.exit(UsageError.exit_code)
        if (
            not isinstance(error, OSError)
            or error.errno not in {*_FULL, errno.EIO}
            or error.filename is not None
        ):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"fslab: cannot write standard output: {error.strerror}", file=sys.stderr)
        code = NoSpaceError.exit_code
    sys.exit(code)


def _unusable(error: OSError | RuntimeError) -> str | None:
    """What is wrong with a name that nothing can have: too long, or a link that leads to itself."""
    if isinstance(error, OSError) and error.errno in {errno.ENAMETOOLONG, errno.ELOOP} and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    # pathlib before Python 3.13 has an error of its own for it.
    return str(error) if str(error).startswith("Symlink loop from ") else None


def _open_standard_streams() -> None:
    """Closed ones are /dev/null: the next file that is opened, a database or a disk, would have such a number, and get
    what a program prints."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(opened, True)
            setattr(sys, name, open(opened, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()
