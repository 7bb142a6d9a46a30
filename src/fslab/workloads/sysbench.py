"""sysbench fileio: threads that read and write files test_file.N in the working directory.

Builds the sysbench commands and parses their report; starts no process. sysbench has no option for a directory: this
relies on the runner, which runs every command in ``Job.directory``. The data are zeros.
"""

import re
from collections.abc import Mapping
from itertools import accumulate
from math import ceil
from typing import Any, ClassVar

from fslab import scaling
from fslab.errors import LARGER_MEDIUM, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tool_messages import reports_full_disk
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_duration, parse_size
from fslab.workloads import (
    Commands,
    Job,
    Reading,
    Switchable,
    ToolOutput,
    Traits,
    Workload,
    long_options,
    nearly_all_flushed,
)
from fslab.workloads._sysbench_parameters import SysbenchParameters

_PREPARE_BYTES_PER_S = 300e6
_GUESSED_EVENTS_PER_S = 10e3
_LEAST_BYTES = 4 << 20
_LEAST_EVENTS = 100
_NS_PER_MS = 1e6
_PERCENTILE = 95
_BUCKET = re.compile(r"^ +(\d+\.\d+) \|\**\s+(\d+)$", re.MULTILINE)
# The report is rounded to 10 µs, its histogram to 1 µs: below ten times that, two stacks would differ by rounding.
_LEAST_MAX_NS = 100_000
_LEAST_PERCENTILE_NS = 10_000
_METRICS = (
    *(
        Metric(name=f"{direction}_{name}", unit=unit)
        for direction in ("read", "write")
        for name, unit in (("iops", Unit.IOPS), ("bandwidth", Unit.BYTES_PER_SECOND))
    ),
    Metric(name="fsync_rate", unit=Unit.OPERATIONS_PER_SECOND, better=Direction.NEITHER),
    *(
        Metric(name=f"latency_{name}", unit=Unit.NANOSECONDS, better=Direction.LOWER)
        for name in ("mean", "p95", "max")
    ),
)


class Sysbench(Workload[SysbenchParameters]):
    """``prepare`` lays out the files, except for seqwr, which makes them itself; ``cleanup`` removes them.

    If seqwr reaches the end before its time is over, it writes the same files again.
    """

    summary = "sysbench fileio: threads that read and write files with and without fsync"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="sysbench", package="sysbench"),)
    Parameters = SysbenchParameters

    def metrics(self, parameters: SysbenchParameters) -> tuple[Metric, ...]:
        """Return the rates of each direction in use, and the latency of all requests: sysbench reports no other. With
        async, it is not that of a request, but of handing one over."""
        used = (*parameters.directions, *(("fsync",) if parameters.writes else ()))
        used += () if parameters.file_io_mode == "async" else ("latency",)
        return self.headline_first(parameters, [each for each in _METRICS if each.name.startswith(used)])

    def headline(self, parameters: SysbenchParameters) -> tuple[str, ...]:
        """Return IOPS of random modes, bandwidth of others; before it, with ``rate``, the latency if it is known."""
        first = ("latency_mean",) if parameters.rate and parameters.file_io_mode != "async" else ()
        rate = "iops" if parameters.file_test_mode.startswith("rnd") else "bandwidth"
        return (*first, *(f"{direction}_{rate}" for direction in parameters.directions))

    def commands(self, parameters: SysbenchParameters, job: Job) -> Commands:
        options = ("sysbench", "fileio", *_options(parameters, job))
        prepare = () if parameters.file_test_mode == "seqwr" else ((*options, "prepare"),)
        return Commands(prepare=prepare, run=(*options, "run"), cleanup=((*options, "cleanup"),))

    def read(self, parameters: SysbenchParameters, output: ToolOutput) -> Reading:
        """Parse the report. NoSpaceError or ToolFailedError for an error that sysbench marks as FATAL."""
        text = output.stdout
        if fatal := re.search(r"^FATAL: (.*)$", text, re.MULTILINE):
            if reports_full_disk(fatal[1]):
                hint = f"{LARGER_MEDIUM}, or the workload a smaller file-total-size"
                raise NoSpaceError(f"sysbench: {fatal[1]}", hint=hint)
            raise ToolFailedError(f"sysbench: {fatal[1]}")
        rates = {name: _figure(text, f"{name}/s") for name in ("reads", "writes", "fsyncs")}
        events = _figure(text, "total number of events")
        counts = _counts(parameters, rates, events)
        block_bytes = parse_size(parameters.file_block_size)
        metrics = {
            "read_iops": rates["reads"] or None,
            "write_iops": rates["writes"] or None,
            "read_bandwidth": rates["reads"] * block_bytes or None,
            "write_bandwidth": rates["writes"] * block_bytes or None,
            "fsync_rate": rates["fsyncs"],
            # The printed average has two decimals of a millisecond; the sum is more precise.
            "latency_mean": _figure(text, "sum") * _NS_PER_MS / events or None if events else None,
            "latency_p95": _percentile_ns(text),
            "latency_max": _longest_ns(text),
        }
        declared = {metric.name for metric in self.metrics(parameters)}
        written = None if counts is None else counts["writes"] * block_bytes
        mode = parameters.file_test_mode
        return Reading(
            metrics={name: value for name, value in metrics.items() if name in declared},
            read_bytes=None if counts is None else counts["reads"] * block_bytes,
            written_bytes=written,
            measured_s=_figure(text, "total time"),
            direct=parameters.direct,
            # With a number of events, the time is only a limit, not the requested duration.
            asked_s=None if parameters.events else float(parameters.time_s),
            working_set_bytes=parameters.total_bytes,
            flushed=_flushed(parameters, events if rates["fsyncs"] else 0.0),
            # The files of the other modes exist before the run.
            passes=written / parameters.total_bytes if written is not None and mode == "seqwr" else None,
            zeros=True,
        )

    def why_whole(self, parameters: SysbenchParameters) -> str | None:
        """Return the rate, if it is limited: sysbench makes up for the time in which it was frozen."""
        return "'rate' of sysbench goes by the clock" if parameters.rate else None

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with ``time`` added if they do not set it. sysbench takes whole seconds."""
        return {"time": ceil(parse_duration(runtime)), **raw}

    def needs(self, parameters: SysbenchParameters) -> Needs:
        wanted = {Ability.DIRECT_READS: parameters.reads, Ability.DIRECT_WRITES: parameters.writes}
        return Needs(
            abilities=frozenset(each for each, used in wanted.items() if used and parameters.direct),
            largest_file_bytes=parameters.total_bytes // parameters.file_num,
        )

    def scaled(self, parameters: SysbenchParameters, factor: float) -> scaling.Changes:
        """Scale the files, each to whole requests, and the time, to at least one second, or the number of requests."""
        files_block = parameters.file_num * parse_size(parameters.file_block_size)
        total = parameters.file_total_size
        size = scaling.size(total, factor, least_bytes=_LEAST_BYTES, unit_bytes=files_block)
        found = {"file-total-size": size}
        if parameters.time_s:
            found["time"] = scaling.duration(parameters.time_s, factor, whole_s=True)
        if parameters.events:
            found["events"] = scaling.count(parameters.events, factor, least=_LEAST_EVENTS)
        return found

    def traits(self, parameters: SysbenchParameters) -> Traits:
        """Return the traits. Unless it follows each write, an fsync applies to all files: one call per file."""
        # file-fsync-freq counts reads as well. Without a write since the last fsync, there is none.
        writes = max(parameters.file_fsync_freq * parameters.write_share, 1)
        every = parameters.file_num / writes if parameters.file_fsync_freq else None
        each = 1.0 if parameters.file_fsync_all == "on" else every
        return Traits(
            reads=parameters.reads,
            writes=parameters.writes,
            direct=parameters.direct,
            request_bytes=(parse_size(parameters.file_block_size),),
            parallel=parameters.threads,
            working_set_bytes=parameters.total_bytes,
            files=parameters.file_num,
            syncs_per_write=each if parameters.writes else None,
            held_back=parameters.rate > 0,
            set_time=not parameters.events,
            switches={Switchable.SERIAL: {"threads": 1}},
        )

    def space_bytes(self, parameters: SysbenchParameters) -> int:
        return parameters.total_bytes

    def expected_s(self, parameters: SysbenchParameters) -> float:
        """Return the duration of the preparation, plus the time limit or an estimate from the number of requests."""
        prepare_s = (parameters.file_test_mode != "seqwr") * parameters.total_bytes / _PREPARE_BYTES_PER_S
        guess_s = parameters.events / min(parameters.rate or _GUESSED_EVENTS_PER_S, _GUESSED_EVENTS_PER_S)
        return prepare_s + (parameters.time_s or guess_s)


def _options(parameters: SysbenchParameters, job: Job) -> tuple[str, ...]:
    changed = {
        "file-extra-flags": parameters.file_extra_flags or None,
        "file-rw-ratio": parameters.file_rw_ratio if parameters.file_test_mode == "rndrw" else None,
        "time": ceil(job.clock_s(parameters.time_s)) if parameters.time_s else 0,  # whole seconds
        "rate": parameters.rate or None,
        "percentile": _PERCENTILE,
        "histogram": "on",
        # sysbench stores the seed in an int, and reads 0 as "use the clock".
        "rand-seed": 1 + job.seed % (2**31 - 1),
    }
    return long_options(parameters.model_dump(by_alias=True) | changed)


def _counts(parameters: SysbenchParameters, rates: dict[str, float], events: float) -> dict[str, int] | None:
    """Return the number of reads and writes; None if the report shows none.

    sysbench prints only rates. They refer to a span that is some milliseconds longer than its "total time". The span
    follows from the number of events. Events include the periodic fsyncs, but neither the final ones (each thread, each
    file) nor those of file-fsync-all.
    """
    counted = rates["reads"] + rates["writes"]
    if not counted:
        return None
    if parameters.file_fsync_all == "off" and rates["fsyncs"]:
        counted += rates["fsyncs"]
        if parameters.file_fsync_end == "on":
            events += parameters.file_num * parameters.threads
    return {name: round(rates[name] * events / counted) for name in ("reads", "writes")}


def _flushed(parameters: SysbenchParameters, events: float) -> bool | None:
    """Return whether nearly all data reached the device within the measured time; None without writes.

    ``events``: how many there were, if there was an fsync among them, otherwise 0. The flags sync and dsync have no
    effect on stores to a mapping.
    """
    if not parameters.writes:
        return None
    always = "on" in {parameters.file_fsync_all, parameters.file_fsync_end}
    every = parameters.file_fsync_freq
    if always or (every > 0 and nearly_all_flushed(every, events)):
        return True
    flags = set(parameters.file_extra_flags.split(","))
    return bool({"sync", "dsync"} & flags) and parameters.file_io_mode != "mmap"


def _figure(text: str, label: str) -> float:
    """Return the number after a label that is alone on its line of the report."""
    match = re.search(rf"^ *{re.escape(label)}: +([\d.]+)s?$", text, re.MULTILINE)
    if match is None:
        raise ToolOutputError(f"sysbench's output has no line '{label}'")
    return float(match[1])


def _percentile_ns(text: str) -> float | None:
    """Return the percentile of the histogram, as sysbench takes it (sb_histogram.c); None if there is none, or rounding
    decides it."""
    buckets = [(float(value_ms) * _NS_PER_MS, int(count)) for value_ms, count in _BUCKET.findall(text)]
    wanted = int(sum(count for _, count in buckets) * _PERCENTILE / 100 + 0.5)
    seen = accumulate(count for _, count in buckets)
    found = next((ns for (ns, _), count in zip(buckets, seen, strict=True) if count >= wanted), 0.0)
    return found if found >= _LEAST_PERCENTILE_NS else None


def _longest_ns(text: str) -> float | None:
    """Return the longest latency; None if rounding decides it."""
    found = _figure(text, "max") * _NS_PER_MS
    return found if found >= _LEAST_MAX_NS else None
