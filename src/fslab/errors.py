"""The errors that a user can see: what failed, where, and what to do about it, with an exit code.

They can be raised anywhere and are caught once, in ``__main__``. Any other exception is a bug and shows its traceback.
This module starts nothing, and imports no other module of fslab.
"""

import errno
import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum

# Similarity of names; 1: equal. Below that, names share letters by chance (nobh and nombcache: 0.62).
NEAR = 0.65
_WRONG_LETTERS = 2


class FailureClass(StrEnum):
    """Why a trial has no usable figures. Stored with the trial as ``failed:<class>``."""

    UNSUPPORTED = "unsupported"
    TOOL_MISSING = "tool_missing"
    NO_SPACE = "no_space"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    MOUNT = "mount"
    MKFS = "mkfs"
    LAYOUT = "layout"
    OUTPUT = "output"
    GUEST_PANICKED = "guest_panicked"
    GUEST_HUNG = "guest_hung"
    GUEST_LOST = "guest_lost"


class FslabError(Exception):
    """An error for the user: what failed, where (a file, a device, a key), and what the user can do.

    ``failure``: the class of a trial that this error ended.
    """

    exit_code = 1
    failure = FailureClass.CRASHED

    def __init_subclass__(cls, exit_code: int | None = None, failure: FailureClass | None = None) -> None:
        cls.exit_code = exit_code or cls.exit_code
        cls.failure = failure or cls.failure

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.without_place}"

    @property
    def without_place(self) -> str:
        """What failed and what to do, without ``where``."""
        advice = f"\n  → {self.hint}" if self.hint else ""
        return f"{self.what}{advice}"


class UsageError(FslabError, exit_code=2):
    """The command line names something that does not exist, or arguments that cannot be combined."""


class PluginError(FslabError, exit_code=4, failure=FailureClass.UNSUPPORTED):
    """A plug-in cannot be loaded, is unsafe to load, or has a name that is already used."""


class StudyError(FslabError, exit_code=2):
    """A study file has mistakes. Contains all of them, each with its line."""


class UnsafeError(FslabError, exit_code=3):
    """To continue could destroy data that does not belong to fslab."""


class UnsupportedError(FslabError, exit_code=4, failure=FailureClass.UNSUPPORTED):
    """This kernel or machine does not support the operation."""


class ToolMissingError(FslabError, exit_code=4, failure=FailureClass.TOOL_MISSING):
    """A program that is needed is not installed."""


class NeedsRootError(FslabError, exit_code=4):
    """The operation needs privileges that this user does not have."""


# Errors of system calls on a full disk, or by a user whose share of it is full.
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
# Errors for lack of memory or descriptors, whatever the file.
SHORTAGE = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE})
LARGER_MEDIUM = "give the medium a larger size"
SIZES_HINT = f"{LARGER_MEDIUM}, or the workload a smaller one"


class NoSpaceError(FslabError, exit_code=5, failure=FailureClass.NO_SPACE):
    """A disk, a memory file system or a file system under test is full."""


class ToolFailedError(FslabError, exit_code=6):
    """A program that fslab started ended with an error. Contains the end of its stderr."""


class ToolTimeoutError(FslabError, exit_code=6, failure=FailureClass.TIMED_OUT):
    """A program that fslab started exceeded its time limit and was ended."""


class ToolOutputError(FslabError, exit_code=6, failure=FailureClass.OUTPUT):
    """A program succeeded, but its output does not match its documentation."""


class MkfsError(ToolFailedError, failure=FailureClass.MKFS):
    """A file system could not be made with these options."""


class LayoutError(ToolFailedError, failure=FailureClass.LAYOUT):
    """The disks of a layout could not be joined, or not be separated."""


class MountError(ToolFailedError, failure=FailureClass.MOUNT):
    """A file system could not be mounted or unmounted."""


class GuestError(FslabError, exit_code=6, failure=FailureClass.GUEST_LOST):
    """A guest could not be started, has ended, or does not respond: killed, lost, out of memory."""


class GuestPanickedError(GuestError, failure=FailureClass.GUEST_PANICKED):
    """The guest's kernel panicked."""


class GuestHungError(GuestError, failure=FailureClass.GUEST_HUNG):
    """The guest did not respond within its time limit and was ended."""


class StoreError(FslabError, exit_code=7):
    """The result store cannot be opened, has another version, or does not contain what was requested."""


class NotStoredError(StoreError):
    """The store does not exist, has no campaign of that name, or cannot have a fleet."""


class AmbiguousNameError(StoreError):
    """The beginning of an id fits several campaigns of the store."""


class StoreDeniedError(StoreError):
    """The role that this process has in the database may not do this."""


class StoreLostError(StoreError):
    """The store's database is unavailable, full or locked. It may be available again later."""


class BusyError(FslabError, exit_code=8):
    """Another fslab process uses the requested resource."""


class NotComparableError(FslabError, exit_code=9):
    """Two sets of results were measured under different conditions, and no option allows the difference."""


class RegressionError(FslabError, exit_code=10):
    """A comparison found a difference that the user asked to report by the exit code (--fail-if-…)."""


class InconclusiveError(FslabError, exit_code=11):
    """A comparison could not have detected the difference that the exit code is to report (--fail-if-…)."""


class InterruptedBySignal(BaseException):
    """A signal that ends the program: it unwinds the stack, cleans up, and exits with 128 + signal.

    Not a subclass of FslabError or Exception: a signal can arrive anywhere, and code that handles errors must not catch
    it. ``told``: how to finish the campaign was already printed.
    """

    def __init__(self, signum: int) -> None:
        super().__init__("interrupted")
        self.exit_code = 128 + signum
        self.told = False

    def __str__(self) -> str:
        return "interrupted" if self.told else "interrupted\n  → finish a campaign with: fslab run --resume"


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name of which ``name`` is most likely a misspelling; None if no name is that similar.

    Names with other numbers mean other things (md-raid5, md-raid6), however similar they are; and names that contain
    each other's letters (vers, iversion) are no misspellings: at most two letters are wrong, and half of them. A number
    that is missing at the end (ntfs, ntfs3) is one, if only one name has it. Capitals are no wrong letters.
    """
    known = sorted(known)
    folded = [each for each in known if len(name) > 1 and each.casefold() == name.casefold()]
    if folded:
        return folded[0]
    numbered = [each for each in known if each.rstrip("0123456789") == name != each]
    if len(numbered) == 1:
        return numbered[0]
    numbers = re.findall(r"\d+", name)
    names = [each for each in known if re.findall(r"\d+", each) == numbers]
    most = max(min(len(name) // 2, _WRONG_LETTERS), 1)
    close = get_close_matches(name, names, n=3, cutoff=NEAR)
    return next((each for each in close if _wrong_letters(name, each) <= most), None)


def _wrong_letters(name: str, meant: str) -> int:
    """Return how many letters of a name are wrong, missing or too many; letters in another order are one mistake.

    Dashes and underscores are no letters.
    """
    name, meant = (each.replace("_", "").replace("-", "") for each in (name, meant))
    if sorted(name) == sorted(meant):
        return 1
    changes = SequenceMatcher(None, name, meant, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in changes if kind != "equal")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for a mistyped name: the most similar known name, and all known names."""
    names = sorted(known)
    near = similar(name, names)
    meant = f"did you mean '{near}'? " if near else ""
    listed = ", ".join(names) if len(names) <= 24 else f"{', '.join(names[:24])}, …"
    return f"{meant}known: {listed}"
