"""systemd timers that a study stops during its trials: those that were active are started again.

A stopped timer starts no new job; a job that it started before continues.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fslab.errors import ToolFailedError, UnsupportedError, UsageError
from fslab.machine import tunables
from fslab.storage import UndoJournal
from fslab.system import proc

KIND = "timer"
RUNNING = Path("/run/systemd/system")  # sd_booted(3)
TIMEOUT_S = 30.0


def parse(value: str) -> tuple[str, ...]:
    """Names of timers, separated by blanks or commas; UsageError for what is none."""
    try:
        return tunables.timers(value)
    except ValueError as error:
        raise UsageError(str(error), where="tuning.stop_timers") from error


def check(running: Path = RUNNING) -> None:
    """UnsupportedError where no systemd runs."""
    if not running.is_dir() or shutil.which("systemctl") is None:
        raise UnsupportedError(
            "systemd does not run on this machine", where="tuning.stop_timers",
            hint="remove 'stop_timers' on this machine",
        )  # fmt: skip


def is_active_argv(name: str) -> list[str]:
    """Exit status 0 if the timer is active."""
    return ["systemctl", "is-active", "--quiet", "--", name]


def stop_argv(name: str) -> list[str]:
    """Stops it until it is started or the machine boots."""
    return ["systemctl", "stop", "--", name]


def start_argv(name: str) -> list[str]:
    """Starts it again."""
    return ["systemctl", "start", "--", name]


@contextmanager
def stopped(names: Sequence[str], journal: UndoJournal) -> Iterator[None]:
    """Stop those that are active; on leaving start these again, in reverse order."""
    if names:
        check()
    with ExitStack() as undo:
        for name in names:
            if not _is_active(name):
                continue
            undo.callback(_start_again, name, journal, journal.will_create(KIND, name))
            proc.run(stop_argv(name), timeout_s=TIMEOUT_S)
            if _is_active(name):
                raise ToolFailedError("is still active after it was stopped", where=name)
        yield


def start(name: str) -> None:
    """Start a timer that we stopped."""
    proc.run(start_argv(name), timeout_s=TIMEOUT_S)


def _is_active(name: str) -> bool:
    return proc.run(is_active_argv(name), check=False, timeout_s=TIMEOUT_S).returncode == 0


def _start_again(name: str, journal: UndoJournal, entry: str) -> None:
    start(name)
    journal.undone(entry)
