"""Applications that commit transactions: their promises by setting, how fslab runs them and reads their data.

One file per application. ``fslab.crash`` decides which losses after a power cut break a promise; no application does.
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
    """What an application promises for a power cut.

    ``durable``: an acknowledged transaction exists afterwards. ``consistent``: the application's own check finds no
    problem, and each transaction exists as a whole or not at all.
    """

    durable: Promise
    consistent: Promise


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveredData:
    """The state of an application's data after a power cut.

    ``transactions``: those that exist as they were committed. ``problem``: what the application's own check reports.
    """

    transactions: frozenset[int] = frozenset()
    problem: str | None = None


class Application(ABC):
    """One application. ``settings``: setting → its values; the first value is the application's own default.

    ``laid_out_bytes``: what ``lay_out`` writes, roughly.
    """

    name: str
    summary: ClassVar[str]
    tool: ClassVar[Tool | None] = None
    laid_out_bytes: ClassVar[int] = 0
    settings: ClassVar[Mapping[str, tuple[str, ...]]]

    @abstractmethod
    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return what the application promises on a file system with these promises. Pure."""

    @abstractmethod
    def lay_out(self, directory: Path, settings: Settings) -> None:
        """Create what transactions are committed to, such as a database."""

    @abstractmethod
    def opened(
        self, directory: Path, settings: Settings
    ) -> AbstractContextManager[Callable[[int, bytes], None]]:
        """Open the application, and yield a function that commits a transaction.

        The function takes the transaction's number and contents. It returns when the application acknowledges it.
        """

    @abstractmethod
    def look(self, directory: Path, contents: Callable[[int], bytes]) -> RecoveredData:
        """Recover as the application does at start, run its own check, and read the transactions back.

        ``contents`` returns the contents of a transaction.
        """

    def seconds_each(self, settings: Settings) -> float:  # noqa: ARG002
        """Return the rough duration of a transaction, for the plan."""
        return GUESSED_S


REGISTRY: Registry[Application] = Registry("application", __name__, Application, group="fslab.applications")


def parse_settings(application: Application, text: str) -> dict[str, str]:
    """Parse ``journal_mode=wal,synchronous=normal``. Missing settings get their defaults. Otherwise UsageError."""
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
