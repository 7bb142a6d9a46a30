"""Signals that would end the program leave by one exception, and never in the middle of undoing something.

An exception raised inside a teardown would skip the rest of that teardown, so while a ``Teardown`` unwinds
a signal is only noted, and acted on when that is done.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from fslab.errors import InterruptedBySignal

# All that end a process by default and tell of no fault of its own (signal(7)); Python ignores SIGPIPE and SIGXFSZ.
CAUGHT = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
    signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT,
)  # fmt: skip

AGAIN_S = 5.0  # a further signal is one as the first was


class _SignalState:
    """What the handler knows; there is one per process, as of the handlers."""

    shields = 0
    noted: int | None = None
    left_at: float | None = None
    raised: InterruptedBySignal | None = None


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


@contextmanager
def kept() -> Iterator[None]:
    """Raise a signal that arrived in this block, also if the block lost it: a library's error during clean-up replaced
    it, or a callback could not raise it."""
    before = _SignalState.raised
    try:
        yield
    except Exception as error:
        if lost := _lost_since(before):
            raise lost from error
        raise
    if lost := _lost_since(before):
        raise lost


def _lost_since(before: InterruptedBySignal | None) -> InterruptedBySignal | None:
    is_main = threading.current_thread() is threading.main_thread()
    return _SignalState.raised if is_main and _SignalState.raised is not before else None


class Teardown(ExitStack):
    """An ExitStack whose unwinding no signal cuts short."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Unwind, shielded."""
        with shielded():
            return super().__exit__(kind, error, trace)


def _handle(signum: int, _frame: FrameType | None) -> None:
    # What was raised can be lost: Python ignores what is raised in some callbacks, such as those of weak references.
    left_s = None if _SignalState.left_at is None else time.monotonic() - _SignalState.left_at
    if _SignalState.shields or (left_s is not None and left_s < AGAIN_S):
        os.write(2, b"fslab: putting everything back, one moment\n")
        if left_s is None and _SignalState.noted is None:
            _SignalState.noted = signum
        return
    _leave(signum)


def _leave(signum: int) -> None:
    # Everything after this is unwinding.
    _SignalState.left_at, _SignalState.raised = time.monotonic(), InterruptedBySignal(signum)
    raise _SignalState.raised
