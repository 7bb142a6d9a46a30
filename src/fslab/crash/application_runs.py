"""Runs of an application as a source: perform transactions one after the other, and judge which of them are left."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from fslab.applications import Contract, DurableApplication, RecoveredData, Settings, durable, parse_settings
from fslab.crash.sources import (
    Finding,
    Kind,
    Mark,
    Progress,
    RunVerdict,
    Source,
    check_no_shortage,
    directory_of,
)
from fslab.errors import ToolFailedError
from fslab.storage.crash_promises import Promise, Promises

# What a file system says of damaged data; EUCLEAN and EBADMSG are its EFSCORRUPTED and EFSBADCRC.
_UNREADABLE = frozenset({errno.EIO, errno.EUCLEAN, errno.EBADMSG})
SMALLEST_BYTES, LARGEST_BYTES = 200, 12_000
MOST = 10_000
_LARGEST_FILE_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs(Source[RecoveredData]):
    """``runs`` runs of an application, each from an empty directory and with ``transactions`` transactions."""

    application: DurableApplication
    settings: Settings
    runs: int
    transactions: int
    seed: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        return (self.transactions,) * self.runs

    def lay_out(self, root: Path) -> None:
        for number in range(self.runs):
            directory_of(root, number).mkdir()
            self.application.lay_out(directory_of(root, number), self.settings)

    def perform(self, root: Path, number: int, mark: Mark) -> None:
        pause_s = self.application.pause_s(self.settings)
        with self.application.opened(directory_of(root, number), self.settings) as commit:
            for transaction in range(1, self.transactions + 1):
                mark(f"{number}:{transaction}:begins")
                commit(transaction, self.contents(transaction))
                mark(f"{number}:{transaction}:returned")
                if pause_s:  # a pause of none takes longer than some transactions
                    time.sleep(pause_s)

    def contents(self, transaction: int) -> bytes:
        """Return the contents of a transaction: 200 bytes, or 200 to 12,000 bytes."""
        random = Random(self.seed << 20 | transaction)  # noqa: S311 - to be repeated
        return random.randbytes(
            random.choice((SMALLEST_BYTES, random.randint(SMALLEST_BYTES, LARGEST_BYTES)))
        )

    def look(self, directory: Path) -> RecoveredData:
        """Look at what is left. That its files cannot be read is a finding; other errors, such as a full scratch
        directory, are raised."""
        try:
            if (found := _endless(directory)) is not None:
                return RecoveredData(
                    problem=f"'{found.relative_to(directory)}' is a pipe or too large to read"
                )
            return self.application.look(directory, self.contents)
        except OSError as error:
            check_no_shortage(error)
            place = Path(os.fsdecode(error.filename or ""))
            if error.errno not in _UNREADABLE and not place.is_relative_to(directory):
                raise
            where = f" '{place.relative_to(directory)}'" if place.is_relative_to(directory) else ""
            return RecoveredData(problem=f"cannot read its files{where}: {error.strerror}")

    def check_able(self, directory: Path) -> None:
        """Look at intact data: without memory, say, a server refuses any."""
        if not any(directory.iterdir()):
            self.application.lay_out(directory, self.settings)
        if (problem := self.look(directory).problem) is not None:
            raise ToolFailedError(
                f"{self.application.name} also fails on data that lost no power, so no state can be judged: {problem}",
                hint="see the memory, and the limits of processes and open files, that are left for it",
            )

    def judge(self, progress: Progress, seen: RecoveredData, promises: Promises) -> RunVerdict:
        contract = self._contract(promises)
        acknowledged = set(range(1, progress.done + 1))
        missing = acknowledged - seen.transactions
        broken = frozenset(missing) if contract.durable.given else frozenset[int]()
        found = []
        if early := sorted(seen.transactions - set(range(1, progress.begun + 1))):
            text = f"transaction {early[0]} is there, but had not started"
            found.append(self._finding(Kind.RESURRECTED, contract.consistent, progress, text))
        if seen.problem is not None:
            promise = contract.durable if broken and not contract.consistent.given else contract.consistent
            found.append(self._finding(Kind.DAMAGED, promise, progress, seen.problem, broken))
        elif broken:
            text = f"{_counted(sorted(broken))} of {progress.done} lost after they were acknowledged"
            found.append(self._finding(Kind.LOST_DATA, contract.durable, progress, text, broken))
        allowed = not broken and not (seen.problem and contract.consistent.given)
        return RunVerdict(findings=found, lost=missing if allowed else set())

    def promised(self, progress: Progress, promises: Promises) -> set[int]:
        return set(range(1, progress.done + 1)) if self._contract(promises).durable.given else set()

    def _contract(self, promises: Promises) -> Contract:
        """Return the application's contract. Its sources name file system options that give up what POSIX promises."""
        contract = self.application.contract(self.settings, promises)
        if promises.caution is None:
            return contract
        durable, consistent = (
            replace(each, source=f"{each.source}; {promises.caution}")
            for each in (contract.durable, contract.consistent)
        )
        return Contract(durable=durable, consistent=consistent)

    def _finding(
        self,
        kind: Kind,
        promise: Promise,
        progress: Progress,
        text: str,
        broken: frozenset[int] = frozenset(),
    ) -> Finding:
        """``broken``: transactions that are missing although they were promised; none: the last one is meant."""
        return Finding(
            kind=kind, broken=promise.given, detail=f"{self.application.name}: {text}", source=promise.source,
            sequence=progress.number, step=min(broken, default=max(1, progress.done)), also=broken,
            name=self.application.name,
        )  # fmt: skip

    def words(self, number: int) -> list[str]:  # noqa: ARG002 - all runs are alike
        given = ",".join(f"{name}={value}" for name, value in self.settings.items())
        return [f"{self.transactions} transactions of {self.application.name} with {given}"]

    def stored(self) -> dict[str, Any]:
        about = {"name": self.application.name, "settings": dict(self.settings), "seed": self.seed}
        return {"application": {**about, "runs": self.runs, "transactions": self.transactions}}

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> Runs:
        """Restore stored runs. UsageError (also for unknown settings), ValueError or TypeError if they are invalid."""
        about = stored["application"]
        numbers = {name: int(about[name]) for name in ("runs", "transactions", "seed")}
        if not (0 < numbers["runs"] <= MOST and 0 < numbers["transactions"] <= MOST):
            raise ValueError(f"runs and transactions must be from 1 to {MOST}")
        application = durable(str(about["name"]))
        text = ",".join(f"{name}={value}" for name, value in about["settings"].items())
        return cls(application=application, settings=parse_settings(application, text), **numbers)


def _counted(missing: list[int]) -> str:
    first = f"transaction {missing[0]}"
    return first if len(missing) == 1 else f"{first} and {len(missing) - 1} more"


def _endless(directory: Path) -> Path | None:
    """Return what would block who reads it, or take all memory: a pipe, or a very large file, most of it a hole. A
    recording of another machine can have them."""
    left = [directory]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for path in map(Path, entries):
                with suppress(OSError):
                    about = path.lstat()
                    if stat.S_ISDIR(about.st_mode):
                        left.append(path)
                    elif stat.S_ISFIFO(about.st_mode) or about.st_size > _LARGEST_FILE_BYTES:
                        return path
    return None
