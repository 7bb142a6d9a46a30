"""Applications that commit transactions: what they promise with their settings, how fslab drives and reads them.

One file each. ``fslab.crash`` decides which losses after a power cut break a promise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fslab.errors import UsageError, nearest
from fslab.registry import Registry
from fslab.storage.promises import Promise, Promises
from fslab.system.tools import Tool

Settings = Mapping[str, str]
GUESSED_S = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """``durable``: a transaction that was acknowledged is there. ``consistent``: the application's own check finds
    nothing, and each transaction is there as a whole or not at all."""

    durable: Promise
    consistent: Promise


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """``transactions`` that are there as they were committed; ``problem``: what the application's own check reports."""

    transactions: frozenset[int] = frozenset()
    problem: str | None = None


class Application(ABC):
    """``settings``: what can be set, each with its values, the application's own default first."""

    name: str
    summary: ClassVar[str]
    tool: ClassVar[Tool | None] = None
    settings: ClassVar[Mapping[str, tuple[str, ...]]]

    @abstractmethod
    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """What it promises, on a file system with these promises. Pure."""

    @abstractmethod
    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Make what transactions are committed to."""

    @abstractmethod
    def opened(
        self, directory: Path, settings: Settings
    ) -> AbstractContextManager[Callable[[int, bytes], None]]:
        """Commits a transaction of this number with these contents; it returns when the application acknowledges it."""

    @abstractmethod
    def look(self, directory: Path, contents: Callable[[int], bytes]) -> Found:
        """Recover as the application does when it starts, check, and read back. ``contents``: of each transaction."""

    def seconds_each(self, settings: Settings) -> float:  # noqa: ARG002
        """Roughly what a transaction takes, for the plan."""
        return GUESSED_S


REGISTRY: Registry[Application] = Registry("application", __name__, Application, group="fslab.applications")


def parse_settings(application: Application, text: str) -> dict[str, str]:
    """``journal_mode=wal,synchronous=normal`` with the defaults of what it leaves out; UsageError for anything else."""
    found = {name: values[0] for name, values in application.settings.items()}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = (each.strip() for each in part.partition("="))
        known = application.settings.get(name)
        if known is None:
            hint = nearest(name, application.settings) or f"settings: {', '.join(application.settings)}"
            raise UsageError(f"unknown setting '{name}' of {application.name}", hint=hint)
        if value not in known:
            raise UsageError(f"invalid value '{value}' for {name}", hint=f"values: {', '.join(known)}")
        found[name] = value
    return found
