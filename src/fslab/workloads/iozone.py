"""IOzone: sequential and random reads and writes of one file, over file size and record length.

Builds the iozone commands and parses their report; starts no process. With ``program: engine``, fslab's engine runs the
same tests. Properties of IOzone 3.489: random tests access each record once, always in the same order. The data are
nearly all zeros: a file system that compresses writes almost nothing. Each read test first reads a record untimed.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar

from fslab import scaling
from fslab.abilities import Ability, Needs
from fslab.errors import NoSpaceError, ToolOutputError
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Unit
from fslab.workloads import Commands, Job, Reading, ToolOutput, Workload
from fslab.workloads import _iozone_engine as engine
from fslab.workloads import _iozone_options as options
from fslab.workloads._iozone_parameters import KIB, TESTS, IozoneParameters, Point, label
from fslab.workloads._traits import Switchable, Traits

FILE = "fslab.iozone"
# Only for the estimate of a plan.
_GUESSED_BYTES_PER_S = 200e6
_LEAST_BYTES = 1 << 20
_PROCESSES_S = 3.4  # IOzone sleeps this long per test with several processes: 20.3 s in six tests of 8 MiB
_ROW = re.compile(r"^ +(\d+) +(\d+) +(\d[\d ]*)$", re.MULTILINE)
_CHILDREN = re.compile(r"Children see throughput for +(\d+) ([a-z -]+?)\s*= *([\d.]+) kB/sec")
_CALLED = {
    "write": "initial writers", "rewrite": "rewriters", "read": "readers", "reread": "re-readers",
    "random_read": "random readers", "random_write": "random writers",
}  # fmt: skip


class Iozone(Workload[IozoneParameters]):
    """A point without test 0 is a cold read: IOzone writes the file before the caches are dropped.

    All other tests follow each other in one run, so data that fits into memory is read from memory. A sweep starts each
    point with a new file. Bandwidths of several processes are IOzone's "children see": the sum of what each process did
    until the first one was done. If the disk is full, several processes wait until the time limit.
    """

    summary = "IOzone: bandwidth by file size and record length, at one point or in a sweep"
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
        """Return the bandwidth of each test; in a sweep at each point: ``read_bandwidth_64m_4k``."""
        names = [_name(parameters, test, point) for point in parameters.points for test in _tests(parameters)]
        first = self.headline(parameters)
        ordered = sorted(names, key=lambda name: name not in first)
        return tuple(Metric(name=name, unit=Unit.BYTES_PER_SECOND) for name in ordered)

    def headline(self, parameters: IozoneParameters) -> tuple[str, ...]:
        """Return the first test of each kind, or both tests of the only kind; in a sweep at its last point."""
        tests = _tests(parameters)
        if len(parameters.groups) > 1:
            tests = tuple(test for test in tests if test in {kind[0] for kind in TESTS.values()})
        return tuple(_name(parameters, test, parameters.points[-1]) for test in tests)

    def commands(self, parameters: IozoneParameters, job: Job) -> Commands:
        """Return one iozone command for all tests; before it, one that writes the files if the tests only read them."""
        if parameters.program == "engine":
            return engine.commands(parameters, job)
        files = tuple(str(job.directory / name) for name in _files(parameters))
        cleanup = (("rm", "-f", *files),)
        if parameters.sweep:
            return Commands(
                run=(*options.argv(parameters), *options.sweep(parameters), "-f", *files), cleanup=cleanup
            )
        size, record = parameters.points[0]
        point = ("-s", f"{size // KIB}k", "-r", f"{record // KIB}k")
        where = ("-f", *files) if parameters.threads == 1 else ("-t", str(parameters.threads), "-F", *files)
        # -w keeps the files: removing one before its pages reach the device would hide the cost of writing it.
        layout = ("iozone", "-e", "-c", "-i", "0", "-+n", "-w", *point, *where)
        prepare = () if 0 in parameters.groups else (layout,)
        return Commands(
            prepare=prepare, run=(*options.argv(parameters), "-w", *point, *where), cleanup=cleanup
        )

    def read(self, parameters: IozoneParameters, output: ToolOutput) -> Reading:
        """Parse the table, or the lines of the children. IOzone's kB are 1024 bytes."""
        if parameters.program == "engine":
            return _reading_of_engine(parameters, output)
        if "No space left on device" in output.stderr + output.stdout:
            raise NoSpaceError(
                "iozone: no space left on device", hint="give the medium a larger size or a smaller 'size'"
            )
        if parameters.threads > 1:
            return _reading(parameters, dict(_children(parameters, output.stdout)), {})
        rates, seconds = dict[str, float | None](), dict[str, float]()
        for point, test, rate in _table(parameters, output.stdout):
            name = _name(parameters, test, point)
            rates[name] = rate or None
            seconds[name] = point[0] / rate if rate else 0.0
        poor = tuple(re.findall(r"^Timer resolution is poor.*?$", output.stdout, re.MULTILINE))
        return _reading(parameters, rates, seconds, poor)

    def needs(self, parameters: IozoneParameters) -> Needs:
        """Return the need for direct I/O, if requested, and for a file of the largest size."""
        both = frozenset({Ability.DIRECT_READS, Ability.DIRECT_WRITES})
        return Needs(
            abilities=both if parameters.direct else frozenset(), largest_file_bytes=parameters.largest_bytes
        )

    def why_whole(self, parameters: IozoneParameters) -> str | None:
        """Return why not, except for single rounds of one process of the engine, which reports when each test ran."""
        if parameters.program == "iozone":
            return "IOzone does not tell when its tests begin and end ('program: engine' does)"
        if parameters.threads > 1 or parameters.most_rounds > 1:
            return "several processes or rounds of IOzone's tests end by the clock"
        return None

    def scaled(self, parameters: IozoneParameters, factor: float) -> scaling.Changes:
        """Scale the file, in whole records, to at least 1 MiB and one record; in a sweep the last size."""
        record = max(record for _, record in parameters.points)
        if parameters.largest is None:
            least = max(record, _LEAST_BYTES)
            size = scaling.size(parameters.size or "0", factor, least_bytes=least, unit_bytes=record)
            return {"size": size}
        least = max(min(size for size, _ in parameters.points), record, _LEAST_BYTES)
        return {"largest": scaling.size(parameters.largest, factor, least_bytes=least, unit_bytes=KIB)}

    def traits(self, parameters: IozoneParameters) -> Traits:
        """Return the traits. Files that are read were written before; without test 0, outside the measured time."""
        return Traits(
            reads=bool(set(parameters.groups) & {1, 2}),
            writes=bool(set(parameters.groups) & {0, 2}),
            direct=parameters.direct,
            request_bytes=tuple(sorted({record for _, record in parameters.points})),
            parallel=parameters.threads,
            working_set_bytes=parameters.threads * parameters.largest_bytes,
            files=parameters.threads * parameters.most_rounds,
            switches={Switchable.DIRECT: {"direct": True}, Switchable.SERIAL: {"threads": 1}},
        )

    def space_bytes(self, parameters: IozoneParameters) -> int:
        """Return the size of all files; in a sweep of the largest, since one exists at a time."""
        return parameters.largest_bytes * parameters.threads * parameters.most_rounds

    def expected_s(self, parameters: IozoneParameters) -> float:
        """Estimate the duration: each test of each point transfers its file once in each round, if all are needed."""
        passes = len(_tests(parameters)) + (0 not in parameters.groups)
        moved = sum(size for size, _ in parameters.points) * parameters.threads * passes
        sleeps = parameters.threads > 1 and parameters.program == "iozone"
        once = moved / _GUESSED_BYTES_PER_S + (passes * _PROCESSES_S if sleeps else 0.0)
        return once * parameters.most_rounds


def _tests(parameters: IozoneParameters) -> tuple[str, ...]:
    """Return the tests with a figure, in IOzone's order. -+n skips rewrite and reread, but not random write."""
    return tuple(
        test for test in _columns(parameters) if parameters.retest or test not in {"rewrite", "reread"}
    )


def _columns(parameters: IozoneParameters) -> tuple[str, ...]:
    return tuple(test for group in parameters.groups for test in TESTS[group])


def _name(parameters: IozoneParameters, test: str, point: Point) -> str:
    return f"{test}_bandwidth" + (f"_{label(point[0])}_{label(point[1])}" if parameters.sweep else "")


def _files(parameters: IozoneParameters) -> tuple[str, ...]:
    if parameters.threads == 1:
        return (FILE,)
    return tuple(f"{FILE}.{number}" for number in range(parameters.threads))


def _table(parameters: IozoneParameters, text: str) -> Iterator[tuple[Point, str, float]]:
    """Yield point, test and bytes per second of each cell of the table. ToolOutputError if a cell is missing."""
    rows = {(int(row[0]) * KIB, int(row[1]) * KIB): row[2].split() for row in _ROW.findall(text)}
    columns, told = _columns(parameters), set(_tests(parameters))
    for point in parameters.points:
        row = rows.get(point, [])
        if len(row) != len(columns):
            raise ToolOutputError(
                f"iozone reports {len(row)} figures for {label(point[0])} in records of "
                f"{label(point[1])}, not {len(columns)}"
            )
        yield from (
            (point, test, float(kib) * KIB) for test, kib in zip(columns, row, strict=True) if test in told
        )


def _reading_of_engine(parameters: IozoneParameters, output: ToolOutput) -> Reading:
    told = engine.reading_of(parameters, output)
    rates = {_name(parameters, each.test, each.point): each.rate for each in told}
    seconds = {_name(parameters, each.test, each.point): each.seconds for each in told if each.rate}
    windows = {_name(parameters, each.test, each.point): each.window for each in told if each.window}
    rounds = max((each.rounds for each in told), default=1)
    reading = _reading(parameters, rates, seconds, rounds=rounds, windows=windows)
    return engine.with_rounds(parameters, reading, output)


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
    windows: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> Reading:
    """Return the reading. Several processes stop counting when the first is done: bytes and time are unknown."""
    tests, total = _tests(parameters), rounds * sum(size for size, _ in parameters.points)
    writes = sum("write" in test for test in tests)
    alone = parameters.threads == 1
    timed = seconds if alone else {}
    last = f"_{label(parameters.points[-1][0])}_{label(parameters.points[-1][1])}" if parameters.sweep else ""
    return Reading(
        metrics=rates,
        read_bytes=total * (len(tests) - writes) if alone else None,
        written_bytes=total * writes if alone else None,
        measured_s=sum(seconds.values()) if alone else None,
        # In a sweep only the last point, which a table shows: tests of the small files are always short.
        parts_s={
            name.replace("_bandwidth", ""): taken for name, taken in timed.items() if name.endswith(last)
        },
        windows=windows,
        part_windows={
            name.replace("_bandwidth", ""): window for name, window in windows.items() if name.endswith(last)
        },
        direct=parameters.direct,
        working_set_bytes=parameters.largest_bytes * parameters.threads,
        rounds=rounds,
        flushed=(parameters.flush or parameters.sync) if writes else None,
        zeros=True,
        messages=messages,
    )
