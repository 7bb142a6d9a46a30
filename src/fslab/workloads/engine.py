"""The load engine that comes with fslab: metadata work without a shell loop, a process or an interpreter.

Says which ``fslab-engine`` commands to run and reads its versioned JSON (engine/PROTOCOL.md); starts
nothing. An operation of the engine that is not yet known here is added to ``EngineParameters``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from fslab.errors import FslabError, NoSpaceError, ToolFailedError, ToolOutputError, nearest
from fslab.record import Metric, Severity, ValidityWarning, WarningKind
from fslab.system.tools import Tool
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import Commands, Job, Parameters, Reading, ToolOutput, Workload

PROTOCOL = 1
SHORTEST_S = 0.05
OPERATIONS = ("create", "stat", "read", "delete")
_LATENCIES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9", "max": "max"}
_BLOCK_BYTES = 4096
_INODE_BYTES = 1024  # ext4: 256, btrfs: some 700 with its back references and directory items
_GUESSED_FILES_PER_S = 20e3
_GUESSED_FSYNCS_PER_S = 500.0

Text = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


class EngineParameters(Parameters):
    """Options of ``fslab-engine small-files``.

    Only the operations that are listed are measured; what they need is prepared, and what they leave is
    removed, outside the measurement. So ``operations: read`` reads files that another process made, with
    the page cache in the state that the study declares.
    """

    operation: Literal["small-files"] = Field(default="small-files", description="small-files")
    operations: str = Field(
        default="create,stat,read,delete", description="of create, stat, read and delete, in this order"
    )
    files: int = Field(default=10_000, ge=1, description="number of files")
    size: Text = Field(default="4k", description="length of each file; 0 makes them empty")
    dirs: int = Field(default=1, ge=1, description="directories that the files are spread over")
    threads: int = Field(default=1, ge=1, description="threads that work at once")
    fsync: bool = Field(default=False, description="fsync each file before it is closed")
    syncfs: bool = Field(
        default=True, description="end create and delete with a syncfs, inside the measured time"
    )

    @property
    def measured(self) -> tuple[str, ...]:
        """The operations, in order."""
        return tuple(self.operations.split(","))

    @field_validator("operations")
    @classmethod
    def _possible(cls, value: str) -> str:
        names = value.split(",")
        for name in names:
            if name not in OPERATIONS:
                raise ValueError(f"no operation '{name}': {nearest(name, OPERATIONS)}")
        if sorted(names, key=OPERATIONS.index) != names or len(set(names)) != len(names):
            raise ValueError("each once, in the order create, stat, read, delete")
        return value

    @field_validator("size")
    @classmethod
    def _whole(cls, value: str) -> str:
        parse_size(value)
        return value


class Engine(Workload[EngineParameters]):
    """``prepare`` creates the files where the first listed operation needs them; ``cleanup`` deletes what
    is left. CPU is the engine's own, per file; writeback by kernel threads is not in it."""

    summary = "fslab's engine: create, stat, read and delete many small files"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="fslab-engine", package=None),)
    Parameters = EngineParameters

    def metrics(self, parameters: EngineParameters) -> tuple[Metric, ...]:
        """Rate, latency percentiles, CPU per file and final sync of each measured operation."""
        declared = [metric for name in parameters.measured for metric in _operation_metrics(name)]
        first = self.headline(parameters)
        return tuple(sorted(declared, key=lambda metric: metric.name not in first))

    def headline(self, parameters: EngineParameters) -> tuple[str, ...]:
        """The rates; of all four operations those of create and delete, which change the file system."""
        names = parameters.measured if len(parameters.measured) < 4 else ("create", "delete")
        return tuple(f"{name}_rate" for name in names)

    def commands(self, parameters: EngineParameters, job: Job) -> Commands:
        """One run for the measured operations, one before for what they need, one after for what is left."""
        measured = parameters.measured
        before = () if measured[0] == "create" else (_argv(parameters, job, ("create",)),)
        after = () if measured[-1] == "delete" else (_argv(parameters, job, ("delete",)),)
        return Commands(prepare=before, run=_argv(parameters, job, measured), cleanup=after)

    def read(self, parameters: EngineParameters, output: ToolOutput) -> Reading:
        """Figures of the engine's document; an ``error`` document becomes the error of its kind."""
        try:
            document = json.loads(output.stdout)
            if document["protocol"] != PROTOCOL:
                raise _other_protocol(document["protocol"])
            if "error" in document:
                raise _failure(document["error"])
            return _reading(parameters, document)
        except (ValueError, LookupError, TypeError) as error:
            said = output.stderr.strip()[-200:] or f"{type(error).__name__}: {error}"
            raise ToolOutputError(f"fslab-engine did not keep to its protocol: {said}") from error

    def space_bytes(self, parameters: EngineParameters) -> int:
        """Each file in whole blocks, with its inode."""
        blocks = -(-parse_size(parameters.size) // _BLOCK_BYTES)
        return parameters.files * (blocks * _BLOCK_BYTES + _INODE_BYTES) + parameters.dirs * _BLOCK_BYTES

    def expected_s(self, parameters: EngineParameters) -> float:
        """A guess from the number of files."""
        commands = len({*parameters.measured, "create"})
        fsyncs_s = parameters.files / _GUESSED_FSYNCS_PER_S if parameters.fsync else 0.0
        return commands * parameters.files / _GUESSED_FILES_PER_S + fsyncs_s


def _operation_metrics(name: str) -> tuple[Metric, ...]:
    return (
        Metric(name=f"{name}_rate", unit=Unit.FILES_PER_SECOND),
        *(
            Metric(name=f"{name}_{percentile}", unit=Unit.NANOSECONDS, better=Direction.LOWER)
            for percentile in _LATENCIES
        ),
        Metric(name=f"{name}_cpu", unit=Unit.NANOSECONDS, better=Direction.LOWER),
        *(
            (Metric(name=f"{name}_sync", unit=Unit.SECONDS, better=Direction.NEITHER),)
            if name in {"create", "delete"}
            else ()
        ),
    )


def _argv(parameters: EngineParameters, job: Job, operations: tuple[str, ...]) -> tuple[str, ...]:
    return (
        "fslab-engine",
        parameters.operation,
        str(job.directory),
        f"--files={parameters.files}",
        f"--size={parameters.size}",
        f"--dirs={parameters.dirs}",
        f"--threads={parameters.threads}",
        *(("--fsync",) if parameters.fsync else ()),
        *(() if parameters.syncfs else ("--no-syncfs",)),
        f"--seed={job.seed}",
        f"--operations={','.join(operations)}",
        "--json",
    )


def _reading(parameters: EngineParameters, document: Mapping[str, Any]) -> Reading:
    done: dict[str, Mapping[str, Any]] = {entry["name"]: entry for entry in document["operations"]}
    metrics: dict[str, float | None] = {}
    for name in parameters.measured:
        entry = done[name]
        metrics[f"{name}_rate"] = entry["rate_per_second"]
        for metric, key in _LATENCIES.items():
            metrics[f"{name}_{metric}"] = entry["latency_ns"][key] if entry["latency_ns"] else None
        cpu_s = entry["cpu_user_seconds"] + entry["cpu_system_seconds"]
        metrics[f"{name}_cpu"] = cpu_s * 1e9 / entry["count"] if entry["count"] else None
        if name in {"create", "delete"}:
            metrics[f"{name}_sync"] = entry["sync_seconds"]
    return Reading(
        metrics=metrics,
        read_bytes=(done["read"]["bytes"] or 0) if "read" in done else 0,
        written_bytes=(done["create"]["bytes"] or 0) if "create" in done else 0,
        measured_s=sum(entry["seconds"] for entry in done.values()),
        warnings=(*_short(parameters, done), *_errors(done), *_own(document["warnings"])),
    )


def _short(parameters: EngineParameters, done: Mapping[str, Mapping[str, Any]]) -> list[ValidityWarning]:
    """Doubt, not invalid: thousands of operations, each timed by itself, do say something."""
    shown = {name.removesuffix("_rate") for name in Engine().headline(parameters)}
    short = {name: entry["seconds"] for name, entry in done.items() if name in shown}
    short = {name: seconds for name, seconds in short.items() if seconds < SHORTEST_S}
    if not short:
        return []
    took = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in short.items())
    return [
        ValidityWarning(
            kind=WarningKind.TOO_SHORT,
            severity=Severity.DOUBT,
            message=f"measured for a very short time: {took}",
            hint="raise files",
            data={"seconds": short, "shortest_s": SHORTEST_S},
        )
    ]


def _errors(done: Mapping[str, Mapping[str, Any]]) -> list[ValidityWarning]:
    failed = {name: entry["errors"] for name, entry in done.items() if entry["errors"]}
    if not failed:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in failed.items())
    return [
        ValidityWarning(
            kind=WarningKind.TOOL_WARNING,
            severity=Severity.INVALID,
            message=f"files vanished or refused: {listed}",
            hint="something else works in the directory under test",
            data={"errors": failed},
        )
    ]


def _own(warnings: list[Mapping[str, str]]) -> list[ValidityWarning]:
    return [
        ValidityWarning(
            kind=WarningKind.TOOL_WARNING,
            severity=Severity.DOUBT,
            message=f"fslab-engine: {warning['message']}",
            data={"kind": warning["kind"]},
        )
        for warning in warnings
    ]


def _other_protocol(found: object) -> ToolOutputError:
    return ToolOutputError(
        f"fslab-engine speaks protocol {found}, this fslab protocol {PROTOCOL}",
        hint="reinstall fslab, so that its engine and its Python part are of one version",
    )


def _failure(error: Mapping[str, Any]) -> FslabError:
    what = f"fslab-engine: {error['message']}"
    if error["kind"] == "no_space":
        return NoSpaceError(
            what, where=error["path"], hint="give the medium a larger size, or lower files or size"
        )
    return ToolFailedError(what, where=error["path"])
