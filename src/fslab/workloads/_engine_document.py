"""Parses the versioned JSON of fslab-engine (engine/PROTOCOL.md) into figures, errors and rates over time. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from fslab import untrusted_text
from fslab.errors import LARGER_MEDIUM, FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.validity.facts import Rate
from fslab.workloads import ToolOutput, is_known

PROTOCOL = 1
LATENCIES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9", "max": "max"}

_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")

Entry = Mapping[str, Any]


def metric_name(operation: str, figure: str) -> str:
    """Return the name of a metric: ``open-close`` and ``rate`` give ``open_close_rate``."""
    return f"{operation.replace('-', '_')}_{figure}"


def document_of(output: ToolOutput) -> dict[str, Any]:
    """Return the engine's document. An ``error`` document raises the error of its kind."""
    document: dict[str, Any] = untrusted_text.json_of(output.stdout)
    if document["protocol"] != PROTOCOL:
        raise ToolOutputError(
            f"fslab-engine uses protocol {document['protocol']}, but fslab expects protocol {PROTOCOL}",
            hint="reinstall fslab, so that fslab-engine has the same version",
        )
    if "error" in document:
        raise _failure(document["error"])
    return document


def figures(operation: str, entry: Entry) -> dict[str, float | None]:
    """Return all figures of one operation of the document by metric name. ``cpu``: ns per file or operation."""
    latency = latencies_of(entry["latency_ns"], entry["count"])
    found: dict[str, float | None] = {
        "rate": entry["rate_per_second"],
        "bandwidth": entry["bandwidth_bytes_per_second"],
        "cpu": cpu_s(entry) * 1e9 / entry["count"] if entry["count"] else None,
        "sync": entry["sync_seconds"],
        **{name: latency.get(key) for name, key in LATENCIES.items()},
    }
    return {metric_name(operation, name): value for name, value in found.items()}


def latencies_of(told: Mapping[str, float] | None, count: int) -> dict[str, float]:
    """Return the latencies of so many operations, without the percentiles that none is above."""
    return {
        key: value
        for key, value in (told or {}).items()
        if not _PERCENTILE.fullmatch(key) or is_known(float(key[1:]), count)
    }


def cpu_s(entry: Entry) -> float:
    """Return the CPU time of an operation, of user and kernel."""
    used_s: float = entry["cpu_user_seconds"] + entry["cpu_system_seconds"]
    return used_s


def window(entry: Entry) -> tuple[float, float]:
    """Return when an operation began and ended, in seconds of CLOCK_MONOTONIC."""
    began_s: float = entry["began_seconds"]
    return began_s, began_s + entry["seconds"]


def windows(operation: str, entry: Entry) -> dict[str, tuple[float, float]]:
    """Return when each figure of an operation was measured; not of CPU time, which no clock measures."""
    began_s, ended_s = window(entry)
    found = dict.fromkeys(("rate", "bandwidth", *LATENCIES), (began_s, ended_s))
    if entry["sync_seconds"] is not None:
        found["sync"] = (ended_s - entry["sync_seconds"], ended_s)
    return {metric_name(operation, name): own for name, own in found.items()}


def latencies(done: Mapping[str, Entry]) -> dict[str, dict[float, float]]:
    """Return the percentiles of each operation that the engine timed: percent (``p99.9`` is 99.9) → ns."""
    found: dict[str, dict[float, float]] = {}
    for name, entry in done.items():
        told = entry["latency_ns"] or {}
        found[name] = {float(key[1:]): float(ns) for key, ns in told.items() if _PERCENTILE.fullmatch(key)}
    return {name: percentiles for name, percentiles in found.items() if percentiles}


def rates_over_time(done: Mapping[str, Entry]) -> tuple[Rate, ...]:
    """Return the rate of each operation with a series, without the last interval, which may be cut short."""
    return tuple(
        Rate(
            what=f"{name} rate",
            interval_s=series["interval_seconds"],
            values=tuple(count / series["interval_seconds"] for count in series["counts"][:-1]),
        )
        for name, entry in done.items()
        if (series := entry.get("series")) and len(series["counts"]) > 1
    )


def _failure(error: Mapping[str, Any]) -> FslabError:
    what = f"fslab-engine: {error['message']}"
    where = None if str(error["path"]) in what else error["path"]
    if error["kind"] == "no_space":
        hint = f"{LARGER_MEDIUM}, or lower files, size or scale"
        return NoSpaceError(what, where=where, hint=hint)
    if error["kind"] == "no_memory":
        hint = "give the machine more memory, or lower files, size, buffer or threads"
        return ToolFailedError(what, where=where, hint=hint)
    return ToolFailedError(what, where=where)
