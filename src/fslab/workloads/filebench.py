"""Workloads in Filebench's language, run by fslab's own engine: mail, web, file and database servers, or any .f file.

Says which ``fslab-engine wml`` commands to run and reads its versioned JSON (engine/PROTOCOL.md); starts nothing
and reads no file: a file's text is the engine's business, and ``digest`` holds it to what the study was written for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fslab.errors import ToolOutputError, nearest
from fslab.record import Metric
from fslab.system.tools import Tool
from fslab.units import Direction, Unit, parse_duration, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload
from fslab.workloads import _engine_document as documents

# Files and bytes of all filesets of each personality, as its own defaults have them; the engine has the rest.
PERSONALITIES: Mapping[str, tuple[int, int]] = {
    "copyfiles": (2000, 2000 * 16384),
    "createfiles": (50000, 50000 * 16384),
    "deletefiles": (50000, 50000 * 16384),
    "fileserver": (10000, 10000 * 131072),
    "listdirs": (50000, 0),
    "makedirs": (10000, 0),
    "mongo": (2000, 2000 * 16384),
    "oltp": (11, 11 * 10485760),
    "openfiles": (50000, 0),
    "randomread": (1, 5368709120),
    "randomrw": (1, 5368709120),
    "randomwrite": (1, 5368709120),
    "removedirs": (10000, 0),
    "singlestreamread": (1, 5368709120),
    "singlestreamwrite": (1, 5368709120),
    "statfiles": (10000, 0),
    "varmail": (1000, 1000 * 16384),
    "videoserver": (226, 226 * 10737418240),
    "webproxy": (10000, 10000 * 16384),
    "webserver": (1001, 1001 * 16384),
    "writefsync": (1, 1073741824),
}
_BLOCK_BYTES = 4096
_INODE_BYTES = 1024
_GROWTH = 3  # appends make files longer, and what is deleted takes a while to be free again
_GUESSED_BYTES_PER_S = 400e6
_GUESSED_FILES_PER_S = 20e3
_UNKNOWN_BYTES = 1 << 30
_SYNCS = frozenset({"fsync", "fsyncset"})
_WRITES = frozenset({"write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"})
_NEARLY = 0.9
_SETTING = re.compile(r"^\$?[A-Za-z0-9_]+=\S+$")

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in {int, float} else value)]


class FilebenchParameters(Parameters):
    """Exactly one of ``personality``, ``script`` and ``file``. ``nfiles``, ``meanfilesize``, ``nthreads`` and ``set``
    give variables of the workload other values; one that it does not have is an error.
    """

    personality: str | None = Field(
        None, description="a workload that comes with the engine, such as varmail; 'fslab-engine wml --list'"
    )
    script: str | None = Field(None, description="the text of a workload in Filebench's language")
    file: str | None = Field(None, description="the absolute path of a .f file")
    digest: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="BLAKE3 of the file's text; another text is refused"
    )
    runtime: Text = Field("60s", description="how long it runs, whatever the workload says")
    nfiles: int | None = Field(None, ge=1, description="the variable $nfiles: number of files")
    meanfilesize: Text | None = Field(None, description="the variable $meanfilesize: mean length of a file")
    nthreads: int | None = Field(None, ge=1, description="the variable $nthreads: threads that work at once")
    set: str = Field("", description="further variables: name=value name=value")
    syncfs: bool = Field(False, description="end with a syncfs, measured too")
    space: Text | None = Field(
        None, description="room that it needs; default: guessed for a personality, 1g otherwise"
    )

    @property
    def runtime_s(self) -> float:
        """The run time in seconds."""
        return parse_duration(self.runtime)

    @property
    def settings(self) -> tuple[str, ...]:
        """Every variable that has another value, as ``name=value``."""
        own = (("nfiles", self.nfiles), ("meanfilesize", self.meanfilesize), ("nthreads", self.nthreads))
        return (*(f"{name}={value}" for name, value in own if value is not None), *self.set.split())

    @property
    def files_and_bytes(self) -> tuple[int, int] | None:
        """Of a personality with these settings, about; None if nothing is known."""
        if self.personality is None:
            return None
        files, size = PERSONALITIES[self.personality]
        mean = size / files
        if self.meanfilesize is not None:
            mean = parse_size(self.meanfilesize)
        for setting in self.set.split():
            name, _, value = setting.lstrip("$").partition("=")
            if name == "filesize" and files < 1000:
                mean = parse_size(value)
        return (self.nfiles or files), int((self.nfiles or files) * mean)

    @field_validator("personality")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in PERSONALITIES:
            raise ValueError(f"no personality '{value}': {nearest(value, PERSONALITIES)}")
        return value

    @field_validator("runtime")
    @classmethod
    def _some_time(cls, value: str) -> str:
        if parse_duration(value) <= 0:
            raise ValueError("the run time must be greater than 0")
        return value

    @field_validator("file")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"'{value}' is not an absolute path: trials run in directories of their own")
        return value

    @field_validator("meanfilesize", "space")
    @classmethod
    def _sizes(cls, value: str | None) -> str | None:
        if value is not None:
            parse_size(value)
        return value

    @field_validator("set")
    @classmethod
    def _set(cls, value: str) -> str:
        for setting in value.split():
            if not _SETTING.match(setting):
                raise ValueError(f"'{setting}' is not name=value")
        return value

    @model_validator(mode="after")
    def _one_workload(self) -> Self:
        given = [name for name in ("personality", "script", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of personality, script and file, not {' and '.join(given) or 'none'}")
        if self.digest is not None and self.file is None:
            raise ValueError("'digest' belongs to 'file'")
        return self


class Filebench(Workload[FilebenchParameters]):
    """The files are made by ``prepare``, so that the cache can be cold when the run begins; it is told to take them."""

    summary = "Filebench's workloads (varmail, webserver, oltp, any .f file), run by fslab's engine"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="fslab-engine", package=None),)
    Parameters = FilebenchParameters

    def metrics(self, parameters: FilebenchParameters) -> tuple[Metric, ...]:  # noqa: ARG002
        """Operations on files per second, bandwidth, and the latency of an operation."""
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
        """The rate of operations."""
        return ("ops_rate",)

    def commands(self, parameters: FilebenchParameters, job: Job) -> Commands:
        """One run that makes the files, one that works on them."""
        argv = (
            *_workload(parameters),
            "--dir",
            str(job.directory),
            f"--run={parameters.runtime_s:g}",
            f"--seed={job.seed}",
            *(f"--set={setting}" for setting in parameters.settings),
            *((f"--digest={parameters.digest}",) if parameters.digest else ()),
            *(("--syncfs",) if parameters.syncfs else ()),
            "--json",
        )
        return Commands(prepare=((*argv, "--create-only"),), run=(*argv, "--reuse"))

    def read(self, parameters: FilebenchParameters, output: ToolOutput) -> Reading:
        """The summary of the last run of the workload."""
        try:
            return _reading(parameters, documents.document_of(output))
        except (ValueError, LookupError, TypeError) as error:
            said = output.stderr.strip()[-200:] or f"{type(error).__name__}: {error}"
            raise ToolOutputError(f"fslab-engine did not keep to its protocol: {said}") from error

    def space_bytes(self, parameters: FilebenchParameters) -> int:
        """Each file in whole blocks with its inode, and room to grow."""
        if parameters.space is not None:
            return parse_size(parameters.space)
        about = parameters.files_and_bytes
        if about is None:
            return _UNKNOWN_BYTES
        files, size = about
        return _GROWTH * (size + files * (_BLOCK_BYTES + _INODE_BYTES)) if files > 1 else size + size // 4

    def expected_s(self, parameters: FilebenchParameters) -> float:
        """The run time, and a guess for the files."""
        files, size = parameters.files_and_bytes or (0, 0)
        return parameters.runtime_s + files / _GUESSED_FILES_PER_S + size / _GUESSED_BYTES_PER_S


def _workload(parameters: FilebenchParameters) -> tuple[str, ...]:
    if parameters.script is not None:
        return ("fslab-engine", "wml", f"--script={parameters.script}")
    return ("fslab-engine", "wml", parameters.personality or parameters.file or "")


def _reading(parameters: FilebenchParameters, document: Mapping[str, Any]) -> Reading:
    run, operation = document["answer"]["runs"][-1], document["operations"][-1]
    summary = run["summary"]
    latency = summary["latency_ns"] or {}
    cpu_s = operation["cpu_user_seconds"] + operation["cpu_system_seconds"]
    return Reading(
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
        # Of a set amount of work, such as all files of a tree, the time is the outcome.
        asked_s=None if run["ended"] == "done" else parameters.runtime_s,
        working_set_bytes=sum(fileset["bytes"] for fileset in document["answer"]["filesets"]) or None,
        flushed=_flushed(parameters, run),
        messages=tuple(f"fslab-engine: {warning['message']}" for warning in document["warnings"]),
    )


def _flushed(parameters: FilebenchParameters, run: Mapping[str, Any]) -> bool | None:
    """Whether what it wrote had reached the device; None: it wrote nothing. Nearly one fsync for each write will do:
    at the end a few threads stand between the two."""
    if not run["summary"]["bytes_written"]:
        return None
    counts = {True: 0, False: 0}
    for flowop in run["flowops"]:
        if flowop["kind"] in _SYNCS | _WRITES:
            counts[flowop["kind"] in _SYNCS] += flowop["count"]
    return parameters.syncfs or counts[True] >= _NEARLY * counts[False]
