"""Turn signals that would end the program into one exception, and never raise it during a teardown.

An exception inside a teardown would skip the rest of that teardown. So while a ``Teardown`` unwinds, a signal is only
noted; the exception is raised when the teardown is done.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from fslab.errors import InterruptedBySignal

# All signals that end a process by default and report no fault of it (signal(7)). Python ignores SIGPIPE and SIGXFSZ.
CAUGHT = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
    signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT,
)  # fmt: skip

AGAIN_S = 5.0  # a further signal raises again only after this time


_counting = threading.Lock()  # several threads may have shields; the handler only reads their number


class _SignalState:
    """The state of the signal handler; like handlers, there is one per process."""

    shields = 0
    noted: int | None = None
    left_at: float | None = None
    raised: InterruptedBySignal | None = None


def install() -> None:
    """Make these signals raise InterruptedBySignal in the main thread. Signals that are ignored, as under nohup(1), or
    that already have a handler are not changed.

    Whoever started this program can have blocked signals, and have told the kernel to reap its children.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
    for signum in CAUGHT:
        if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signum, _handle)


@contextmanager
def shielded() -> Iterator[None]:
    """Delay signals until the block is done; then raise the exception of the first one. Blocks may nest."""
    with _counting:
        _SignalState.shields += 1
    try:
        yield
    finally:
        with _counting:
            _SignalState.shields -= 1
    # An error of the block takes precedence; a noted signal is then raised at the end of the next block.
    if _SignalState.shields == 0 and _SignalState.noted is not None:
        signum, _SignalState.noted = _SignalState.noted, None
        _leave(signum)


@contextmanager
def kept() -> Iterator[None]:
    """Raise the exception of a signal that arrived in this block, even if it was lost: a library's error during
    clean-up replaced it, or it was raised in a callback that ignores exceptions."""
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


@contextmanager
def limited(limit_s: float, late: Exception) -> Iterator[None]:
    """Raise ``late`` in the block after ``limit_s`` of CPU time, also in a regular expression that never ends. Only in
    the main thread, which alone gets signals: elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    runs = True

    def end(_signum: int, _frame: FrameType | None) -> None:
        if runs:
            raise late

    former = signal.signal(signal.SIGVTALRM, end)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
        try:
            yield
        finally:
            runs = False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


class Teardown(ExitStack):
    """An ExitStack whose unwinding no signal interrupts."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Unwind; signals are delayed until that is done."""
        with shielded():
            return super().__exit__(kind, error, trace)


def _handle(signum: int, frame: FrameType | None) -> None:
    # The exception can be lost: Python ignores exceptions in some callbacks, such as those of weak references.
    left_s = None if _SignalState.left_at is None else time.monotonic() - _SignalState.left_at
    if _SignalState.shields or _unwinds(frame) or (left_s is not None and left_s < AGAIN_S):
        os.write(2, b"fslab: cleaning up, please wait\n")
        if left_s is None and _SignalState.noted is None:
            _SignalState.noted = signum
        return
    _leave(signum)


def _unwinds(frame: FrameType | None) -> bool:
    """Return whether a teardown is on the stack, also one that has just begun and has no shield yet."""
    while frame is not None and frame.f_code is not Teardown.__exit__.__code__:
        frame = frame.f_back
    return frame is not None


def _leave(signum: int) -> None:
    # From here on, the program only unwinds.
    _SignalState.left_at, _SignalState.raised = time.monotonic(), InterruptedBySignal(signum)
    raise _SignalState.raised
