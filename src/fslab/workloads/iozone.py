"""IOzone: sequential and random reads and writes of one file.

Builds the iozone commands and parses their report; starts no process. With ``program: engine``, fslab's engine runs the
same tests. Properties of IOzone 3.489: random tests access each record once, always in the same order. The data are
nearly all zeros: a file system that compresses writes almost nothing. Each read test first reads a record untimed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from fslab import scaling
from fslab.errors import SIZES_HINT, NoSpaceError, ToolOutputError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tool_messages import reports_full_disk
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Unit, shown_size
from fslab.workloads import (
    DISK_BYTES_PER_S,
    Commands,
    Job,
    Reading,
    Switchable,
    ToolOutput,
    Traits,
    Workload,
    long_options,
)
from fslab.workloads import _engine_document as documents
from fslab.workloads._iozone_parameters import ENOUGH_S, KIB, TESTS, IozoneParameters

FILE = "fslab.iozone"
CACHE_BYTES = 1024 * KIB  # what IOzone purges without -S
# Only for the estimate of a plan.
_LEAST_BYTES = 1 << 20
_PROCESSES_S = 3.4  # IOzone sleeps this long per test with several processes: 20.3 s in six tests of 8 MiB
_ROW = re.compile(r"^ +(\d+) +(\d+) +(\d[\d ]*)$", re.MULTILINE)
_CHILDREN = re.compile(r"Children see throughput for +(\d+) ([a-z-]+(?: [a-z-]+)*)\s*= *([\d.]+) kB/sec")
_CALLED = {
    "write": "initial writers", "rewrite": "rewriters", "read": "readers", "reread": "re-readers",
    "random_read": "random readers", "random_write": "random writers",
}  # fmt: skip


class Iozone(Workload[IozoneParameters]):
    """Without test 0 it is a cold read: IOzone writes the file before the caches are dropped.

    All other tests follow each other in one run, so data that fits into memory is read from memory. Bandwidths of
    several processes are IOzone's "children see": the sum of what each process did until the first one was done. If the
    disk is full, several processes wait until the time limit.
    """

    summary = "IOzone: bandwidth of sequential and random reads and writes of a file"
    tools: ClassVar[tuple[Tool, ...]] = (
        Tool(
            program="iozone", package="iozone3", component="non-free",
            version_argv=("-v",), version_pattern=r"Revision: (\d+\.\d+)",
        ),
        Tool(program="fslab-engine", package=None),
    )  # fmt: skip
    Parameters = IozoneParameters

    def tools_of(self, parameters: IozoneParameters) -> tuple[Tool, ...]:
        """Return IOzone or the engine, as the study sets it. Neither replaces the other."""
        iozone, own = self.tools
        return (own,) if parameters.program == "engine" else (iozone,)

    def metrics(self, parameters: IozoneParameters) -> tuple[Metric, ...]:
        names = (f"{test}_bandwidth" for test in _tests(parameters))
        found = (Metric(name=name, unit=Unit.BYTES_PER_SECOND) for name in names)
        return self.headline_first(parameters, found)

    def headline(self, parameters: IozoneParameters) -> tuple[str, ...]:
        """Return the first test of each kind, or both tests of the only kind."""
        tests = _tests(parameters)
        if len(parameters.groups) > 1:
            tests = tuple(test for test in tests if test in {kind[0] for kind in TESTS.values()})
        return tuple(f"{test}_bandwidth" for test in tests)

    def commands(self, parameters: IozoneParameters, job: Job) -> Commands:
        """Return one iozone command for all tests; before it, one that writes the files if the tests only read them."""
        if parameters.program == "engine":
            return _engine_commands(parameters, job)
        files = tuple(str(job.directory / name) for name in _files(parameters))
        sizes = ("-s", f"{parameters.size_bytes // KIB}k", "-r", f"{parameters.record_bytes // KIB}k")
        where = ("-f", *files) if parameters.threads == 1 else ("-t", str(parameters.threads), "-F", *files)
        # -w keeps the files: removing one before its pages reach the device would hide the cost of writing it.
        layout = ("iozone", "-e", "-c", "-i", "0", "-+n", "-w", *sizes, *where)
        prepare = () if 0 in parameters.groups else (layout,)
        return Commands(
            prepare=prepare,
            run=(*_argv(parameters), "-w", *sizes, *where),
            cleanup=(("rm", "-f", *files),),
        )

    def read(self, parameters: IozoneParameters, output: ToolOutput) -> Reading:
        """Parse the table, or the lines of the children. IOzone's kB are 1024 bytes."""
        if parameters.program == "engine":
            return _reading_of_engine(parameters, output)
        if reports_full_disk(output.stderr, output.stdout):
            raise NoSpaceError("iozone: no space left on device", hint=SIZES_HINT)
        if parameters.threads > 1:
            return _reading(parameters, dict(_children(parameters, output.stdout)), {})
        rates = dict(_table(parameters, output.stdout))
        seconds = {name: parameters.size_bytes / rate if rate else 0.0 for name, rate in rates.items()}
        poor = tuple(re.findall(r"^Timer resolution is poor.*?$", output.stdout, re.MULTILINE))
        return _reading(parameters, rates, seconds, poor)

    def needs(self, parameters: IozoneParameters) -> Needs:
        both = frozenset({Ability.DIRECT_READS, Ability.DIRECT_WRITES})
        return Needs(
            abilities=both if parameters.direct else frozenset(), largest_file_bytes=parameters.size_bytes
        )

    def why_whole(self, parameters: IozoneParameters) -> str | None:
        """Return why not, except for single rounds of one process of the engine, which reports when each test ran."""
        if parameters.program == "iozone":
            return "IOzone does not tell when its tests begin and end ('program: engine' does)"
        if parameters.threads > 1 or parameters.most_rounds > 1:
            return "several processes or rounds of IOzone's tests end by the clock"
        return None

    def scaled(self, parameters: IozoneParameters, factor: float) -> scaling.Changes:
        """Scale the file, in whole records, to at least 1 MiB and one record."""
        record = parameters.record_bytes
        least = max(record, _LEAST_BYTES)
        return {"size": scaling.size(parameters.size, factor, least_bytes=least, unit_bytes=record)}

    def traits(self, parameters: IozoneParameters) -> Traits:
        """Return the traits. Files that are read were written before; without test 0, outside the measured time."""
        return Traits(
            reads=bool(set(parameters.groups) & {1, 2}),
            writes=bool(set(parameters.groups) & {0, 2}),
            direct=parameters.direct,
            reads_back={0, 1} <= set(parameters.groups),
            request_bytes=(parameters.record_bytes,),
            parallel=parameters.threads,
            working_set_bytes=parameters.threads * parameters.size_bytes,
            files=parameters.threads * parameters.most_rounds,
            switches={Switchable.DIRECT: {"direct": True}, Switchable.SERIAL: {"threads": 1}},
        )

    def space_bytes(self, parameters: IozoneParameters) -> int:
        return parameters.size_bytes * parameters.threads * parameters.most_rounds

    def expected_s(self, parameters: IozoneParameters) -> float:
        """Estimate the duration: each test transfers its file once in each round, if all are needed."""
        sleeps = parameters.threads > 1 and parameters.program == "iozone"
        slept_s = _passes(parameters) * _PROCESSES_S * parameters.most_rounds if sleeps else 0.0
        return slept_s + self.moved_bytes(parameters) / DISK_BYTES_PER_S

    def moved_bytes(self, parameters: IozoneParameters) -> float:
        return parameters.size_bytes * parameters.threads * _passes(parameters) * parameters.most_rounds


def _passes(parameters: IozoneParameters) -> int:
    return len(_tests(parameters)) + (0 not in parameters.groups)


def _tests(parameters: IozoneParameters) -> tuple[str, ...]:
    """Return the tests with a figure, in IOzone's order. -+n skips rewrite and reread, but not random write."""
    return tuple(
        test for test in _columns(parameters) if parameters.retest or test not in {"rewrite", "reread"}
    )


def _columns(parameters: IozoneParameters) -> tuple[str, ...]:
    return tuple(test for group in parameters.groups for test in TESTS[group])


def _files(parameters: IozoneParameters) -> tuple[str, ...]:
    if parameters.threads == 1:
        return (FILE,)
    return tuple(f"{FILE}.{number}" for number in range(parameters.threads))


def _argv(parameters: IozoneParameters) -> tuple[str, ...]:
    """Return the options of iozone(1) but sizes and files."""
    switches = {
        "-e": parameters.flush, "-c": parameters.close, "-I": parameters.direct, "-o": parameters.sync,
        "-p": parameters.purge, "-+n": not parameters.retest,
    }  # fmt: skip
    values = {"-S": parameters.cache_size, "-L": parameters.cache_line}
    return (
        "iozone",
        *(switch for switch, is_on in switches.items() if is_on),
        *(word for key, value in values.items() if value is not None for word in (key, str(value))),
        *(word for group in parameters.groups for word in ("-i", str(group))),
    )


def _table(parameters: IozoneParameters, text: str) -> Iterator[tuple[str, float | None]]:
    """Yield metric and bytes per second of each cell of the table. ToolOutputError if a cell is missing."""
    rows = {(int(row[0]) * KIB, int(row[1]) * KIB): row[2].split() for row in _ROW.findall(text)}
    columns, told = _columns(parameters), set(_tests(parameters))
    row = rows.get((parameters.size_bytes, parameters.record_bytes), [])
    if len(row) != len(columns):
        raise ToolOutputError(
            f"iozone reports {len(row)} figures for {shown_size(parameters.size_bytes)} in records of "
            f"{shown_size(parameters.record_bytes)}, not {len(columns)}"
        )
    yield from (
        (f"{test}_bandwidth", float(kib) * KIB or None)
        for test, kib in zip(columns, row, strict=True)
        if test in told
    )


def _engine_commands(parameters: IozoneParameters, job: Job) -> Commands:
    """Return one command of fslab's engine for all tests; before it, one that writes the files if they only read."""
    several = parameters.most_rounds > 1
    purged = parameters.cache_size * KIB if parameters.cache_size else CACHE_BYTES
    run: dict[str, Any] = {
        "tests": ",".join(map(str, parameters.groups)),
        "flush": parameters.flush,
        "close": parameters.close,
        "direct": parameters.direct,
        "sync": parameters.sync,
        "no-retest": not parameters.retest,
        "purge": purged if parameters.purge else None,
        "size": parameters.size_bytes,
        "record": parameters.record_bytes,
        "threads": parameters.threads,
        "latency": "off",
        "seed": job.seed,
        "json": True,
        "rounds": parameters.most_rounds if several else None,
        "enough": ENOUGH_S if several else None,
        # Removing a file before its pages reach the device would hide the cost of writing it.
        "keep": True,
    }
    whole = {"flush": True, "close": True, "direct": False, "sync": False}
    layout = {**run, **whole, "tests": 0, "no-retest": True, "enough": None}
    engine = ("fslab-engine", "iozone", str(job.directory))
    return Commands(
        prepare=() if 0 in parameters.groups else ((*engine, *long_options(layout)),),
        run=(*engine, *long_options(run)),
        cleanup=(("rm", "-rf", f"{job.directory}/fslab-iozone"),),
    )


def _reading_of_engine(parameters: IozoneParameters, output: ToolOutput) -> Reading:
    """Parse the document. ToolOutputError for other output, and for other sizes than were requested."""
    document = documents.document_of(output)
    tests, operations = document["answer"]["tests"], document["operations"]
    rates: dict[str, float | None] = {}
    seconds: dict[str, float] = {}
    for test in tests:
        if not 1 <= test["rounds"] <= parameters.most_rounds:
            raise ToolOutputError(
                f"fslab-engine reports {test['rounds']} rounds, not up to {parameters.most_rounds}"
            )
        size, record = int(test["size_bytes"]), int(test["record_bytes"])
        if (size, record) != (parameters.size_bytes, parameters.record_bytes):
            raise ToolOutputError(
                f"fslab-engine reports {shown_size(size)} in records of {shown_size(record)}, which was not requested"
            )
        name, rate = f"{_test_of(test)}_bandwidth", test["bandwidth_bytes_per_second"]
        rates[name] = None if rate is None else float(rate)  # None: it took no time
        if rate:
            seconds[name] = int(test["rounds"]) * size / rate
    windows: dict[str, tuple[tuple[float, float], ...]] = {}
    cpu_s: dict[str, float] = {}
    for operation in operations:
        test = _test_of(operation)
        windows[test] = (*windows.get(test, ()), documents.window(operation))
        cpu_s[test] = cpu_s.get(test, 0.0) + documents.cpu_s(operation)
    once = {test: each[0] for test, each in windows.items()} if len(operations) == len(tests) else {}
    rounds = max((int(test["rounds"]) for test in tests), default=1)
    return replace(
        _reading(parameters, rates, seconds, rounds=rounds),
        windows={f"{test}_bandwidth": window for test, window in once.items()},
        part_windows=once,
        part_rounds=windows,
        part_cpu_s=cpu_s,
    )


def _test_of(entry: dict[str, Any]) -> str:
    return str(entry["name"]).replace("-", "_")


def _children(parameters: IozoneParameters, text: str) -> Iterator[tuple[str, float | None]]:
    said = {called: (int(count), float(rate)) for count, called, rate in _CHILDREN.findall(text)}
    for test in _tests(parameters):
        count, rate = said.get(_CALLED[test], (0, 0.0))
        if count != parameters.threads:
            raise ToolOutputError(
                f"iozone's report has no throughput of {parameters.threads} {_CALLED[test]}"
            )
        yield f"{test}_bandwidth", rate * KIB or None


def _reading(
    parameters: IozoneParameters,
    rates: dict[str, float | None],
    seconds: dict[str, float],
    messages: tuple[str, ...] = (),
    rounds: int = 1,
) -> Reading:
    """Return the reading. Several processes stop counting when the first is done: bytes and time are unknown."""
    tests, total = _tests(parameters), rounds * parameters.size_bytes
    writes = sum("write" in test for test in tests)
    alone = parameters.threads == 1
    timed = seconds if alone else {}
    return Reading(
        metrics=rates,
        read_bytes=total * (len(tests) - writes) if alone else None,
        written_bytes=total * writes if alone else None,
        measured_s=sum(seconds.values()) if alone else None,
        parts_s={name.replace("_bandwidth", ""): taken for name, taken in timed.items()},
        direct=parameters.direct,
        working_set_bytes=parameters.size_bytes * parameters.threads,
        rounds=rounds,
        flushed=(parameters.flush or parameters.sync) if writes else None,
        zeros=True,
        messages=messages,
    )
