"""Signals that would end the program leave by one exception, and never in the middle of undoing something.

An exception raised inside a teardown would skip the rest of that teardown, so while a ``Teardown`` unwinds
a signal is only noted, and acted on when that is done.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from fslab.errors import InterruptedBySignal

# All that end a process by default and tell of no fault of its own (signal(7)); Python ignores SIGPIPE and SIGXFSZ.
CAUGHT = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
    signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT,
)  # fmt: skip


class _SignalState:
    """What the handler knows; there is one per process, as of the handlers."""

    shields = 0
    noted: int | None = None
    leaving = False


def install() -> None:
    """Make them raise InterruptedBySignal in the main thread, but for those that are ignored, as nohup(1) wants, or
    that the program handles itself."""
    for signum in CAUGHT:
        if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
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
