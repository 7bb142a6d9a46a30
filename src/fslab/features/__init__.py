"""The contract of a feature: something that a mounted file system can do, found by a test. One file per feature.

A feature tests the scratch file system that it gets, and touches nothing else. A test without a result is
``unknown``, with the reason.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from fslab.cell import Frozen
from fslab.registry import Registry
from fslab.system import proc


class Support(StrEnum):
    """The result of a test."""

    YES = "yes"
    NO = "no"
    VALUE = "value"
    UNKNOWN = "unknown"


class FeatureFinding(Frozen):
    """One feature of one file system.

    ``value`` has ``unit`` (``B``, ``ns``, ``%``, ``chars``) or is a word; ``at_least``: the limit of the test, not of
    the file system. ``detail`` says what was observed, ``switch`` the options without which the answer is no.
    """

    answer: Support
    value: int | float | str | None = None
    unit: str | None = None
    at_least: bool = False
    detail: str | None = None
    switch: str | None = None


class Examination(Frozen):
    """The results for one file system, by feature; ``not_possible``: why there was nothing to test.

    Results hold for this ``machine`` and ``kernel``; another kernel can give others. ``kernel`` is None if nothing was
    tested.
    """

    filesystem: str
    machine: str = "host"
    kernel: str | None
    size_bytes: int
    findings: dict[str, FeatureFinding] = {}
    not_possible: str | None = None


def yes(detail: str | None = None) -> FeatureFinding:
    """It can."""
    return FeatureFinding(answer=Support.YES, detail=detail)


def no(detail: str | None = None) -> FeatureFinding:
    """It cannot."""
    return FeatureFinding(answer=Support.NO, detail=detail)


# How a detail begins where the options that are said to bring a feature were tried, and did not.
ALSO_NOT = "also not with"


def refused(before: FeatureFinding, switch: str, why: str | None) -> FeatureFinding:
    """It cannot, even with the options that should enable it: probably because of the kernel, not the file system."""
    return before.model_copy(update={"detail": f"{ALSO_NOT} {switch}: {why}"})


def value(
    found: float | str, unit: str | None = None, *, at_least: bool = False, detail: str | None = None
) -> FeatureFinding:
    """How much, or which."""
    return FeatureFinding(answer=Support.VALUE, value=found, unit=unit, at_least=at_least, detail=detail)


def unknown(why: str) -> FeatureFinding:
    """The test had no result."""
    return FeatureFinding(answer=Support.UNKNOWN, detail=why)


class FeatureGroup(StrEnum):
    """What a feature is about, in the order of the table."""

    DATA = "data"
    LIMITS = "limits"
    NAMES = "names and rights"
    CALLS = "system calls"
    SPACE = "space"


class Volume(StrEnum):
    """What a feature needs to be tried on.

    ``shared``: a directory of its own on a file system with others. ``own``: a file system made for it, which it
    may fill, unmount and damage. ``small``: the same, on the smallest device that the file system takes.
    """

    SHARED = "shared"
    OWN = "own"
    SMALL = "small"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPlace:
    """Where a feature is tried: its own empty directory on a mounted scratch file system.

    ``unmount`` and ``mount`` take it away and bring it back; ``run`` runs a command and does not raise for its
    exit code; ``also_mounted`` mounts the same device a second time with options of its own. ``grow_argv`` and
    ``shrink_argv`` are the file system's commands, None where it has none; ``enlarge`` makes the device larger
    and says by how many bytes, None if it cannot.
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

    def remount(self) -> None:
        """Unmount and mount again: what comes back was on the device."""
        self.unmount()
        self.mount()


class Feature(ABC):
    """One feature. ``name`` is set by the registry from the file's name; ``title`` is its line in the table."""

    name: str
    title: ClassVar[str]
    summary: ClassVar[str]
    group: ClassVar[FeatureGroup]
    volume: ClassVar[Volume] = Volume.SHARED

    @abstractmethod
    def probe(self, place: TestPlace) -> FeatureFinding:
        """Run the test. An OSError means unknown; errors that mean "no" are caught in the test."""


REGISTRY: Registry[Feature] = Registry("feature", __name__, Feature, group="fslab.features")


def in_order() -> list[Feature]:
    """All features, as the table shows them."""
    groups = list(FeatureGroup)
    return sorted(
        (feature for _, feature in REGISTRY), key=lambda feature: (groups.index(feature.group), feature.title)
    )
