"""SIGINT, SIGTERM and SIGHUP leave by one exception, and never in the middle of undoing something.

An exception raised inside a teardown would skip the rest of that teardown, so while a ``Teardown`` unwinds
a signal is only noted, and acted on when that is done.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from fslab.errors import InterruptedBySignal

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _SignalState:
    """What the handler knows; there is one per process, as of the handlers."""

    shields = 0
    noted: int | None = None
    leaving = False


def install() -> None:
    """Make the three signals raise InterruptedBySignal in the main thread."""
    for signum in CAUGHT:
        signal.signal(signum, _handle)


@contextmanager
def shielded() -> Iterator[None]:
    """Put off signals until the block is done; then the first of them raises. Blocks may nest."""
    _SignalState.shields += 1
    try:
        yield
    finally:
        _SignalState.shields -= 1
    # An error of the block comes first; a signal that was noted waits for the next block's end.
    if _SignalState.shields == 0 and _SignalState.noted is not None:
        signum, _SignalState.noted = _SignalState.noted, None
        _leave(signum)


class Teardown(ExitStack):
    """An ExitStack whose unwinding no signal cuts short."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Unwind, shielded."""
        with shielded():
            return super().__exit__(kind, error, trace)


def _handle(signum: int, _frame: FrameType | None) -> None:
    if _SignalState.leaving or _SignalState.shields:
        os.write(2, b"fslab: putting everything back, one moment\n")
        if not _SignalState.leaving and _SignalState.noted is None:
            _SignalState.noted = signum
        return
    _leave(signum)


def _leave(signum: int) -> None:
    # Once: everything after this is unwinding.
    _SignalState.leaving = True
    raise InterruptedBySignal(signum)
