"""Stop systemd timers during the trials of a study, and start again those that were active.

A stopped timer starts no new job; a job that it started before continues.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fslab.errors import ToolFailedError, UnsupportedError
from fslab.storage import UndoJournal
from fslab.system import proc, tools

KIND = "timer"
RUNNING = Path("/run/systemd/system")  # sd_booted(3)
TIMEOUT_S = 30.0


def check(running: Path = RUNNING) -> None:
    """Raise UnsupportedError if systemd does not run."""
    if not running.is_dir() or tools.find("systemctl") is None:
        raise UnsupportedError(
            "systemd does not run on this machine",
            where="tuning.stop_timers",
            hint="remove 'stop_timers' on this machine",
        )


@contextmanager
def stopped(names: Sequence[str], journal: UndoJournal) -> Iterator[None]:
    """Stop the timers that are active. On exit, start these again in reverse order."""
    if names:
        check()
    with ExitStack() as undo:
        for name in names:
            if not _is_active(name):
                continue
            undo.callback(_start_again, name, journal, journal.will_create(KIND, name))
            proc.run(["systemctl", "stop", "--", name], timeout_s=TIMEOUT_S)
            if _is_active(name):
                raise ToolFailedError("is still active after it was stopped", where=name)
        yield


def start(name: str) -> None:
    """Start a timer that fslab stopped."""
    proc.run(["systemctl", "start", "--", name], timeout_s=TIMEOUT_S)


def _is_active(name: str) -> bool:
    argv = ["systemctl", "is-active", "--quiet", "--", name]
    return proc.run(argv, check=False, timeout_s=TIMEOUT_S).returncode == 0


def _start_again(name: str, journal: UndoJournal, entry: str) -> None:
    start(name)
    journal.undone(entry)
