"""fslab's own load engine: file-management and metadata work, without a shell loop.

Builds the ``fslab-engine`` commands and parses their versioned JSON (engine/PROTOCOL.md); starts no process. Operations
on a synthetic tree are checked against its ground-truth manifest.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from fslab import scaling, untrusted_text
from fslab.filesystem_abilities import Ability, Needs
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_size
from fslab.workloads import (
    BLOCK_BYTES,
    Commands,
    Job,
    Reading,
    Switchable,
    ToolOutput,
    Traits,
    Workload,
    long_options,
    stored_bytes,
    total,
)
from fslab.workloads import _engine_document as documents
from fslab.workloads._engine_parameters import STEPS, EngineParameters

_STEP_NEEDS = {"link": Ability.HARD_LINKS, "symlink": Ability.SYMLINKS, "chmod": Ability.PERMISSIONS}
_GUESSED_FILES_PER_S = 50e3
_GUESSED_FSYNCS_PER_S = 500.0
_GUESSED_BYTES_PER_S = 400e6
_LEAST_FILES = 100
_INTERVAL = "200ms"  # of the rate over time
_CHANGES = frozenset(
    {
        "create", "chmod", "truncate", "rename", "link", "symlink", "mkdir", "rmdir", "unlink", "delete", "sync-write",
    }
)  # fmt: skip
_READS = frozenset({"read", "search", "sync-read", "sync-write", "duplicates", "classify"})
_WRITES = frozenset({"create", "sync-write"})
_MOVES_BYTES = frozenset({"read", "search", "sync-read", "sync-write"})
MANIFEST = "manifest.json"
PLANTED_SHARE = "0.1:2"

# Operation → key of its answer → key of the manifest that holds the true value.
CHECKED: Mapping[str, Mapping[str, str]] = {
    "analyze": {"files": "files", "directories": "directories", "apparent_bytes": "apparent_bytes"},
    "classify": {"files": "files", "by_content": "by_content"},
    "sync-read": {"files": "files", "bytes": "apparent_bytes"},
    "sync-write": {"files": "files", "bytes": "apparent_bytes", "directories": "directories"},
    "delete": {"files": "files", "directories": "directories"},
}
DUPLICATES = ("sets", "duplicate_files", "redundant_files", "redundant_bytes", "digest")
_OWN_OPTIONS: Mapping[str, Callable[[EngineParameters], dict[str, object]]] = {
    "analyze": lambda _: {},
    "classify": lambda given: {"by": given.by},
    "duplicates": lambda given: {"hash": given.hash},
    "search": lambda given: {"pattern": given.pattern, "regex": given.regex, "buffer": given.buffer},
    "sync-read": lambda given: {"direct": given.direct, "buffer": given.buffer},
    "sync-write": lambda given: {"method": given.method, "sync": given.sync, "buffer": given.buffer},
    "delete": lambda given: {"no-syncfs": not given.syncfs},
}


class Engine(Workload[EngineParameters]):
    """``prepare`` makes what the measured operation needs; ``cleanup`` deletes what is left.

    CPU time is the engine's own, per file or operation. It does not include writeback by kernel threads.
    """

    summary = "fslab's engine: small files, metadata operations, and file management on synthetic trees"
    tools: ClassVar[tuple[Tool, ...]] = (Tool(program="fslab-engine", package=None),)
    Parameters = EngineParameters

    def metrics(self, parameters: EngineParameters) -> tuple[Metric, ...]:
        """Return rate, latency percentiles, CPU per file and, where they exist, bandwidth and final sync."""
        declared = [metric for name in parameters.measured for metric in _metrics(name)]
        return self.headline_first(parameters, declared)

    def headline(self, parameters: EngineParameters) -> tuple[str, ...]:
        """Return the rates; with more than three steps, those of the steps that make and remove files."""
        names = parameters.measured
        if len(names) > 3:
            names = tuple(name for name in names if name in {"create", "delete", "unlink"}) or names[:3]
        return tuple(documents.metric_name(name, "rate") for name in names)

    def commands(self, parameters: EngineParameters, job: Job) -> Commands:
        """Return the measured command, one before it for what it needs, and one after it for what is left."""
        if parameters.operation not in STEPS:
            prepare = (_populate_argv(parameters, job),)
            written = (MANIFEST,)
            return Commands(
                prepare=prepare, run=_run_argv(parameters, job), outputs=written, prepared=written
            )
        measured, last = parameters.measured, STEPS[parameters.operation][-1]
        before = () if measured[0] == "create" else (_argv(parameters, job, ("create",)),)
        after = () if measured[-1] == last else (_argv(parameters, job, (last,)),)
        return Commands(prepare=before, run=_argv(parameters, job, measured), cleanup=after, prepared=())

    def read(self, parameters: EngineParameters, output: ToolOutput) -> Reading:
        """Parse the figures of the engine's document, and compare its answer with the manifest if there is one."""
        document = documents.document_of(output)
        entries = {entry["name"]: entry for entry in document["operations"]}
        done = {name: entries[name] for name in parameters.measured}
        declared = {metric.name for metric in self.metrics(parameters)}
        metrics = {
            key: value
            for name, entry in done.items()
            for key, value in documents.figures(name, entry).items()
            if key in declared
        }
        shown = {
            name: entry
            for name, entry in done.items()
            if documents.metric_name(name, "rate") in self.headline(parameters)
        }
        manifest: dict[str, Any] | None = untrusted_text.json_of(output.files.get(MANIFEST, "null"))
        answer, truth = document["answer"], _truth(parameters, manifest) if manifest else {}
        return Reading(
            metrics=metrics,
            latencies=documents.latencies(shown),
            read_bytes=total(entry["bytes"] for name, entry in done.items() if name in _READS),
            written_bytes=total(entry["bytes"] for name, entry in done.items() if name in _WRITES),
            measured_s=sum(entry["seconds"] for entry in done.values()),
            parts_s={name: entry["seconds"] for name, entry in shown.items()},
            part_windows={name: documents.window(entry) for name, entry in shown.items()},
            part_cpu_s={name: documents.cpu_s(entry) for name, entry in shown.items()},
            windows={
                key: window
                for name, entry in done.items()
                for key, window in documents.windows(name, entry).items()
                if key in declared
            },
            direct=parameters.direct,
            working_set_bytes=_working_set(parameters, manifest),
            flushed=_flushed(parameters),
            rates=documents.rates_over_time(shown),
            errors={name: entry["errors"] for name, entry in done.items()},
            wrong={key: (answer[key], value) for key, value in truth.items() if answer[key] != value},
            messages=tuple(f"fslab-engine: {warning['message']}" for warning in document["warnings"]),
        )

    def why_whole(self, parameters: EngineParameters) -> None:
        """Return None: the engine reports when it measured what."""

    def needs(self, parameters: EngineParameters) -> Needs:
        wanted = {ability for step, ability in _STEP_NEEDS.items() if step in parameters.measured}
        if parameters.direct:
            wanted.add(Ability.DIRECT_READS)
        if parameters.method == "reflink":
            wanted.add(Ability.REFLINK)
        return Needs(abilities=frozenset(wanted))

    def scaled(self, parameters: EngineParameters, factor: float) -> scaling.Changes:
        """Scale the number of files, to at least 100, and that of directories with it; of a tree, its scale."""
        if parameters.operation not in STEPS:
            least = min(1.0, _LEAST_FILES / parameters.tree_files)
            return {"scale": scaling.number(parameters.scale, max(factor, least))}
        files = scaling.count(parameters.files, factor, least=_LEAST_FILES)
        # Each directory keeps its number of files, even if the total reached its minimum.
        dirs = scaling.count(parameters.dirs, files.share)
        return {"files": files} | ({"dirs": dirs} if parameters.dirs > 1 else {})

    def traits(self, parameters: EngineParameters) -> Traits:
        """Return the traits of many files, its own or those of a tree. Only some operations change anything."""
        own = parameters.operation in STEPS
        made = "create" in parameters.measured
        return Traits(
            reads=not set(parameters.measured) <= _CHANGES,
            writes=bool(set(parameters.measured) & _CHANGES),
            direct=parameters.direct,
            parallel=parameters.threads,
            files=parameters.files if own else parameters.tree_files,
            directories=parameters.dirs if own else None,
            syncs=float(parameters.files) if parameters.fsync and made else None,
            switches={Switchable.SERIAL: {"threads": 1}},
        )

    def space_bytes(self, parameters: EngineParameters) -> int:
        """Return the size of all files in whole blocks with their inodes; twice that for a tree that is copied."""
        if parameters.operation not in STEPS:
            copies = 2 if parameters.operation == "sync-write" else 1
            return copies * (parameters.tree_bytes * 5 // 4 + stored_bytes(parameters.tree_files, 1))
        drawn = int(parameters.mean_bytes) + BLOCK_BYTES // 2
        size = drawn if parameters.max_size else parse_size(parameters.size)
        size = size if parameters.operation == "small-files" else 0
        return stored_bytes(parameters.files, size) + parameters.dirs * BLOCK_BYTES

    def written_bytes(self, parameters: EngineParameters) -> int:
        """Return the size of the files that the measured operations create; of a copied tree, the copy's."""
        if parameters.operation not in STEPS:
            return self.space_bytes(parameters) // 2 if parameters.operation == "sync-write" else 0
        return self.space_bytes(parameters) if "create" in parameters.measured else 0

    def expected_s(self, parameters: EngineParameters) -> float:
        if parameters.operation not in STEPS:
            files_s = 2 * parameters.tree_files / _GUESSED_FILES_PER_S
            return files_s + 2 * parameters.tree_bytes / _GUESSED_BYTES_PER_S
        commands = len({*parameters.measured, "create"})
        fsyncs_s = parameters.files / _GUESSED_FSYNCS_PER_S if parameters.fsync else 0.0
        return commands * parameters.files / _GUESSED_FILES_PER_S + fsyncs_s


def _metrics(name: str) -> list[Metric]:
    def metric(figure: str, unit: Unit, better: Direction) -> Metric:
        return Metric(name=documents.metric_name(name, figure), unit=unit, better=better)

    found = [metric("rate", Unit.FILES_PER_SECOND, Direction.HIGHER)]
    if name in _MOVES_BYTES:
        found.append(metric("bandwidth", Unit.BYTES_PER_SECOND, Direction.HIGHER))
    found += [metric(percentile, Unit.NANOSECONDS, Direction.LOWER) for percentile in documents.LATENCIES]
    found.append(metric("cpu", Unit.NANOSECONDS, Direction.LOWER))
    if name in _CHANGES:
        found.append(metric("sync", Unit.SECONDS, Direction.NEITHER))
    return found


def _argv(parameters: EngineParameters, job: Job, operations: tuple[str, ...]) -> tuple[str, ...]:
    options = {
        "files": parameters.files,
        "dirs": parameters.dirs,
        "size": parameters.size if parameters.operation == "small-files" else None,
        "max-size": parameters.max_size,
        "order": parameters.order,
        "fsync": parameters.fsync,
        "no-syncfs": not parameters.syncfs,
        "threads": parameters.threads,
        "latency": parameters.latency,
        "seed": job.seed,
        "operations": ",".join(operations),
        # The series uses the timestamps of the latency; without them, each operation would read the clock for it.
        "interval": None if parameters.latency == "off" else _INTERVAL,
        "json": True,
    }
    return ("fslab-engine", parameters.operation, str(job.directory), *long_options(options))


def _populate_argv(parameters: EngineParameters, job: Job) -> tuple[str, ...]:
    """Return the command that makes the tree. One thread: the layout on disk is the same for any ``threads``."""
    planted = f"{parameters.pattern}:{PLANTED_SHARE}" if parameters.plants_pattern else parameters.plant
    data = {"scale": parameters.scale, "seed": parameters.data_seed, "duplicates": parameters.duplicate_share}
    more = {
        "plant": planted or None,
        "compressibility": parameters.compressibility,
        "threads": 1,
        "manifest": job.scratch / MANIFEST,
        "json": True,
    }
    classes = (f"--class={part}" for part in (parameters.classes or "").split(",") if part)
    return (
        "fslab-engine", "populate", str(job.directory / "tree"), *long_options(data), *classes, *long_options(more),
    )  # fmt: skip


def _run_argv(parameters: EngineParameters, job: Job) -> tuple[str, ...]:
    copy = (str(job.directory / "copy"),) if parameters.operation == "sync-write" else ()
    options = {
        **_OWN_OPTIONS[parameters.operation](parameters),
        "order": parameters.order,
        "threads": parameters.threads,
        "latency": parameters.latency,
        "json": True,
    }
    return (
        "fslab-engine", parameters.operation, str(job.directory / "tree"), *copy, *long_options(options),
    )  # fmt: skip


def _working_set(parameters: EngineParameters, manifest: Mapping[str, Any] | None) -> int | None:
    """Return the bytes of file contents that the operations use; None for metadata, whose size is unknown."""
    if parameters.operation == "meta":
        return None
    if parameters.operation == "small-files":
        return int(parameters.files * parameters.mean_bytes) or None
    copies = 2 if parameters.operation == "sync-write" else 1
    return copies * int(manifest["apparent_bytes"]) if manifest else None


def _flushed(parameters: EngineParameters) -> bool | None:
    """Return whether written contents reached the device within the measured time; None if none were written."""
    match parameters.operation:
        case "small-files":
            return (parameters.fsync or parameters.syncfs) if "create" in parameters.measured else None
        case "sync-write":
            return parameters.sync != "none"
        case _:
            return None


def _truth(parameters: EngineParameters, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the answer must say."""
    match parameters.operation:
        case "duplicates":
            return {key: manifest["duplicates"][key] for key in DUPLICATES}
        case "search":
            planted = {entry["text"]: entry for entry in manifest["patterns"]}
            entry = planted.get(parameters.pattern)
            return {key: entry[key] for key in ("files_matched", "lines_matched")} if entry else {}
        case "classify" if parameters.by == "name":
            return {"files": manifest["files"]}
        case operation:
            return {key: manifest[known] for key, known in CHECKED[operation].items()}
