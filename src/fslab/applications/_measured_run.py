"""A measured run of an application: what it gets, and what it yields, transactions or steps. The loop that times
transactions."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

# Contents are taken from so many in turn, as far as memory allows. Primes: their period does not meet one of the
# application or of a disk. Small ones are so many that nothing repeats within what a file system compresses at once
# (btrfs: 128 KiB).
_POOLS, _LARGE_POOLS = (61, 31, 13, 7, 3), (4093, 1021, 251)
_POOL_BYTES, _LARGE_POOL_BYTES = 64 << 20, 4 << 20
_MOST_LOGGED = 1_000_000
PERCENTILES = (50, 95, 99)
SAMPLE = 20_000  # latencies that are made from a histogram


@dataclass(frozen=True, kw_only=True)
class DriveRequest:
    """``directory``: on the file system under test, new and empty for ``prepare``. ``scratch``: elsewhere, for logs.
    ``run_s``: None until ``Load.transactions`` are done. ``turns``: how many programs take turns (``Job.turns``): what
    goes by the clock has to take that many times as long."""

    directory: Path
    scratch: Path
    load: Any
    run_s: float | None
    seed: int
    turns: int = 1

    @property
    def whole_s(self) -> int | None:
        """``run_s`` for a program that takes whole seconds: rounded up, as a run that is too short is invalid."""
        return None if self.run_s is None else math.ceil(self.run_s)

    def random(self) -> Random:
        """Return a generator whose numbers a trial with the same seed repeats."""
        return Random(self.seed)  # noqa: S311

    @cached_property
    def _pool(self) -> list[bytes]:
        random, size = self.random(), self.load.size_bytes
        large = (each for each in _LARGE_POOLS if each * size <= _LARGE_POOL_BYTES)
        count = next(large, 0) or next((each for each in _POOLS if each * size <= _POOL_BYTES), 2)
        return [random.randbytes(size) for _ in range(count)]

    def contents(self, number: int) -> bytes:
        """Return the contents of a transaction: incompressible."""
        return self._pool[number % len(self._pool)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Driven:
    """``count``: transactions that were acknowledged from ``began_s`` to ``ended_s`` (CLOCK_MONOTONIC).
    ``latencies_ns``: of each, or of a sample of them. ``ended_ns``: when each of these ended (CLOCK_MONOTONIC), if that
    is known; it can be read once. ``problem``: what the application's own check reports.
    """

    count: int
    began_s: float
    ended_s: float
    latencies_ns: array[int]
    ended_ns: Iterable[int] = ()
    problem: str | None = None

    def checked(self, problem: str | None) -> Driven:
        return replace(self, problem=problem)

    def document(self) -> dict[str, Any]:
        ordered = sorted(self.latencies_ns)
        return {
            "version": 1,
            "transactions": self.count,
            "began_s": self.began_s,
            "ended_s": self.ended_s,
            "latencies_ns": {str(percent): percentile(ordered, percent) for percent in PERCENTILES},
            "problem": self.problem,
        }

    def log(self, path: Path) -> None:
        """Write when transactions ended and how long they took, in the format of ``figures.logged_operations``: of
        very many, a sample."""
        every = max(1, len(self.latencies_ns) // _MOST_LOGGED)
        operations = islice(zip(self.ended_ns, self.latencies_ns, strict=False), 0, None, every)
        with path.open("w") as file:
            file.writelines(f"{ended / 1e6:.6f},{latency},\n" for ended, latency in operations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """What a step has worked on. ``read_bytes``, ``written_bytes``: contents of files; None: unknown."""

    files: int
    read_bytes: int | None = None
    written_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DoneStep:
    """When a step began and ended (CLOCK_MONOTONIC), with the sync of what it has written."""

    name: str
    began_s: float
    ended_s: float
    amount: Amount


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """A measured run. ``problem``: what is wrong with the files afterwards."""

    steps: tuple[DoneStep, ...]
    problem: str | None = None

    def document(self) -> dict[str, Any]:
        return {"version": 1, "steps": [asdict(step) for step in self.steps], "problem": self.problem}


def percentile(ordered: list[int], percent: int) -> int | None:
    """Return the nearest-rank percentile of sorted values; None if no value is above it."""
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[rank - 1] if 0 < rank < len(ordered) else None


def repeated(drive: DriveRequest, transaction: Callable[[int], object], pause_s: float = 0.0) -> Driven:
    """Call ``transaction`` with 1, 2, … until the time or the number of transactions is reached. Time each call. The
    pause after it is not in its latency."""
    latencies, ends = array("q"), array("q")
    most = drive.load.transactions or math.inf
    number, began = 0, time.monotonic_ns()
    now, until = began, began + drive.run_s * 1e9 if drive.run_s is not None else math.inf
    while number < most and now < until:
        number += 1
        transaction(number)
        after = time.monotonic_ns()
        latencies.append(after - now)
        ends.append(after)
        if pause_s:  # a pause of none takes longer than some transactions
            time.sleep(pause_s)
            after = time.monotonic_ns()
        now = after
    return Driven(count=number, began_s=began / 1e9, ended_s=now / 1e9, latencies_ns=latencies, ended_ns=ends)


def sampled(buckets: Iterable[tuple[float, float, int]]) -> Iterator[int]:
    """Yield as many latencies in ns as a histogram has, evenly in each bucket (its bounds in ns, its count); of very
    many a sample."""
    known = list(buckets)
    total = sum(count for _, _, count in known)
    share, rank, before = min(1.0, SAMPLE / total) if total else 1.0, 0, 0
    for low, high, count in known:
        while rank < (before + count) * share:
            yield round(low + (high - low) * (rank / share - before + 0.5) / count)
            rank += 1
        before += count
