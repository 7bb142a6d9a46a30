"""Applications: what they work on, how fslab runs them, and how it checks their data. One file per application.

Each is a tool that has its name. One that commits transactions can also promise something for a power cut: then the
same code loses its power (``tool: crash``). ``fslab.crash`` decides which losses break a promise; no application does.
"""

from __future__ import annotations

import hashlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from fslab.applications._load import AnyLoad as AnyLoad
from fslab.applications._load import Load as Load
from fslab.applications._load import Populated as Populated
from fslab.applications._load import Records as Records
from fslab.applications._load import Settings as Settings
from fslab.applications._load import StepLoad as StepLoad
from fslab.applications._load import setting as setting
from fslab.applications._measured_run import Amount as Amount
from fslab.applications._measured_run import DoneStep as DoneStep
from fslab.applications._measured_run import Driven as Driven
from fslab.applications._measured_run import DriveRequest as DriveRequest
from fslab.applications._measured_run import Stepped as Stepped
from fslab.applications._measured_run import repeated as repeated
from fslab.applications._measured_run import sampled as sampled
from fslab.applications._servers import run_program as run_program
from fslab.errors import UsageError, nearest
from fslab.filesystem_abilities import Ability
from fslab.registry import Registry
from fslab.storage.crash_promises import EVERY_PROMISE, Promise, Promises
from fslab.system import mounts
from fslab.system.tools import Tool

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What an application promises for a power cut.

    ``durable``: an acknowledged transaction exists afterwards. ``consistent``: the application's own check finds no
    problem, and each transaction exists as a whole or not at all.
    """

    durable: Promise
    consistent: Promise

    @classmethod
    def documented(
        cls, source: str, *, durable: tuple[bool, str, str], consistent: tuple[bool, str, str]
    ) -> Contract:
        """Return a contract by one document: of each promise whether it is given, why, and why not."""
        return cls(durable=promised(source, *durable), consistent=promised(source, *consistent))


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveredData:
    """The state of an application's data after a power cut.

    ``transactions``: those that exist as they were committed. ``problem``: what the application's own check reports.
    """

    transactions: frozenset[int] = frozenset()
    problem: str | None = None

    @classmethod
    def of_rows(
        cls, rows: Iterable[tuple[int, T]], written: Callable[[int], T], last: object = None
    ) -> RecoveredData:
        """Compare the rows of a database, each a transaction, with what was committed (``written``), or a digest of it.
        ``last``: a counter of the transactions, if there is one."""
        numbers = []
        for number, found in rows:
            if found != written(number):
                return cls(problem=f"transaction {number} has other contents than were committed")
            numbers.append(number)
        count = len(numbers)
        if last is not None and (str(last) != str(count) or sorted(numbers) != list(range(1, count + 1))):
            return cls(problem=f"a partial transaction: the counter is {last}, but there are {count} rows")
        return cls(transactions=frozenset(numbers))


def has_other_bytes(found: bytes, written: bytes) -> bool:
    """Return whether data that was not synced has other bytes than were written, and zeros."""
    return any(byte not in (0, was) for byte, was in zip(found, written, strict=False))


def digest(contents: bytes) -> str:
    """Return the digest that databases can compute of a row."""
    return hashlib.md5(contents, usedforsecurity=False).hexdigest()


def promised(source: str, given: bool, why: str, why_not: str = "") -> Promise:
    """Return whether an application promises something, with what its documentation says."""
    return Promise(given=given, source=f"{source}: {why if given else why_not}")


class Application(ABC):
    """One application. ``tools``: the programs that it needs; ``abilities``: what it needs of the file system.
    ``laid_out_bytes``: what ``prepare`` writes, besides what ``Load.space_bytes`` says.

    ``Load``: what is measured: the keys of the tool in a study. ``continues``: why a run of it cannot be frozen and
    continued (``Workload.why_whole``); None if it can.
    """

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]] = ()
    abilities: ClassVar[frozenset[Ability]] = frozenset()
    laid_out_bytes: ClassVar[int] = 0
    continues: ClassVar[str | None] = None
    Load: type[AnyLoad]

    @abstractmethod
    def prepare(self, drive: DriveRequest) -> None:
        """Make what ``drive`` works on, not measured. No process may be left: the files are copied to other trials."""

    @abstractmethod
    def drive(self, drive: DriveRequest) -> Driven | Stepped:
        """Do the work, and time it: transactions, or steps. Then check the data."""


class DurableApplication(Application):
    """An application that acknowledges transactions and promises to keep them: its power can be cut, too.

    ``transaction_s``: how long a transaction takes, roughly.
    """

    transaction_s: ClassVar[float] = 0.03
    Load: type[Load]

    @property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """The settings that decide what a power cut may take, with their values. The first one is the application's own
        default."""
        return self.Load.durability()

    @abstractmethod
    def contract(self, settings: Settings, promises: Promises) -> Contract:
        """Return what the application promises on a file system with these promises. Pure."""

    def keeps_all(self, settings: Settings) -> bool:
        """Return whether each acknowledged transaction is promised, on a file system with every promise."""
        return self.contract(settings, EVERY_PROMISE).durable.given

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

    def prepare(self, drive: DriveRequest) -> None:
        self.lay_out(drive.directory, drive.load.settings())

    def drive(self, drive: DriveRequest) -> Driven:
        """Commit transactions until the time or their number is reached; return the latency of each. Then check the
        data. By default: the transactions of a crash test, one after the other."""
        with self.opened(drive.directory, drive.load.settings()) as commit:
            pause_s = self.pause_s(drive.load.settings())
            driven = repeated(drive, lambda number: commit(number, drive.contents(number)), pause_s)
        return self.verified(drive, driven, range(1, driven.count + 1))

    def verified(
        self, drive: DriveRequest, driven: Driven, wanted: range, what: str = "transactions"
    ) -> Driven:
        """Return the run with what is wrong with its data: what the own check finds, or other transactions than these.
        0 is what ``prepare`` has committed."""
        found = self.look(drive.directory, drive.contents)
        there = found.transactions - {0}
        told = f"{len(there)} {what} are there, and not the {len(wanted)} that must be"
        return driven.checked(found.problem or (None if there == frozenset(wanted) else told))

    def pause_s(self, settings: Settings) -> float:  # noqa: ARG002
        """Return the pause after each transaction, which is not part of it."""
        return 0.0


class SteppedApplication(Application):
    """An application that does a fixed amount of work in named steps, each of which is timed.

    ``removes``: the steps that remove what the steps before have made, which is therefore checked before.
    """

    Load: type[StepLoad]
    removes: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def lay_out(self, drive: DriveRequest) -> None:
        """Make the input of the first step, from the seed."""

    @abstractmethod
    def perform(self, drive: DriveRequest, step: str) -> None:
        """Do a step, with the programs that people use for it, and nothing else: it is timed."""

    @abstractmethod
    def amount(self, drive: DriveRequest, step: str) -> Amount:
        """Return what a step works on. Not timed."""

    @abstractmethod
    def problem(self, drive: DriveRequest, step: str) -> str | None:
        """Return what is wrong with the files after this step, compared with the seed; None: nothing. Not timed."""

    def before(self, drive: DriveRequest, step: str) -> None:
        """Change the input as this step needs it. Not timed."""

    def prepare(self, drive: DriveRequest) -> None:
        """Make the input, and do the steps before the first one that is measured."""
        self.lay_out(drive)
        for step in drive.load.done_before:
            self.before(drive, step)
            self.perform(drive, step)

    def drive(self, drive: DriveRequest) -> Stepped:
        """Do the chosen steps. Each ends when what it has written is on the device: a sync of the file system belongs
        to it."""
        done: list[DoneStep] = []
        problem: str | None = None
        for step in drive.load.chosen:
            if done and step in self.removes:
                problem = problem or self.problem(drive, done[-1].name)
            self.before(drive, step)
            mounts.flush(drive.directory)
            _sampled()
            began_s = time.monotonic()
            self.perform(drive, step)
            mounts.flush(drive.directory)
            ended_s = time.monotonic()
            _sampled()
            amount = self.amount(drive, step)
            done.append(DoneStep(name=step, began_s=began_s, ended_s=ended_s, amount=amount))
        return Stepped(steps=tuple(done), problem=problem or self.problem(drive, done[-1].name))


def _sampled() -> None:
    """Have a sample of the run taken (``campaign/run_samples.py``): the sync that ends a step writes all at once, which
    would otherwise be shared with the next step."""
    sys.stderr.write("\n")
    sys.stderr.flush()


REGISTRY: Registry[Application] = Registry("application", __name__, Application, group="fslab.applications")


def durable(name: str) -> DurableApplication:
    """Return an application whose power can be cut. UsageError, with those that there are, if it is none of them."""
    application = REGISTRY.get(name)
    if not isinstance(application, DurableApplication):
        others = ", ".join(known for known, each in REGISTRY if isinstance(each, DurableApplication))
        raise UsageError(
            f"the power of '{name}' cannot be cut: it promises nothing for a power cut",
            hint=f"applications whose power can be cut: {others}",
        )
    return application


def parse_settings(application: DurableApplication, text: str) -> dict[str, str]:
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
