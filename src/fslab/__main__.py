"""The program: signals, logging, and errors turned into exit codes. Nothing else."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from fslab.errors import FslabError, InterruptedBySignal


def main() -> NoReturn:
    """Run the command line and exit: 0, an error's own code, or 128 + signal."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _unwind)
    from fslab.cli import app  # noqa: PLC0415 - after the handlers are in place

    try:
        app()
        code = 0
    except FslabError as error:
        print(f"fslab: {error}", file=sys.stderr)
        code = error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has gone; nobody is left to tell. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    sys.exit(code)


def _unwind(signum: int, _frame: FrameType | None) -> NoReturn:
    """Leave by an exception, so that everything is undone on the way; once, so that undoing is not cut short."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _already_leaving)
    raise InterruptedBySignal(signum)


def _already_leaving(_signum: int, _frame: FrameType | None) -> None:
    os.write(2, b"fslab: putting everything back, one moment\n")


if __name__ == "__main__":
    main()
