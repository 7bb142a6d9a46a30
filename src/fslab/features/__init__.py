"""The contract of a feature: something that a mounted file system can do, found by a test. One file per group.

A feature tests the scratch file system that it gets, and touches nothing else. A test without a result is
``unknown``, with the reason.
"""

import errno
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fslab.cell import Frozen
from fslab.registry import FunctionEntry, Registry, decorator_of
from fslab.system import proc
from fslab.system.tool_messages import one_line

# Errors of a system call that the file system does not have.
NOT_SUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS})


class Support(StrEnum):
    """The result of a test."""

    YES = "yes"
    NO = "no"
    VALUE = "value"
    UNKNOWN = "unknown"


class FeatureFinding(Frozen):
    """The result of one feature on one file system.

    ``value``: a number in ``unit`` (``B``, ``ns``, ``%``, ``chars``), or a word. ``at_least``: the value is the limit
    of the test, not of the file system. ``detail``: what was observed. ``switch``: options that enable the feature;
    without them the answer is no.
    """

    answer: Support
    value: int | float | str | None = None
    unit: str | None = None
    at_least: bool = False
    detail: str | None = None
    switch: str | None = None


class Examination(Frozen):
    """The results for one file system, by feature. ``not_possible``: why nothing could be tested.

    The results are valid for this ``machine`` and ``kernel``; another kernel can give other results. ``kernel`` is None
    if nothing was tested.
    """

    filesystem: str
    machine: str = "host"
    kernel: str | None
    size_bytes: int
    findings: dict[str, FeatureFinding] = {}
    not_possible: str | None = None


def yes(detail: str | None = None) -> FeatureFinding:
    """Return that the file system has the feature."""
    return FeatureFinding(answer=Support.YES, detail=detail)


def no(detail: str | None = None) -> FeatureFinding:
    """Return that the file system does not have the feature."""
    return FeatureFinding(answer=Support.NO, detail=detail)


# The beginning of a detail if the options that should enable a feature were tried without effect.
ALSO_NOT = "also not with"


def refused(before: FeatureFinding, switch: str, why: str | None) -> FeatureFinding:
    """Return ``no`` with the result of the test with the options that should enable the feature.

    The reason is probably the kernel, not the file system.
    """
    return before.model_copy(update={"detail": f"{ALSO_NOT} {switch}: {why}"})


def value(
    found: float | str, unit: str | None = None, *, at_least: bool = False, detail: str | None = None
) -> FeatureFinding:
    """Return a number or a word as the result."""
    return FeatureFinding(answer=Support.VALUE, value=found, unit=unit, at_least=at_least, detail=detail)


def unknown(why: str) -> FeatureFinding:
    """Return that the test had no result."""
    return FeatureFinding(answer=Support.UNKNOWN, detail=why)


def not_resized(done: proc.Completed) -> FeatureFinding:
    """Return why a command did not change the size of a file system: unknown if it was not permitted."""
    told = one_line(done.stderr, done.stdout)
    if "ermission denied" in told or "not permitted" in told:
        return unknown(f"needs CAP_SYS_RESOURCE: {told}")
    return no(f"{done.argv[0]}: {told or 'nothing changed'}")


class Answered(Exception):  # noqa: N818 - a result, and no error
    """Ends a test with its result."""

    def __init__(self, finding: FeatureFinding) -> None:
        super().__init__(finding)
        self.finding = finding


@contextmanager
def refusable(what: str = "", *, errors: Collection[int] = NOT_SUPPORTED) -> Iterator[None]:
    """Let the test end with ``no`` if the kernel refuses ``what`` the block does with one of these errors (errno)."""
    try:
        yield
    except OSError as error:
        if error.errno not in errors:
            raise
        raise Answered(no(f"{what}: {error.strerror}" if what else error.strerror)) from error


def worked(refusals: Collection[int], call: Callable[..., object], *arguments: object) -> bool:
    """Return whether a call succeeds. Other errors than these (errno) are raised."""
    try:
        call(*arguments)
    except OSError as error:
        if error.errno in refusals:
            return False
        raise
    return True


def largest(works: Callable[[int], bool], *, low: int, high: int) -> int | None:
    """Return the largest number from ``low`` to ``high`` that works; None if ``low`` does not work.

    If a number works, all smaller ones must work too.
    """
    if not works(low):
        return None
    if works(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


class FeatureGroup(StrEnum):
    """The group of a feature, in the order of the table."""

    DATA = "data"
    LIMITS = "limits"
    NAMES = "names and rights"
    CALLS = "system calls"
    SPACE = "space"


class Volume(StrEnum):
    """The file system that the test of a feature needs.

    ``shared``: a separate directory on a file system that other tests use. ``own``: a new file system, which the test
    may fill, unmount and damage. ``small``: like ``own``, on the smallest device that the file system supports.
    """

    SHARED = "shared"
    OWN = "own"
    SMALL = "small"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPlace:
    """The place of a test: its own empty directory on a mounted scratch file system.

    ``unmount`` and ``mount`` unmount the file system and mount it again. ``run`` runs a command and does not raise for
    its exit code. ``also_mounted`` mounts the same device a second time, with the given options. ``grow_argv`` and
    ``shrink_argv`` are the file system's commands; None if it has none. ``enlarge`` enlarges the device and returns by
    how many bytes; None if this is not possible.
    """

    directory: Path
    device: Path
    size_bytes: int
    unmount: Callable[[], object]
    mount: Callable[[], None]
    run: Callable[[Sequence[str]], proc.Completed]
    also_mounted: Callable[[str], AbstractContextManager[Path]]
    grow_argv: Sequence[str] | None
    shrink_argv: Callable[[int], Sequence[str] | None]
    enlarge: Callable[[], int | None]

    @property
    def mounted_bytes(self) -> int:
        """The size of the file system now, by statvfs(3)."""
        found = os.statvfs(self.directory)
        return found.f_blocks * found.f_frsize

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.directory)
        return found.f_bfree * found.f_frsize

    def remount(self) -> None:
        """Unmount and mount again, so that later reads come from the device."""
        self.unmount()
        self.mount()


Probe = Callable[[TestPlace], FeatureFinding]


class Feature(FunctionEntry):
    """One feature, which ``feature`` makes of its test. ``title`` is its line in the table.

    ``probe`` runs the test. An OSError means unknown; errors that mean "no" are caught in the test (``refusable``).
    """

    def __init__(
        self, probe: Probe, title: str, summary: str, group: FeatureGroup, volume: Volume = Volume.SHARED
    ) -> None:
        super().__init__(probe)
        self.title = title
        self.summary = summary
        self.group = group
        self.volume = volume
        self._probe = probe

    def probe(self, place: TestPlace) -> FeatureFinding:
        """Run the test."""
        try:
            return self._probe(place)
        except Answered as answer:
            return answer.finding


feature = decorator_of(Feature)


REGISTRY = Registry("feature", __name__, Feature, by_subject=True, group="fslab.features")


def in_order() -> list[Feature]:
    """Return all features in the order of the table."""
    groups = list(FeatureGroup)
    return sorted((each for _, each in REGISTRY), key=lambda each: (groups.index(each.group), each.title))
