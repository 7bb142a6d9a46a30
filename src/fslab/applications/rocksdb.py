"""RocksDB, a log-structured merge tree: db_bench, its own benchmark, fills, overwrites and reads a database.

No power cuts: db_bench does not tell when each write is acknowledged, and `ldb put` never syncs.
"""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from fslab import scaling
from fslab.applications import Application, Driven, DriveRequest, Records, run_program, sampled
from fslab.errors import ToolFailedError
from fslab.system.tools import Tool

FILE = "database"
_BENCH = Tool(program="db_bench", package="rocksdb-tools")
_LDB = Tool(program="ldb", package="rocksdb-tools")
_FILLED_PER_S = 20_000.0
_ROW_BYTES = 32  # of a key, and what is around it
_YOUNG_BYTES = (
    1 << 30
)  # of the files that wait for compaction: twenty (level0_slowdown_writes_trigger), and logs
_DONE = re.compile(
    r"^\w+ +: +[\d.]+ micros/op \d+ ops/sec ([\d.]+) seconds (\d+) operations;(.*)$", re.MULTILINE
)
_FOUND = re.compile(r"\((\d+) of (\d+) found\)")
_BUCKET = re.compile(r"^[\[(] *(\d+), +(\d+) \] +(\d+) ", re.MULTILINE)
_MICROSECONDS = re.compile(r"^Microseconds per (?:write|read):\n(.*?)^$", re.MULTILINE | re.DOTALL)
_KEYS = re.compile(r"^Keys in range: (\d+)$", re.MULTILINE)
_SIZES = re.compile(r"^Min: (\d+) .* Max: (\d+)$", re.MULTILINE)
_SIGMAS = 6


class RocksdbLoad(Records):
    """`db_bench`, with its default options. A transaction is one operation of a thread, on a random key; those of the
    writing thread of `readwhilewriting` are not counted. Percentiles are of db_bench's histogram. Afterwards all keys
    and the sizes of their values must be right. Debian's db_bench has assertions: do not compare it with other
    databases. `tool: crash` does not run it: no program of RocksDB's tells when a synced write is acknowledged."""

    laid_out = frozenset({"operation", "keys", "size"})
    parallel, reading = "threads", frozenset({"readwhilewriting"})
    writing = frozenset({"fillrandom", "overwrite", "readwhilewriting"})

    operation: Literal["fillrandom", "overwrite", "readwhilewriting"] = Field(
        "fillrandom",
        description="db_bench's name: write random keys to a new database; to one that has all keys; or read random "
        "keys while one more thread writes",
    )
    keys: int = Field(100_000, ge=100, le=10_000_000_000, description="keys that there can be")
    threads: int = Field(1, ge=1, le=1000, description="threads that do the operations")
    sync: Literal["no", "yes"] = Field("no", description="sync the log of each write before it returns")

    @property
    def guessed_rate(self) -> float:
        return 10_000.0 if self.sync == "yes" and not self.reads else 200_000.0

    @property
    def filled(self) -> bool:
        """Whether the database has all keys before."""
        return self.operation != "fillrandom"

    @property
    def prepare_s(self) -> float:
        return super().prepare_s + (self.keys / _FILLED_PER_S if self.filled else 0)

    @property
    def space_bytes(self) -> int:
        """Three times the keys, while a level is rewritten, and the files that wait for that."""
        each = self.size_bytes + _ROW_BYTES
        written = _YOUNG_BYTES if self.reads else self.most * each
        return min(2 * written, _YOUNG_BYTES) + (3 if self.filled else 2) * self.keys * each

    def scaled(self, factor: float) -> scaling.Changes:
        return {**super().scaled(factor), "keys": scaling.count(self.keys, factor, least=100)}


class Rocksdb(Application):
    """A database with one column family."""

    summary = "RocksDB: db_bench fills, overwrites and reads a database"
    tools = (_BENCH, _LDB)
    continues = "db_bench measures by the clock"
    Load = RocksdbLoad

    def prepare(self, drive: DriveRequest) -> None:
        if drive.load.filled:
            words = ("--benchmarks=filluniquerandom,flush,compact", "--disable_wal=1")
            run_program(_BENCH, *_common(drive), *words, cwd=drive.directory)

    def drive(self, drive: DriveRequest) -> Driven:
        load = drive.load
        said = run_program(_BENCH, *_common(drive), *_words(drive), cwd=drive.directory).stdout
        ended_s = time.monotonic()
        done = _DONE.search(said)
        if done is None or not int(done[2]) or not float(done[1]):
            raise ToolFailedError("db_bench completed no operation", hint="raise 'runtime' or 'transactions'")
        count, took_s = int(done[2]), float(done[1])
        found = _FOUND.search(done[3])
        missing = None
        if found is not None and found[1] != found[2]:
            missing = f"{found[1]} of {found[2]} keys were found, but all are there"
        driven = Driven(
            count=count, began_s=ended_s - took_s, ended_s=ended_s, latencies_ns=array("q", sampled(_buckets(said)))
        )  # fmt: skip
        return driven.checked(missing or problem(load, count, self._counted(drive)))

    def _counted(self, drive: DriveRequest) -> str:
        """Return what ldb(1) says of the keys, all of which it reads, with the checksums of their blocks."""
        return run_program(
            _LDB, f"--db={drive.directory / FILE}", "dump", "--count_only", cwd=drive.directory
        ).stdout


def problem(load: RocksdbLoad, count: int, counted: str) -> str | None:
    """Return what is wrong with the keys, as ``ldb dump --count_only`` counts them, after ``count`` operations."""
    keys, sizes = _KEYS.search(counted), _SIZES.search(counted)
    there = int(keys[1]) if keys else 0
    if sizes is None or {int(sizes[1]), int(sizes[2])} != {load.size_bytes}:
        return f"there are values of another size than {load.size_bytes}"
    if load.filled:
        return None if there == load.keys else f"{there} of {load.keys} keys are there"
    # The number of different keys among as many random ones: its variance is less than its mean.
    mean = -load.keys * math.expm1(count * math.log1p(-1 / load.keys))
    if abs(there - mean) > _SIGMAS * math.sqrt(mean) + 1:
        return f"{there} keys are there, but {count} writes of random ones make {mean:.0f}"
    return None


def _common(drive: DriveRequest) -> tuple[str, ...]:
    load = drive.load
    return (
        f"--db={drive.directory / FILE}", f"--num={load.keys}", f"--value_size={load.size_bytes}",
        f"--seed={1 + drive.seed % (1 << 31)}", "--progress_reports=0",
    )  # fmt: skip


def _words(drive: DriveRequest) -> tuple[str, ...]:
    """Return the options of the measured run. The numbers of operations are those of each thread."""
    load = drive.load
    if drive.run_s is None:
        each = math.ceil(load.transactions / load.threads)
        amount = f"--reads={each}" if load.reads else f"--writes={each}"
    else:
        amount = f"--duration={drive.whole_s}"
    return (
        f"--benchmarks={load.operation}", f"--use_existing_db={int(load.filled)}", f"--threads={load.threads}",
        f"--sync={int(load.sync == 'yes')}", "--histogram=1", amount,
    )  # fmt: skip


def _buckets(said: str) -> Iterator[tuple[float, float, int]]:
    """Yield the buckets of the histogram."""
    histogram = _MICROSECONDS.search(f"{said}\n")
    for low_us, high_us, count in _BUCKET.findall(histogram[1] if histogram else ""):
        yield 1e3 * int(low_us), 1e3 * int(high_us), int(count)
