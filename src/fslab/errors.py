"""Every failure a user can meet: what went wrong, where, and what to do about it, with an exit code.

Raised anywhere, caught once in ``__main__``. Anything that is not an FslabError is a bug and shows its
traceback. This module starts nothing and imports nothing of ours.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum

NEAR = 0.6  # of two equal names 1: below it, names share letters by chance ("data", "diratime": 0.5)


class FailureClass(StrEnum):
    """Why a trial yielded no usable figure; stored with it as ``failed:<class>``."""

    UNSUPPORTED = "unsupported"
    TOOL_MISSING = "tool_missing"
    NO_SPACE = "no_space"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    MOUNT = "mount"
    MKFS = "mkfs"
    OUTPUT = "output"
    GUEST_PANICKED = "guest_panicked"
    GUEST_HUNG = "guest_hung"
    GUEST_LOST = "guest_lost"


class FslabError(Exception):
    """What failed, where (a file, a device, a key), and what the user can do.

    ``failure`` is the class that a trial is stored under when this error ended it.
    """

    exit_code = 1
    failure = FailureClass.CRASHED

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  → {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"


class UsageError(FslabError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class PluginError(FslabError):
    """A plug-in cannot be loaded, is unsafe to load, or has a name that is taken."""

    exit_code = 4
    failure = FailureClass.UNSUPPORTED


class StudyError(FslabError):
    """A study file with mistakes: all of them, each with its line."""

    exit_code = 2


class UnsafeError(FslabError):
    """Going on could destroy data that is not ours."""

    exit_code = 3


class UnsupportedError(FslabError):
    """This kernel or machine cannot do it."""

    exit_code = 4
    failure = FailureClass.UNSUPPORTED


class ToolMissingError(FslabError):
    """A program that is needed is not installed."""

    exit_code = 4
    failure = FailureClass.TOOL_MISSING


class NeedsRootError(FslabError):
    """The operation needs privileges that this user lacks."""

    exit_code = 4


class NoSpaceError(FslabError):
    """A disk, a memory file system or a file system under test is full."""

    exit_code = 5
    failure = FailureClass.NO_SPACE


class ToolFailedError(FslabError):
    """A program that we started ended with an error; carries the end of its stderr."""

    exit_code = 6


class ToolTimeoutError(FslabError):
    """A program that we started passed its time limit and was ended."""

    exit_code = 6
    failure = FailureClass.TIMED_OUT


class ToolOutputError(FslabError):
    """A program ended well but its output is not what its documentation promises."""

    exit_code = 6
    failure = FailureClass.OUTPUT


class MkfsError(ToolFailedError):
    """A file system could not be made with these options."""

    failure = FailureClass.MKFS


class MountError(ToolFailedError):
    """A file system could not be mounted or unmounted."""

    failure = FailureClass.MOUNT


class GuestError(FslabError):
    """A guest machine could not be started, or ended, or no longer answers: killed, lost, out of memory."""

    exit_code = 6
    failure = FailureClass.GUEST_LOST


class GuestPanickedError(GuestError):
    """The guest's kernel panicked."""

    failure = FailureClass.GUEST_PANICKED


class GuestHungError(GuestError):
    """The guest did not answer within its time limit and was ended."""

    failure = FailureClass.GUEST_HUNG


class StoreError(FslabError):
    """The result store cannot be opened, is of another version, or lacks what was asked for."""

    exit_code = 7


class StoreLostError(StoreError):
    """The store's database went away, is full or stays locked: a moment later it may be there again."""


class BusyError(FslabError):
    """Another fslab process owns what is asked for."""

    exit_code = 8


class NotComparableError(FslabError):
    """Two sets of results were measured under unlike conditions, without an option that allows it."""

    exit_code = 9


class RegressionError(FslabError):
    """A comparison found what the exit code was to report (--fail-if-…)."""

    exit_code = 10


class InconclusiveError(FslabError):
    """A comparison could not have detected what the exit code was to report (--fail-if-unsure)."""

    exit_code = 11


class InterruptedBySignal(BaseException):
    """A signal that ends the program: unwind, undo, and leave with 128 + signal.

    No FslabError, and no Exception: it can come anywhere, and whoever handles errors must not take it for one.
    """

    def __init__(self, signum: int) -> None:
        super().__init__("interrupted")
        self.exit_code = 128 + signum

    def __str__(self) -> str:
        return "interrupted\n  → finish a campaign with: fslab run --resume"


def nearest(name: str, known: Iterable[str]) -> str:
    """Say what a mistyped name may have meant and which names there are."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=NEAR)
    meant = f"did you mean '{close[0]}'? " if close else ""
    listed = ", ".join(names) if len(names) <= 24 else f"{', '.join(names[:24])}, …"
    return f"{meant}known: {listed}"
