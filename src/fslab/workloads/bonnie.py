"""bonnie++: block and byte I/O of one large file, seeks, and create, stat and delete of many files.

Builds the bonnie++ command and parses its CSV line (format 1.98, of bonnie++ 2.00); starts no process. The times
include fsync of the large file. Those of creating and deleting include a sync(2) of the whole machine. The stat tests
read small files that are not empty. The large file is nearly all zeros.
"""

import os
import re
from itertools import product
from typing import ClassVar

from fslab import scaling
from fslab.errors import ToolOutputError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import (
    BLOCK_BYTES,
    DISK_BYTES_PER_S,
    Commands,
    Job,
    Reading,
    ToolOutput,
    Traits,
    Workload,
    other_output,
    stored_bytes,
)
from fslab.workloads._bonnie_parameters import FILES_UNIT, MIB, BonnieParameters

FORMAT = "1.98"
_FIELDS = 50
_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_KIB = 1024
_BYTEWISE_BYTES = 3 * MIB  # DefaultByteIO of bonnie.h
_GUESSED_FILES_PER_S = 15e3
_TOO_SHORT = "too short to measure (bonnie++ needs 0.5 s per test)"
# With less work, a test takes less than one second. Below half a second, bonnie++ reports nothing.
_LEAST_BYTES = 256 * MIB
_LEAST_FILES = 20 * FILES_UNIT
_LEAST_SEEKS = 16
_SEEKS_S = 3.0  # bonnie++ sleeps this long before the seeks
# Test → field of its figure (the next field is its CPU share), field of its longest operation, and what bonnie++ writes
# to standard error, without -q, when the test begins; a line ends with it. Fields are counted from the fprintf calls of
# bon_time.cpp: the header that bonnie++ prints lacks three of them.
_IO = {
    "putc": (9, 38, "Writing a byte at a time..."), "write": (11, 39, "Writing intelligently..."),
    "rewrite": (13, 40, "Rewriting..."), "getc": (15, 41, "Reading a byte at a time..."),
    "read": (17, 42, "Reading intelligently..."), "seek": (19, 43, "start 'em..."),
}  # fmt: skip
_ORDERS = {"seq": "sequential", "random": "random"}
_FILES = {
    f"{order}_{test}": (26 + 2 * at, 44 + at, f"{test.title()} files in {_ORDERS[order]} order...")
    for at, (order, test) in enumerate(product(_ORDERS, ("create", "stat", "delete")))
}
_TESTS = _IO | _FILES


class Bonnie(Workload[BonnieParameters]):
    """All tests follow each other in one run, so a file smaller than memory is read from the page cache.

    bonnie++ reports no figure (``+++++``) for a test shorter than half a second. It removes its files.
    """

    summary = "bonnie++: block I/O of a large file; create, stat and delete of many small files"
    tools: ClassVar[tuple[Tool, ...]] = (
        # bonnie++ has no option for its version. It prints the version with the usage.
        Tool(program="bonnie++", package="bonnie++", version_pattern=r"Version: (\S+)"),
    )
    Parameters = BonnieParameters

    def metrics(self, parameters: BonnieParameters) -> tuple[Metric, ...]:
        """Return rate, CPU share and longest single operation of each test."""
        found = (metric for test in _tests(parameters) for metric in _metrics(test))
        return self.headline_first(parameters, found)

    def headline(self, parameters: BonnieParameters) -> tuple[str, ...]:
        """Return the bandwidths of block write and block read, and the rate of sequential create.

        Without small files, the rate of seeks replaces create. Without the large file: sequential create, stat and
        delete.
        """
        if not parameters.files:
            return ("write_bandwidth", "read_bandwidth", *(("seek_rate",) if parameters.seeks else ()))
        if parameters.size_bytes:
            return ("write_bandwidth", "read_bandwidth", "seq_create_rate")
        return ("seq_create_rate", "seq_stat_rate", "seq_delete_rate")

    def commands(self, parameters: BonnieParameters, job: Job) -> Commands:
        """Return one bonnie++ command. It refuses to run as root without ``-u root``, which other users cannot give."""
        size = f"{parameters.size_bytes // MIB}"
        if parameters.size_bytes:
            size += f":{parse_size(parameters.bs)}:{parameters.seeks}:{parameters.seekers}"
        files = f"{parameters.files // FILES_UNIT}"
        if parameters.files:
            files += f":{parse_size(parameters.max_size)}:{parse_size(parameters.min_size)}:{parameters.dirs}"
        run = (
            "bonnie++", *(("-q",) if job.turns == 1 else ()), "-m", "fslab", "-d", str(job.directory),
            *(("-u", "root") if os.geteuid() == 0 else ()),
            "-r", str(parse_size(parameters.ram) // MIB), "-s", size, "-n", files,
            *(("-f",) if parameters.fast else ()),
            *(("-b",) if parameters.fsync else ()),
            *(("-D",) if parameters.direct else ()),
            "-z", str(job.seed % 2**32),
        )  # fmt: skip
        return Commands(run=run)

    def read(self, parameters: BonnieParameters, output: ToolOutput) -> Reading:
        """Parse the CSV line; ``+++++`` becomes None. bonnie++ reports a full disk for the large file only."""
        line = _fields(output)
        metrics: dict[str, float | None] = {}
        seconds: dict[str, float] = {}
        untold = []
        for test in _tests(parameters):
            at, longest, _ = _TESTS[test]
            figure, cpu, latency = _metrics(test)
            printed = _number(line[at], test)
            rate = printed and printed * (_KIB if figure.unit is Unit.BYTES_PER_SECOND else 1)
            metrics |= {
                figure.name: rate,
                cpu.name: _number(line[at + 1], test),
                latency.name: _latency_ns(line[longest], test),
            }
            if rate:
                seconds[test] = _amount(parameters, test) / rate
            untold += [test] if line[at].startswith("+") else []
        return Reading(
            metrics=metrics,
            read_bytes=_moved(parameters),
            written_bytes=_moved(parameters),
            measured_s=None if untold else sum(seconds.values()),
            parts_s=seconds,
            marks={test: mark for test in seconds if (mark := _mark(output.stderr, test))},
            direct=False,  # reads and seeks never use O_DIRECT
            working_set_bytes=parameters.size_bytes + parameters.files * parse_size(parameters.max_size),
            flushed=True,
            zeros=True,
            messages=(f"{_TOO_SHORT}: {', '.join(untold)}",) if untold else (),
        )

    def why_whole(self, parameters: BonnieParameters) -> str | None:
        return (
            "bonnie++ writes back all file systems (sync) in its tests of small files"
            if parameters.files
            else None
        )

    def needs(self, parameters: BonnieParameters) -> Needs:
        wanted = {Ability.DIRECT_WRITES} if parameters.direct else set()
        largest = max(parameters.size_bytes, parse_size(parameters.max_size))
        return Needs(abilities=frozenset(wanted), largest_file_bytes=largest)

    def scaled(self, parameters: BonnieParameters, factor: float) -> scaling.Changes:
        """Scale the large file, its seeks, and the small files with their directories; not below what can be timed."""
        found = dict[str, scaling.ScaledAmount]()
        if parameters.size_bytes:
            found["size"] = scaling.size(parameters.size, factor, least_bytes=_LEAST_BYTES, unit_bytes=MIB)
            found["seeks"] = scaling.count(parameters.seeks, factor, least=_LEAST_SEEKS)
            if ram := parse_size(parameters.ram) // MIB:
                # Rounded down: more than half of 'size' is rejected.
                scaled = max(ram * parse_size(str(found["size"].value)) // parameters.size_bytes, 1)
                found["ram"] = scaling.ScaledAmount(
                    written=parameters.ram, value=f"{scaled}m", share=scaled / ram
                )
        if parameters.files:
            found["files"] = scaling.count(parameters.files, factor, least=_LEAST_FILES, unit=FILES_UNIT)
            found["dirs"] = scaling.count(parameters.dirs, found["files"].share)
        return {key: change for key, change in found.items() if change.share != 1}

    def traits(self, parameters: BonnieParameters) -> Traits:
        """Return the traits of a large file, small files, or both. The stat tests read names, and files with data."""
        large = parameters.size_bytes > 0
        return Traits(
            reads=True,
            writes=True,
            direct=False,
            reads_back=large,
            request_bytes=(parse_size(parameters.bs),) if large else (),
            parallel=parameters.seekers if large and parameters.seeks else 1,
            working_set_bytes=parameters.size_bytes + parameters.files * parse_size(parameters.max_size),
            files=parameters.files + large,
            directories=parameters.dirs,
        )

    def space_bytes(self, parameters: BonnieParameters) -> int:
        """Return the larger of the large file and the small files (blocks, inodes): they never exist together."""
        dirs_bytes = parameters.dirs * BLOCK_BYTES if parameters.files else 0
        small_bytes = stored_bytes(parameters.files, parse_size(parameters.max_size))
        return max(parameters.size_bytes, small_bytes + dirs_bytes)

    def expected_s(self, parameters: BonnieParameters) -> float:
        """Estimate the duration: the large file is transferred four times, each small file is accessed six times."""
        seeks_s = _SEEKS_S if parameters.size_bytes else 0.0
        files_s = 6 * parameters.files / _GUESSED_FILES_PER_S
        return self.moved_bytes(parameters) / DISK_BYTES_PER_S + seeks_s + files_s

    def moved_bytes(self, parameters: BonnieParameters) -> float:
        return 4 * parameters.size_bytes


def _tests(parameters: BonnieParameters) -> tuple[str, ...]:
    left_out = {"putc", "getc"} if parameters.fast else set[str]()
    left_out |= set() if parameters.seeks else {"seek"}
    io = tuple(test for test in _IO if test not in left_out) if parameters.size_bytes else ()
    return (*io, *(_FILES if parameters.files else ()))


def _mark(text: str, test: str) -> tuple[int, int] | None:
    """Return the offsets in standard error at which a test has begun, and has ended; None if it does not say so."""
    *_, said = _TESTS[test]
    at = text.find(said)
    begin = at + len(said)
    end = text.find("\n", begin)
    return (begin, end) if at >= 0 and end >= 0 else None


def _metrics(test: str) -> tuple[Metric, Metric, Metric]:
    counted = Unit.FILES_PER_SECOND if test in _FILES else Unit.OPERATIONS_PER_SECOND
    name, unit = ("rate", counted) if test in {*_FILES, "seek"} else ("bandwidth", Unit.BYTES_PER_SECOND)
    return (
        Metric(name=f"{test}_{name}", unit=unit),
        Metric(name=f"{test}_cpu", unit=Unit.PERCENT, better=Direction.NEITHER),
        Metric(name=f"{test}_latency_max", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    )


def _amount(parameters: BonnieParameters, test: str) -> int:
    if test in _FILES:
        return parameters.files
    if test == "seek":
        return parameters.seeks
    return min(_BYTEWISE_BYTES, parameters.size_bytes) if test in {"putc", "getc"} else parameters.size_bytes


def _moved(parameters: BonnieParameters) -> int | None:
    """Return the bytes written, which equal the bytes read; None if they depend on random numbers.

    Writing and reading go over each file equally often, and rewriting does both. Random are the number of seeks that
    write, and the sizes of small files between two limits.
    """
    small = parse_size(parameters.max_size) if parameters.files else 0
    drawn = parameters.files and small != parse_size(parameters.min_size)
    if drawn or (parameters.size_bytes and parameters.seeks):
        return None
    bytewise = 0 if parameters.fast else _amount(parameters, "putc")
    return 2 * parameters.size_bytes + bytewise + 2 * parameters.files * small


def _fields(output: ToolOutput) -> list[str]:
    lines = output.stdout.strip().splitlines()
    fields = lines[-1].split(",") if lines else []
    if len(fields) != _FIELDS or fields[0] != FORMAT:
        raise other_output(f"bonnie++ printed no CSV line of format {FORMAT}", output.stderr, output.stdout)
    return fields


def _number(field: str, test: str) -> float | None:
    if not field or field.startswith("+"):
        return None
    try:
        return float(field)
    except ValueError as error:
        raise ToolOutputError(f"bonnie++ reports '{field}' for {test}, which is not a number") from error


def _latency_ns(field: str, test: str) -> float | None:
    match = re.fullmatch(r"(\d+)(us|ms|s)", field)
    if field and match is None:
        raise ToolOutputError(f"bonnie++ reports '{field}' as the latency of {test}, which is not a time")
    return float(match[1]) * _NS[match[2]] if match else None
