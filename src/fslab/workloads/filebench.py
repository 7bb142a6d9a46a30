"""Workloads in Filebench's language, run by fslab's own engine: mail, web, file and database servers, or any .f file.

Builds the ``fslab-engine wml`` commands and parses their versioned JSON (engine/PROTOCOL.md); starts no process and
reads no file. The text of a .f file is a parameter. ``digest`` ensures that it is the text that the study was written
for.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from fslab import scaling
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import Commands, Job, Reading, ToolOutput, Traits, Workload
from fslab.workloads import _engine_document as documents
from fslab.workloads._filebench_parameters import FilebenchParameters

FILE = "workload.f"
_BLOCK_BYTES = 4096
_INODE_BYTES = 1024
_GROWTH = 3  # appends make files longer, and space of deleted files becomes free only after a while
_GUESSED_BYTES_PER_S = 400e6
_GUESSED_FILES_PER_S = 20e3
_UNKNOWN_BYTES = 1 << 30
_SYNCS = frozenset({"fsync", "fsyncset"})
_WRITES = frozenset({"write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"})
_OF_A_CLOCK = ("ops_rate", "bandwidth", "latency_mean", "latency_p99", "read_rate", "write_rate")
_NEARLY = 0.9
_PACED = frozenset({"videoserver"})  # by default; others that can be paced have an $eventrate of 0
_PACES = re.compile(r"\b(eventgen|eventlimit|opslimit|iopslimit|bwlimit|delay|sleep)\b")


class Filebench(Workload[FilebenchParameters]):
    """``prepare`` makes the files, so that the cache can be cold when the run starts. The run reuses them."""

    summary = "Filebench's workloads (varmail, webserver, oltp, any .f file), run by fslab's engine"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="fslab-engine", package=None),)
    Parameters = FilebenchParameters

    def metrics(self, parameters: FilebenchParameters) -> tuple[Metric, ...]:  # noqa: ARG002
        """Return file operations per second, bandwidth, latency of an operation, and CPU per operation."""
        return (
            Metric(name="ops_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="bandwidth", unit=Unit.BYTES_PER_SECOND),
            Metric(name="latency_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER),
            Metric(name="latency_p99", unit=Unit.NANOSECONDS, better=Direction.LOWER),
            Metric(name="read_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="write_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="cpu", unit=Unit.NANOSECONDS, better=Direction.LOWER),
        )

    def headline(self, parameters: FilebenchParameters) -> tuple[str, ...]:  # noqa: ARG002
        return ("ops_rate",)

    def commands(self, parameters: FilebenchParameters, job: Job) -> Commands:
        """Return one command that makes the files, and one that works on them."""
        argv = (
            *_workload(parameters, job),
            "--dir",
            str(job.directory),
            f"--run={job.clock_s(parameters.runtime_s):g}",
            f"--seed={job.seed}",
            *(f"--set={setting}" for setting in parameters.settings),
            *((f"--digest={parameters.digest}",) if parameters.digest else ()),
            *(("--syncfs",) if parameters.syncfs else ()),
            "--json",
        )
        inputs = {FILE: parameters.file_text} if parameters.file_text is not None else {}
        return Commands(prepare=((*argv, "--create-only"),), run=(*argv, "--reuse"), inputs=inputs)

    def read(self, parameters: FilebenchParameters, output: ToolOutput) -> Reading:
        return _reading(parameters, documents.document_of(output))

    def why_whole(self, parameters: FilebenchParameters) -> str | None:
        """Return what in the workload goes by the clock."""
        text = parameters.script or parameters.file_text or ""
        if parameters.personality in _PACED or _PACES.search(text) or "eventrate=" in parameters.set:
            return "the workload has flowops that go by the clock (eventgen, a limit or delay)"
        return None

    def scaled(self, parameters: FilebenchParameters, factor: float) -> scaling.Changes:
        return parameters.scaled(factor)

    def unscaled(self, parameters: FilebenchParameters) -> tuple[str, ...]:
        return tuple(f"set {name}" for name in parameters.unscaled)

    def traits(self, parameters: FilebenchParameters) -> Traits:
        """Return only what the settings of a personality determine."""
        files, size = parameters.files_and_bytes or (None, None)
        return Traits(parallel=parameters.nthreads, working_set_bytes=size or None, files=files)

    def space_bytes(self, parameters: FilebenchParameters) -> int:
        """Return ``space``, else the size of all files in whole blocks with their inodes, with room to grow."""
        if parameters.space is not None:
            return parse_size(parameters.space)
        about = parameters.files_and_bytes
        if about is None:
            return _UNKNOWN_BYTES
        files, size = about
        return _GROWTH * (size + files * (_BLOCK_BYTES + _INODE_BYTES)) if files > 1 else size + size // 4

    def expected_s(self, parameters: FilebenchParameters) -> float:
        """Return the run time, plus an estimate for making the files."""
        files, size = parameters.files_and_bytes or (0, 0)
        return parameters.runtime_s + files / _GUESSED_FILES_PER_S + size / _GUESSED_BYTES_PER_S


def _workload(parameters: FilebenchParameters, job: Job) -> tuple[str, ...]:
    if parameters.script is not None:
        return ("fslab-engine", "wml", f"--script={parameters.script}")
    if parameters.file_text is not None:
        return ("fslab-engine", "wml", str(job.scratch / FILE))
    return ("fslab-engine", "wml", parameters.personality or "")


def _reading(parameters: FilebenchParameters, document: Mapping[str, Any]) -> Reading:
    run, operation = document["answer"]["runs"][-1], document["operations"][-1]
    summary = run["summary"]
    latency = summary["latency_ns"] or {}
    cpu_s = operation["cpu_user_seconds"] + operation["cpu_system_seconds"]
    window = documents.window(operation)
    return Reading(
        windows=dict.fromkeys(_OF_A_CLOCK, window),
        part_windows={"run": window},
        metrics={
            "ops_rate": operation["rate_per_second"],
            "bandwidth": operation["bandwidth_bytes_per_second"],
            "latency_mean": latency.get("mean"),
            "latency_p99": latency.get("p99"),
            "read_rate": summary["reads_per_second"],
            "write_rate": summary["writes_per_second"],
            "cpu": cpu_s * 1e9 / summary["count"] if summary["count"] else None,
        },
        read_bytes=summary["bytes_read"],
        written_bytes=summary["bytes_written"],
        measured_s=operation["seconds"],
        # With a fixed amount of work, such as all files of a tree, the time is the result.
        asked_s=None if run["ended"] == "done" else parameters.runtime_s,
        working_set_bytes=sum(fileset["bytes"] for fileset in document["answer"]["filesets"]) or None,
        flushed=_flushed(parameters, run),
        threads=document["threads"],
        messages=tuple(f"fslab-engine: {warning['message']}" for warning in document["warnings"]),
    )


def _flushed(parameters: FilebenchParameters, run: Mapping[str, Any]) -> bool | None:
    """Return whether written data reached the device within the measured time; None if nothing was written.

    Nearly one fsync per write is enough: at the end of the run, a few threads are between a write and its fsync.
    """
    if not run["summary"]["bytes_written"]:
        return None
    counts = {True: 0, False: 0}
    for flowop in run["flowops"]:
        if flowop["kind"] in _SYNCS | _WRITES:
            counts[flowop["kind"] in _SYNCS] += flowop["count"]
    return parameters.syncfs or counts[True] >= _NEARLY * counts[False]
