"""sysbench fileio: threads that read and write files test_file.N in the working directory.

Builds the sysbench commands and parses their report; starts no process. sysbench has no option for a directory: this
relies on the runner, which runs every command in ``Job.directory``. The data are zeros.
"""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any, ClassVar

from fslab import scaling
from fslab.errors import FslabError, NoSpaceError, ToolFailedError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tool_messages import reports_full_disk
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_duration, parse_size
from fslab.workloads import Commands, Job, Reading, Switchable, ToolOutput, Traits, Workload
from fslab.workloads._sysbench_parameters import SysbenchParameters
from fslab.workloads._sysbench_report import NS_PER_MS, PERCENTILE, figure, longest_ns, percentile_ns

_PREPARE_BYTES_PER_S = 300e6
_GUESSED_EVENTS_PER_S = 10e3
_LEAST_BYTES = 4 << 20
_LEAST_EVENTS = 100


class Sysbench(Workload[SysbenchParameters]):
    """``prepare`` lays out the files, except for seqwr, which makes them itself; ``cleanup`` removes them.

    If seqwr reaches the end before its time is over, it writes the same files again.
    """

    summary = "sysbench fileio: threads that read and write files with and without fsync"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="sysbench", package="sysbench"),)
    Parameters = SysbenchParameters

    def metrics(self, parameters: SysbenchParameters) -> tuple[Metric, ...]:
        """Return the rates of each direction in use, and the latency of all requests: sysbench reports no other."""
        rates = [
            metric
            for direction in _directions(parameters)
            for metric in (
                Metric(name=f"{direction}_iops", unit=Unit.IOPS),
                Metric(name=f"{direction}_bandwidth", unit=Unit.BYTES_PER_SECOND),
            )
        ]
        if parameters.writes:
            rates.append(Metric(name="fsync_rate", unit=Unit.OPERATIONS_PER_SECOND, better=Direction.NEITHER))
        latencies = [
            Metric(name=f"latency_{name}", unit=Unit.NANOSECONDS, better=Direction.LOWER)
            for name in ("mean", "p95", "max")
        ]
        first = self.headline(parameters)
        return tuple(sorted([*rates, *latencies], key=lambda metric: metric.name not in first))

    def headline(self, parameters: SysbenchParameters) -> tuple[str, ...]:
        """Return IOPS for random modes, bandwidth for sequential modes."""
        rate = "iops" if parameters.file_test_mode.startswith("rnd") else "bandwidth"
        return tuple(f"{direction}_{rate}" for direction in _directions(parameters))

    def commands(self, parameters: SysbenchParameters, job: Job) -> Commands:
        """Return prepare, run and cleanup, all with the same options."""
        options = ("sysbench", "fileio", *_options(parameters, job))
        prepare = () if parameters.file_test_mode == "seqwr" else ((*options, "prepare"),)
        return Commands(prepare=prepare, run=(*options, "run"), cleanup=((*options, "cleanup"),))

    def read(self, parameters: SysbenchParameters, output: ToolOutput) -> Reading:
        """Parse the report. NoSpaceError or ToolFailedError for an error that sysbench marks as FATAL."""
        text = output.stdout
        if fatal := re.search(r"^FATAL: (.*)$", text, re.MULTILINE):
            raise _failure(fatal[1])
        rates = {name: figure(text, f"{name}/s") for name in ("reads", "writes", "fsyncs")}
        events = figure(text, "total number of events")
        measured_s = figure(text, "total time")
        counts = _counts(parameters, rates, events)
        block_bytes = parse_size(parameters.file_block_size)
        metrics = {
            "read_iops": rates["reads"] or None,
            "write_iops": rates["writes"] or None,
            "read_bandwidth": rates["reads"] * block_bytes or None,
            "write_bandwidth": rates["writes"] * block_bytes or None,
            "fsync_rate": rates["fsyncs"],
            # The printed average has two decimals of a millisecond; the sum is more precise.
            "latency_mean": figure(text, "sum") * NS_PER_MS / events or None if events else None,
            "latency_p95": percentile_ns(text),
            "latency_max": longest_ns(text),
        }
        declared = {metric.name for metric in self.metrics(parameters)}
        written = None if counts is None else counts["writes"] * block_bytes
        return Reading(
            metrics={name: value for name, value in metrics.items() if name in declared},
            read_bytes=None if counts is None else counts["reads"] * block_bytes,
            written_bytes=written,
            measured_s=measured_s,
            direct="direct" in parameters.file_extra_flags,
            # With a number of events, the time is only a limit, not the requested duration.
            asked_s=None if parameters.events else float(parameters.time_s),
            working_set_bytes=parameters.total_bytes,
            flushed=_flushed(parameters, fsyncs=rates["fsyncs"] > 0),
            passes=_passes(parameters, written),
            zeros=True,
        )

    def why_whole(self, parameters: SysbenchParameters) -> str | None:
        """Return the rate, if it is limited: sysbench makes up for the time in which it was frozen."""
        return "'rate' of sysbench goes by the clock" if parameters.rate else None

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with ``time`` added if they do not set it. sysbench takes whole seconds."""
        return {"time": max(round(parse_duration(runtime)), 1), **raw}

    def needs(self, parameters: SysbenchParameters) -> Needs:
        """Return the need for direct I/O, if the flags request it, and for a file of its share of the total size."""
        direct = "direct" in parameters.file_extra_flags.split(",")
        wanted = {Ability.DIRECT_READS} if direct and parameters.reads else set()
        wanted |= {Ability.DIRECT_WRITES} if direct and parameters.writes else set()
        return Needs(
            abilities=frozenset(wanted), largest_file_bytes=parameters.total_bytes // parameters.file_num
        )

    def scaled(self, parameters: SysbenchParameters, factor: float) -> scaling.Changes:
        """Scale the files, each to whole requests, and the time, to at least one second, or the number of requests."""
        files_block = parameters.file_num * parse_size(parameters.file_block_size)
        found = {
            "file-total-size": scaling.size(
                parameters.file_total_size, factor, least_bytes=_LEAST_BYTES, unit_bytes=files_block
            )
        }
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
            direct="direct" in parameters.file_extra_flags.split(","),
            request_bytes=(parse_size(parameters.file_block_size),),
            parallel=parameters.threads,
            working_set_bytes=parameters.total_bytes,
            files=parameters.file_num,
            syncs_per_write=each if parameters.writes else None,
            switches={Switchable.SERIAL: {"threads": 1}},
        )

    def space_bytes(self, parameters: SysbenchParameters) -> int:
        return parameters.total_bytes

    def expected_s(self, parameters: SysbenchParameters) -> float:
        """Return the duration of the preparation, plus the time limit or an estimate from the number of requests."""
        prepare_s = (
            0.0 if parameters.file_test_mode == "seqwr" else parameters.total_bytes / _PREPARE_BYTES_PER_S
        )
        guess_s = parameters.events / min(parameters.rate or _GUESSED_EVENTS_PER_S, _GUESSED_EVENTS_PER_S)
        return prepare_s + (parameters.time_s or guess_s)


def _directions(parameters: SysbenchParameters) -> tuple[str, ...]:
    used = (("read", parameters.reads), ("write", parameters.writes))
    return tuple(name for name, is_used in used if is_used)


def _options(parameters: SysbenchParameters, job: Job) -> tuple[str, ...]:
    options: dict[str, object] = {
        "file-test-mode": parameters.file_test_mode,
        "file-total-size": parameters.file_total_size,
        "file-num": parameters.file_num,
        "file-block-size": parameters.file_block_size,
        "file-io-mode": parameters.file_io_mode,
        "file-extra-flags": parameters.file_extra_flags or None,
        "file-fsync-freq": parameters.file_fsync_freq,
        "file-fsync-all": parameters.file_fsync_all,
        "file-fsync-end": parameters.file_fsync_end,
        "file-fsync-mode": parameters.file_fsync_mode,
        "file-rw-ratio": parameters.file_rw_ratio if parameters.file_test_mode == "rndrw" else None,
        "threads": parameters.threads,
        "time": ceil(job.clock_s(parameters.time_s)) if parameters.time_s else 0,  # whole seconds
        "events": parameters.events,
        "rate": parameters.rate or None,
        "percentile": PERCENTILE,
        "histogram": "on",
        "rand-type": parameters.rand_type,
        # sysbench stores the seed in an int, and reads 0 as "use the clock".
        "rand-seed": 1 + job.seed % (2**31 - 1),
    }
    return tuple(f"--{name}={value}" for name, value in options.items() if value is not None)


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


def _flushed(parameters: SysbenchParameters, *, fsyncs: bool) -> bool | None:
    """Return whether the data reached the device within the measured time; None without writes.

    ``fsyncs``: it was synced during the run. The flags sync and dsync have no effect on stores to a mapping.
    """
    if not parameters.writes:
        return None
    if "on" in {parameters.file_fsync_all, parameters.file_fsync_end} or (
        parameters.file_fsync_freq and fsyncs
    ):
        return True
    flags = set(parameters.file_extra_flags.split(","))
    return bool({"sync", "dsync"} & flags) and parameters.file_io_mode != "mmap"


def _passes(parameters: SysbenchParameters, written_bytes: int | None) -> float | None:
    """Return how often seqwr wrote its files; None for the other modes, whose files exist before the run."""
    if parameters.file_test_mode != "seqwr" or written_bytes is None:
        return None
    return written_bytes / parameters.total_bytes


def _failure(said: str) -> FslabError:
    if reports_full_disk(said):
        hint = "give the medium a larger size or the workload a smaller file-total-size"
        return NoSpaceError(f"sysbench: {said}", hint=hint)
    return ToolFailedError(f"sysbench: {said}")
