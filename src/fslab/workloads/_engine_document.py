"""Reads the versioned JSON of fslab-engine (engine/PROTOCOL.md) into figures, errors and doubts. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fslab.errors import FslabError, NoSpaceError, ToolFailedError, ToolOutputError
from fslab.record import Severity, ValidityWarning, WarningKind
from fslab.workloads import ToolOutput

PROTOCOL = 1
SHORTEST_S = 0.05
LATENCIES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9", "max": "max"}

Entry = Mapping[str, Any]


def metric_name(operation: str, figure: str) -> str:
    """``open_close_rate`` of ``open-close`` and ``rate``."""
    return f"{operation.replace('-', '_')}_{figure}"


def document_of(output: ToolOutput) -> dict[str, Any]:
    """The engine's document; an ``error`` document becomes the error of its kind."""
    document: dict[str, Any] = json.loads(output.stdout)
    if document["protocol"] != PROTOCOL:
        raise ToolOutputError(
            f"fslab-engine speaks protocol {document['protocol']}, this fslab protocol {PROTOCOL}",
            hint="reinstall fslab, so that its engine and its Python part are of one version",
        )
    if "error" in document:
        raise _failure(document["error"])
    return document


def figures(operation: str, entry: Entry) -> dict[str, float | None]:
    """All figures of one operation of the document."""
    latency = entry["latency_ns"] or {}
    cpu_s = entry["cpu_user_seconds"] + entry["cpu_system_seconds"]
    found: dict[str, float | None] = {
        "rate": entry["rate_per_second"],
        "bandwidth": entry["bandwidth_bytes_per_second"],
        "cpu": cpu_s * 1e9 / entry["count"] if entry["count"] else None,
        "sync": entry["sync_seconds"],
        **{name: latency.get(key) for name, key in LATENCIES.items()},
    }
    return {metric_name(operation, name): value for name, value in found.items()}


def warnings(
    done: Mapping[str, Entry], shown: frozenset[str], own: list[Mapping[str, str]]
) -> list[ValidityWarning]:
    """Doubts about the operations ``done``; only those ``shown`` in tables can be too short."""
    return [*_short({name: done[name] for name in shown}), *_errors(done), *_own(own)]


def wrong_answer(differing: Mapping[str, tuple[Any, Any]]) -> ValidityWarning:
    """The engine found something else than the tree holds: ``differing`` maps a key to (found, truth)."""
    listed = "; ".join(f"{key}: found {found}, true is {truth}" for key, (found, truth) in differing.items())
    return ValidityWarning(
        kind=WarningKind.WRONG_ANSWER,
        severity=Severity.INVALID,
        message=f"the operation's answer is wrong: {listed}",
        hint="the file system lost or changed data, something else works in the directory, or the engine is broken",
        data={key: {"found": found, "truth": truth} for key, (found, truth) in differing.items()},
    )


def _short(done: Mapping[str, Entry]) -> list[ValidityWarning]:
    """Doubt, not invalid: thousands of operations, each timed by itself, do say something."""
    short = {name: entry["seconds"] for name, entry in done.items() if entry["seconds"] < SHORTEST_S}
    if not short:
        return []
    took = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in short.items())
    return [
        ValidityWarning(
            kind=WarningKind.TOO_SHORT,
            severity=Severity.DOUBT,
            message=f"measured for a very short time: {took}",
            hint="raise files, or scale",
            data={"seconds": short, "shortest_s": SHORTEST_S},
        )
    ]


def _errors(done: Mapping[str, Entry]) -> list[ValidityWarning]:
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


def _failure(error: Mapping[str, Any]) -> FslabError:
    what = f"fslab-engine: {error['message']}"
    if error["kind"] == "no_space":
        hint = "give the medium a larger size, or lower files, size or scale"
        return NoSpaceError(what, where=error["path"], hint=hint)
    return ToolFailedError(what, where=error["path"])
