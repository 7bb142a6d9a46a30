"""A small process that outlives fslab: when fslab is killed, it ends the guests and undoes the rest.

Otherwise a guest would continue to run. ``python -m fslab.campaign.watchdog CAMPAIGN`` waits for the end of a pipe.
When it is dismissed, it exits without doing anything.
"""

import contextlib
import os
import sys
import time
from dataclasses import dataclass

from fslab.errors import BusyError
from fslab.system import paths, proc

DISMISSED = b"."
BUSY_LIMIT_S = 10.0
DISMISS_LIMIT_S = 5.0


@dataclass(kw_only=True, slots=True)
class Watchdog:
    """The watchdog of one campaign, as fslab sees it. Closing ``pipe`` without a dismissal triggers it."""

    pipe: int
    child: proc.Child

    def dismiss(self) -> None:
        """Make the watchdog exit without doing anything."""
        with contextlib.suppress(BrokenPipeError):  # the watchdog has ended already
            os.write(self.pipe, DISMISSED)
        os.close(self.pipe)
        self.child.wait(DISMISS_LIMIT_S)
        self.child.end()


def start(campaign: str) -> Watchdog:
    """Start the watchdog of a campaign. It has its own session and does not have the campaign's mark."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    quiet = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        argv = [sys.executable, "-P", "-m", "fslab.campaign.watchdog", campaign]
        child = proc.start(argv, output=quiet, stdin=reading, env=paths.environment(), kept=True)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
        os.close(quiet)
    return Watchdog(pipe=writing, child=child)


def main(campaign: str) -> None:
    """Wait for the end of the pipe; then undo the campaign, unless dismissed."""
    if os.read(0, 1) == DISMISSED:
        return
    from fslab.campaign import cleanup  # noqa: PLC0415 - not needed as a rule

    deadline = time.monotonic() + BUSY_LIMIT_S
    while True:
        try:
            cleanup.clean(campaign)
        except BusyError:  # the killed process still holds the journal's lock
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1])
