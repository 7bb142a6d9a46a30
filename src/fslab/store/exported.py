"""Reads the trials of a JSON export, so that campaigns of two machines can be compared. Uses no database.

An export does not contain the tools' own output, so these records do not have it.
"""

import errno
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab import texts
from fslab.cell import Cell, TrialKey
from fslab.errors import StoreError
from fslab.record import RECORD_VERSION, Provenance, Status, TrialRecord, ValidityWarning, Value
from fslab.system import memory
from fslab.units import format_size

LIMIT_BYTES = 4 << 30  # about a hundred thousand trials
MEMORY_SHARE = (
    16  # of the available memory that a file may have: as values, a text takes some ten times its size
)
HINT = "make one with: fslab export CAMPAIGN --output trials.json"


def read(path: Path) -> list[TrialRecord]:
    """Return the trials of an export, in its order. StoreError if it is not an export, or is from a newer fslab."""
    available = memory.available_bytes()
    limit = LIMIT_BYTES if available is None else min(LIMIT_BYTES, available // MEMORY_SHARE)
    try:
        found = texts.json_of(texts.of_file(path, limit_bytes=limit))
    except OSError as error:
        if error.errno == errno.EFBIG:
            what = f"is larger than {format_size(limit)}, the limit for the available memory"
            raise StoreError(what, where=str(path), hint="compare campaigns of a store instead") from error
        raise StoreError(f"cannot be read: {error.strerror}", where=str(path), hint=HINT) from error
    except ValueError as error:
        raise StoreError("is not JSON", where=str(path), hint=HINT) from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise StoreError("is not a list of trials", where=str(path), hint=HINT)
    if not found:
        raise StoreError("contains no trial", where=str(path), hint="export a campaign that has trials")
    return [_trial(each, f"{path}, trial {number}") for number, each in enumerate(found, start=1)]


def _trial(exported: dict[str, Any], where: str) -> TrialRecord:
    version = exported.get("version")
    if isinstance(version, int) and version > RECORD_VERSION:
        raise StoreError("was written by a newer fslab", where=where, hint="upgrade fslab")
    if "spec" not in exported:
        raise StoreError(
            "lacks the description of the cell ('spec')", where=where, hint=f"export it again; {HINT}"
        )
    try:
        status, _, failure = exported["status"].partition(":")
        return TrialRecord(
            version=version,
            key=TrialKey(campaign=exported["campaign"], block=exported["block"], seed=exported["seed"]),
            cell=Cell.model_validate(exported["spec"]),
            status=Status(status),
            failure=failure or None,
            error=exported["error"],
            started=exported["started"],
            duration_s=exported["duration_s"],
            metrics=_figures(exported["metrics"]),
            probes=_figures(exported["probes"]),
            validity=tuple(ValidityWarning.model_validate(each) for each in exported["validity"]),
            provenance=Provenance.model_validate(exported["provenance"]),
        )
    except (KeyError, AttributeError, TypeError, ValidationError, ValueError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StoreError(f"is not an exported trial: {what}", where=where, hint=HINT) from error


def _figures(exported: dict[str, Any]) -> dict[str, Value]:
    return {name: Value.model_validate(figure) for name, figure in exported.items()}
