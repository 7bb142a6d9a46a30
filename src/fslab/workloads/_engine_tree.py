"""Operations of fslab-engine on a synthetic tree with a ground-truth manifest: commands and checks. Pure."""

from collections.abc import Mapping
from typing import Any

from fslab.workloads import Job
from fslab.workloads._engine_parameters import EngineParameters

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


def populate_argv(parameters: EngineParameters, job: Job) -> tuple[str, ...]:
    """Return the command that makes the tree. One thread: the layout on disk is the same for any ``threads``."""
    plant = parameters.plant
    if parameters.plants_pattern:
        plant = f"{parameters.pattern}:{PLANTED_SHARE}"
    return (
        "fslab-engine",
        "populate",
        str(job.directory / "tree"),
        f"--scale={parameters.scale}",
        f"--seed={parameters.data_seed}",
        f"--duplicates={parameters.duplicate_share}",
        *(f"--class={part}" for part in (parameters.classes or "").split(",") if part),
        *((f"--plant={plant}",) if plant else ()),
        *(
            (f"--compressibility={parameters.compressibility}",)
            if parameters.compressibility is not None
            else ()
        ),
        "--threads=1",
        f"--manifest={job.scratch / MANIFEST}",
        "--json",
    )


def run_argv(parameters: EngineParameters, job: Job) -> tuple[str, ...]:
    places = [str(job.directory / "tree")]
    if parameters.operation == "sync-write":
        places.append(str(job.directory / "copy"))
    return (
        "fslab-engine",
        parameters.operation,
        *places,
        *_own_options(parameters),
        *((f"--order={parameters.order}",) if parameters.order else ()),
        f"--threads={parameters.threads}",
        f"--latency={parameters.latency}",
        "--json",
    )


def _own_options(parameters: EngineParameters) -> tuple[str, ...]:
    buffer = (f"--buffer={parameters.buffer}",) if parameters.buffer else ()
    match parameters.operation:
        case "classify":
            return (f"--by={parameters.by}",)
        case "duplicates":
            return (f"--hash={parameters.hash}",) if parameters.hash else ()
        case "search":
            return (f"--pattern={parameters.pattern}", *(("--regex",) if parameters.regex else ()), *buffer)
        case "sync-read":
            return (*(("--direct",) if parameters.direct else ()), *buffer)
        case "sync-write":
            return (f"--method={parameters.method}", f"--sync={parameters.sync}", *buffer)
        case "delete":
            return () if parameters.syncfs else ("--no-syncfs",)
        case _:
            return ()


def differences(
    parameters: EngineParameters, answer: Mapping[str, Any], manifest: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return where the answer differs from the manifest: key → (found, truth). Empty: no difference."""
    truth = _truth(parameters, manifest)
    return {key: (answer[key], value) for key, value in truth.items() if answer[key] != value}


def _truth(parameters: EngineParameters, manifest: Mapping[str, Any]) -> dict[str, Any]:
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
