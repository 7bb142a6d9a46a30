"""Workloads in Filebench's language, run by fslab's own engine: mail, web, file and database servers, or any .f file.

Builds the ``fslab-engine wml`` commands and parses their versioned JSON (engine/PROTOCOL.md); starts no process and
reads no file. The text of a .f file is a parameter. ``digest`` ensures that it is the text that the study was written
for.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from fslab import scaling
from fslab.errors import nearest
from fslab.system.tools import Tool
from fslab.trial_record import WHOLE, Metric
from fslab.units import Direction, Size, SomeTime, Unit, parse_duration, parse_size
from fslab.workloads import (
    MOST_AT_ONCE,
    Check,
    Commands,
    Job,
    Parameters,
    Reading,
    ToolOutput,
    Traits,
    Workload,
    long_options,
    nearly_all_flushed,
    stored_bytes,
)
from fslab.workloads import _engine_document as documents

FILE = "workload.f"
_GROWTH = 3  # appends make files longer, and space of deleted files becomes free only after a while
_GUESSED_BYTES_PER_S = 400e6
_GUESSED_FILES_PER_S = 20e3
_UNKNOWN_BYTES = 1 << 30
_SYNCS = frozenset({"fsync", "fsyncset"})
_WRITES = frozenset({"write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"})
_OF_A_CLOCK = ("ops_rate", "bandwidth", "latency_mean", "latency_p99", "read_rate", "write_rate")
_PACED = frozenset({"videoserver"})  # by default; others that can be paced have an $eventrate of 0
_PACES = re.compile(r"\b(eventgen|eventlimit|opslimit|iopslimit|bwlimit|delay|sleep)\b")
# Default number of files and bytes in all filesets of each personality. The engine defines the personalities.
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
# The variables that set the number of files, with their defaults; of all others, nfiles.
COUNTED: Mapping[str, Mapping[str, int]] = {
    "makedirs": {"ndirs": 10000},
    "removedirs": {"ndirs": 10000},
    "videoserver": {"numactivevids": 32, "numpassivevids": 194},
}
# The variables of the personalities that are an amount of work: numbers, each with the least, and sizes.
_LEAST_FILES = 100
_LEAST_BYTES = 4 << 20
_NUMBERS: Mapping[str, int] = {
    "nfiles": _LEAST_FILES, "ndirs": _LEAST_FILES, "numactivevids": 1, "numpassivevids": 1, "fsynccount": 1,
}  # fmt: skip
_OF_ONE_FILE = frozenset({"filesize", "workingset"})  # else a size is that of each file
# The variables of a workload of one's own of which it is known what they are, as they have keys; nfiles is an amount.
_KNOWN = frozenset({"nfiles", "meanfilesize", "nthreads"})
_SETTING = re.compile(r"^\$?[A-Za-z0-9_]+=\S+$")


class FilebenchParameters(Parameters):
    """Give exactly one of ``personality``, ``script`` and ``file``. ``nfiles``, ``meanfilesize``, ``nthreads`` and
    ``set`` set variables of the workload. A variable that the workload does not have is an error.
    """

    file_keys: ClassVar[frozenset[str]] = frozenset({"file"})

    personality: str | None = Field(
        None, description="a built-in workload, such as varmail; 'fslab-engine wml --list' shows all"
    )
    script: str | None = Field(None, description="the text of a workload in Filebench's language")
    file: str | None = Field(
        None,
        description="a .f file, relative to the study",
    )
    file_text: str | None = None
    digest: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="BLAKE3 digest of the file's text; a file with another digest is an error",
    )
    runtime: SomeTime = Field("60s", description="how long it runs; takes precedence over the workload")
    nfiles: int | None = Field(None, ge=1, description="the variable $nfiles: number of files")
    meanfilesize: Size | None = Field(None, description="the variable $meanfilesize: mean size of a file")
    nthreads: int | None = Field(
        None, ge=1, le=MOST_AT_ONCE, description="the variable $nthreads: threads that work at once"
    )
    set: str = Field("", description="further variables, separated by spaces: name=value name=value")
    syncfs: bool = Field(False, description="call syncfs(2) at the end, in the measured time")
    space: Size | None = Field(
        None, description="space that it needs; default: estimated for a personality, 1g otherwise"
    )

    @property
    def runtime_s(self) -> float:
        return parse_duration(self.runtime)

    @property
    def settings(self) -> tuple[str, ...]:
        """The variables that the study sets, as ``name=value``."""
        own = (("nfiles", self.nfiles), ("meanfilesize", self.meanfilesize), ("nthreads", self.nthreads))
        return (*(f"{name}={value}" for name, value in own if value is not None), *self.set.split())

    def scaled(self, factor: float) -> scaling.Changes:
        """Return the run time, at least one second, and the amounts among the variables that the study sets."""
        found = {"runtime": scaling.duration(self.runtime, factor)}
        if self.nfiles is not None:
            found["nfiles"] = scaling.count(self.nfiles, factor, least=_LEAST_FILES)
        changes = {setting: self._scaled_setting(setting, factor) for setting in self.set.split()}
        share = max((change.share for change in changes.values() if change), default=0.0)
        if share:
            words = (
                f"{setting.partition('=')[0]}={change.value}" if change else setting
                for setting, change in changes.items()
            )
            found["set"] = scaling.ScaledAmount(written=self.set, value=" ".join(words), share=share)
        return found

    @property
    def unscaled(self) -> tuple[str, ...]:
        """The variables in ``set`` that may be an amount of work, but are not scaled."""
        names = {setting.lstrip("$").partition("=")[0]: setting for setting in self.set.split()}
        return tuple(
            name
            for name, setting in names.items()
            if self._scaled_setting(setting, 0.5) is None
            and (name in _NUMBERS or (self.personality is None and name not in _KNOWN))
        )

    def _scaled_setting(self, setting: str, factor: float) -> scaling.ScaledAmount | None:
        """Return the scaled value of a variable; None if it is not known to be an amount, or is an expression, which
        the engine evaluates."""
        name, _, value = setting.lstrip("$").partition("=")
        one_file = self.personality is not None and PERSONALITIES[self.personality][0] == 1
        try:
            if not parse_size(value):  # 0 means none, or everything
                return scaling.ScaledAmount(written=value, value=value, share=0.0)
            if name == "nfiles" or (name in _NUMBERS and self.personality is not None):
                return scaling.count(parse_size(value), factor, least=_NUMBERS[name])
            if name in _OF_ONE_FILE and one_file:
                return scaling.size(value, factor, least_bytes=_LEAST_BYTES)
        except ValueError:
            pass
        return None

    @property
    def files_and_bytes(self) -> tuple[int, int] | None:
        """Approximate number of files and bytes of a personality with these settings; None if unknown."""
        if self.personality is None:
            return None
        usual, size = PERSONALITIES[self.personality]
        pairs = (setting.lstrip("$").partition("=") for setting in self.settings)
        given = {name: value for name, _, value in pairs}
        counted = COUNTED.get(self.personality, {"nfiles": usual})
        files = sum(_count(given.get(name, ""), default) for name, default in counted.items())
        mean = given.get("meanfilesize", given.get("filesize"))
        return files, int(files * (size / usual if mean is None else parse_size(mean)))

    @field_validator("personality")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in PERSONALITIES:
            raise ValueError(f"unknown personality '{value}': {nearest(value, PERSONALITIES)}")
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
            raise ValueError("'digest' needs 'file'")
        return self


class Filebench(Workload[FilebenchParameters]):
    """``prepare`` makes the files, so that the cache can be cold when the run starts. The run reuses them."""

    summary = "Filebench's workloads (varmail, webserver, oltp, any .f file), run by fslab's engine"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="fslab-engine", package=None),)
    Parameters = FilebenchParameters

    def metrics(self, parameters: FilebenchParameters) -> tuple[Metric, ...]:
        found = (
            Metric(name="ops_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="bandwidth", unit=Unit.BYTES_PER_SECOND),
            Metric(name="latency_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER),
            Metric(name="latency_p99", unit=Unit.NANOSECONDS, better=Direction.LOWER),
            Metric(name="read_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="write_rate", unit=Unit.OPERATIONS_PER_SECOND),
            Metric(name="cpu", unit=Unit.NANOSECONDS, better=Direction.LOWER),
        )
        return self.headline_first(parameters, found)

    def headline(self, parameters: FilebenchParameters) -> tuple[str, ...]:
        """Return the rate; before it, if the workload goes by the clock, the latency: the rate is what it asks for."""
        return ("latency_mean", "ops_rate") if self.why_whole(parameters) else ("ops_rate",)

    def commands(self, parameters: FilebenchParameters, job: Job) -> Commands:
        options = {
            "run": f"{job.clock_s(parameters.runtime_s):g}",
            "seed": job.seed,
            "digest": parameters.digest,
            "syncfs": parameters.syncfs,
            "json": True,
        }
        settings = (f"--set={setting}" for setting in parameters.settings)
        argv = (*_workload(parameters, job), "--dir", str(job.directory), *settings, *long_options(options))
        inputs = {FILE: parameters.file_text} if parameters.file_text is not None else {}
        return Commands(prepare=((*argv, "--create-only"),), run=(*argv, "--reuse"), inputs=inputs)

    def checks(self, parameters: FilebenchParameters, job: Job) -> tuple[Check, ...]:
        settings = (f"--set={setting}" for setting in parameters.settings)
        options = long_options({"digest": parameters.digest, "check": True})
        file = None if parameters.file_text is None else FILE
        argv = (*_workload(parameters, job), *settings, *options)
        return (Check(argv=argv, file=file, text=parameters.file_text or ""),)

    def read(self, parameters: FilebenchParameters, output: ToolOutput) -> Reading:
        document = documents.document_of(output)
        run, operation = document["answer"]["runs"][-1], document["operations"][-1]
        summary = run["summary"]
        latency = documents.latencies_of(summary["latency_ns"], summary["count"])
        window = documents.window(operation)
        return Reading(
            windows=dict.fromkeys(_OF_A_CLOCK, window),
            part_windows={WHOLE: window},
            metrics={
                "ops_rate": operation["rate_per_second"],
                "bandwidth": operation["bandwidth_bytes_per_second"],
                "latency_mean": latency.get("mean"),
                "latency_p99": latency.get("p99"),
                "read_rate": _with_sync(summary["reads_per_second"], run, operation),
                "write_rate": _with_sync(summary["writes_per_second"], run, operation),
                "cpu": documents.cpu_s(operation) * 1e9 / summary["count"] if summary["count"] else None,
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
        paced = self.why_whole(parameters) is not None
        return Traits(
            parallel=parameters.nthreads, working_set_bytes=size or None, files=files, held_back=paced
        )

    def space_bytes(self, parameters: FilebenchParameters) -> int:
        """Return ``space``, else the size of all files in whole blocks with their inodes, with room to grow."""
        if parameters.space is not None:
            return parse_size(parameters.space)
        about = parameters.files_and_bytes
        if about is None:
            return _UNKNOWN_BYTES
        files, size = about
        return _GROWTH * (size + stored_bytes(files, 1)) if files > 1 else size + size // 4

    def expected_s(self, parameters: FilebenchParameters) -> float:
        files, size = parameters.files_and_bytes or (0, 0)
        return parameters.runtime_s + files / _GUESSED_FILES_PER_S + size / _GUESSED_BYTES_PER_S


def _workload(parameters: FilebenchParameters, job: Job) -> tuple[str, ...]:
    if parameters.script is not None:
        return ("fslab-engine", "wml", f"--script={parameters.script}")
    if parameters.file_text is not None:
        return ("fslab-engine", "wml", str(job.scratch / FILE))
    return ("fslab-engine", "wml", parameters.personality or "")


def _with_sync(rate: float | None, run: Mapping[str, Any], operation: documents.Entry) -> float | None:
    """Return a rate of a run, whose time has no final sync, by the time of the operation, which includes it."""
    return None if rate is None else rate * run["seconds"] / operation["seconds"]


def _flushed(parameters: FilebenchParameters, run: Mapping[str, Any]) -> bool | None:
    """Return whether written data reached the device within the measured time; None if nothing was written.

    A write to a file that was opened with ``dsync`` needs no fsync.
    """
    if not run["summary"]["bytes_written"]:
        return None
    syncs = sum(flowop["count"] for flowop in run["flowops"] if flowop["kind"] in _SYNCS)
    writes = [flowop for flowop in run["flowops"] if flowop["kind"] in _WRITES]
    count, synced = (sum(flowop[key] for flowop in writes) for key in ("count", "synced"))
    return parameters.syncfs or nearly_all_flushed(count - synced - syncs, count)


def _count(value: str, default: int) -> int:
    """Return a number such as 50k; the default for none, and for an expression, which the engine evaluates."""
    try:
        return parse_size(value)
    except ValueError:
        return default
