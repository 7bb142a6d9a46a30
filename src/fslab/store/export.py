"""Exports the trials of a campaign to files for other programs: JSON, CSV and Parquet.

JSON has one object per trial. CSV and Parquet are long tables: one row per trial and figure, and one row without a
figure for a trial that has none, so that failures are not lost. Unknown values are null or empty, never 0.
"""

from __future__ import annotations

import errno
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fslab import names, safe_output, untrusted_text
from fslab.cell import Cell, TrialKey
from fslab.errors import StoreError, UsageError
from fslab.stopping_settings import StoppingRule
from fslab.store import Format, rows
from fslab.system import memory
from fslab.trial_record import RECORD_VERSION, TrialRecord, Value
from fslab.units import format_size

if TYPE_CHECKING:
    import polars as pl

    from fslab.store.store import Store


PIECE = 100  # trials
Object = dict[str, Any]

# With the forms of full width, which spreadsheets of some languages take for the same.
_BEGIN = r"=+\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = rf"^[{_BEGIN}\t\r\n]"
# Where a semicolon separates cells, as in many languages, the quotes around a text with a comma do not hold it
# together.
_FORMULA_INSIDE = rf"([;\t\n])([{_BEGIN}])"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
LIMIT_BYTES = 4 << 30  # about a hundred thousand trials
MEMORY_SHARE = 16  # of the available memory, for a file: as values, a text takes some ten times its size
HINT = "make one with: fslab export CAMPAIGN --output trials.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What a JSON file has: trials in its order, and the stopping rule; None if it is unknown, or of several."""

    trials: list[TrialRecord]
    stopping: StoppingRule | None


def export(store: Store, campaign_id: str, form: Format | str, out: Path | None) -> None:
    """Write a campaign's trials to ``out``, completely or not at all; to standard output if ``out`` is None. Each block
    has the order of the study's cells.

    UsageError for Parquet on a terminal, and if the file cannot be written.
    """
    wanted = Format(form)
    if out is None and wanted is Format.PARQUET and sys.stdout.isatty():
        raise UsageError("Parquet cannot be written to a terminal", hint="name a file")
    campaign = store.campaign(campaign_id)
    places = {cell.id: place for place, cell in enumerate(campaign.cells)}
    trials = sorted(store.trials(campaign_id), key=lambda each: (each.key.block, places[each.cell.id]))
    content = render(trials, wanted, campaign.stopping)
    if out is None:
        safe_output.to_standard_output(content)
    else:
        safe_output.replace(out, content)


def render(trials: Sequence[TrialRecord], form: Format, stopping: StoppingRule | None = None) -> bytes:
    match form:
        case Format.JSON:
            rule = stopping and stopping.model_dump(mode="json")
            objects = [{**trial_object(trial), "stopping": rule} for trial in trials]
            document = json.dumps(objects, indent=2, ensure_ascii=False, allow_nan=False)
            return (names.escaped(document) + "\n").encode()
        case Format.CSV:
            buffer = io.BytesIO()
            for number, piece in enumerate(_frames(trials)):
                table = _as_cells(piece).write_csv(null_value="", include_header=number == 0)
                buffer.write(names.shown(table).encode())
            return buffer.getvalue()
        case Format.PARQUET:
            buffer = io.BytesIO()
            frame(trials).write_parquet(buffer)
            return buffer.getvalue()


def _as_cells(piece: pl.DataFrame) -> pl.DataFrame:
    """Return the table with an apostrophe before each text that a spreadsheet would run as a formula (OWASP, "CSV
    Injection"), also if it takes a part of a text for a cell. Numbers stay numbers."""
    import polars as pl  # noqa: PLC0415 - as below

    text = pl.col(pl.String)
    formula = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    inside = text.str.replace_all(_FORMULA_INSIDE, "${1}'${2}")
    return piece.with_columns(pl.when(formula).then("'" + inside).otherwise(inside).name.keep())


def trial_object(trial: TrialRecord) -> Object:
    dump = json.loads(trial.model_dump_json(include={"validity", "provenance", "started"}))
    return {
        "version": trial.version,
        "campaign": trial.key.campaign,
        "cell": _cell_object(trial.cell),
        "spec": trial.cell.model_dump(mode="json"),
        "block": trial.key.block,
        "seed": trial.key.seed,
        "stack": _stack_object(trial),
        "workload": {
            "name": trial.cell.workload.name,
            "tool": trial.cell.workload.tool,
            "parameters": dict(trial.cell.workload.parameters),
        },
        "status": trial.status_text,
        "error": trial.error,
        "metrics": _figures_object(trial.metrics),
        "probes": _figures_object(trial.probes),
        "validity": dump["validity"],
        "provenance": dump["provenance"],
        "started": dump["started"],
        "duration_s": trial.duration_s,
    }


def _cell_object(cell: Cell) -> Object:
    return {
        "id": cell.id,
        "stack": cell.stack.name,
        "workload": cell.workload.name,
        "cache": cell.cache.value,
        "fresh": cell.fresh.value,
        "time_limit_s": cell.time_limit_s,
        "tuning": dict(cell.tuning),
    }


def _stack_object(trial: TrialRecord) -> Object:
    """Return the stack. On a medium that is not formatted, the file system is the one that was found there."""
    stack = trial.cell.stack
    return {
        "name": stack.name,
        "medium": stack.medium.type,
        "medium_name": stack.medium.name,
        "medium_options": dict(stack.medium.options),
        "layout": stack.striped_by,
        "layout_options": dict(stack.layout_options),
        "filesystem": stack.filesystem or trial.provenance.device.get("filesystem"),
        "mkfs_options": stack.mkfs_options,
        "mount_options": stack.mount_options,
        "geometry": stack.geometry.value,
        "machine": stack.machine.type,
        "settings": stack.settings,
    }


def _figures_object(figures: dict[str, Value]) -> Object:
    return {name: {"value": figure.value, "unit": figure.unit.value} for name, figure in figures.items()}


def frame(trials: Sequence[TrialRecord]) -> pl.DataFrame:
    """Return the long table: one row per trial and figure. Columns and types are fixed, even if it is empty."""
    import polars as pl  # noqa: PLC0415 - slow to import, and not needed for JSON

    return pl.concat(_frames(trials))


def _frames(trials: Sequence[TrialRecord]) -> Iterator[pl.DataFrame]:
    """Yield the long table in pieces, at least one: as Python objects, all of its rows would take many gigabytes."""
    import polars as pl  # noqa: PLC0415 - as above

    columns = (
        "campaign", "cell", "stack", "medium", "medium_name", "medium_options", "layout", "layout_options",
        "filesystem", "mkfs_options", "mount_options", "geometry", "machine", "settings", "workload", "tool",
        "parameters", "cache", "fresh", "block", "started", "duration_s", "status", "warnings", "kind", "name", "value",
        "unit",
    )  # fmt: skip
    numbers: dict[str, type[pl.DataType]] = {"block": pl.Int64, "duration_s": pl.Float64, "value": pl.Float64}
    schema = {name: numbers.get(name, pl.String) for name in columns}
    for begin in range(0, max(len(trials), 1), PIECE):
        piece = trials[begin : begin + PIECE]
        yield pl.DataFrame([row for trial in piece for row in _long_rows(trial)], schema=schema)


def _long_rows(trial: TrialRecord) -> Iterator[Object]:
    common = _common_columns(trial)
    figures = [("metric", *item) for item in trial.metrics.items()]
    figures += [("probe", *item) for item in trial.probes.items()]
    for kind, name, figure in figures:
        yield {**common, "kind": kind, "name": name, "value": figure.value, "unit": figure.unit.value}
    if not figures:
        yield {**common, "kind": None, "name": None, "value": None, "unit": None}


def _common_columns(trial: TrialRecord) -> Object:
    """Return the columns that identify a trial. Options and parameters are JSON texts: they differ between studies.

    A script or a job file would be in each row: texts of several lines are only in the JSON export.
    """
    stack = _stack_object(trial)
    cell = _cell_object(trial.cell)
    parameters = {
        name: value for name, value in trial.cell.workload.parameters.items() if "\n" not in str(value)
    }
    return {
        "campaign": trial.key.campaign,
        "cell": cell["id"],
        "stack": stack.pop("name"),
        **stack,
        "medium_options": json.dumps(stack["medium_options"]),
        "layout_options": json.dumps(stack["layout_options"]),
        "settings": json.dumps(stack["settings"]),
        "workload": cell["workload"],
        "tool": trial.cell.workload.tool,
        "parameters": json.dumps(parameters),
        "cache": cell["cache"],
        "fresh": cell["fresh"],
        "block": trial.key.block,
        "started": trial.started.isoformat(),
        "duration_s": trial.duration_s,
        "status": trial.status_text,
        "warnings": " ".join(f"{warning.severity}:{warning.kind}" for warning in trial.validity),
    }


def read(path: Path) -> Exported:
    """Return what an export has. StoreError if it is not an export, or is of another version."""
    available = memory.available_bytes()
    limit = LIMIT_BYTES if available is None else min(LIMIT_BYTES, available // MEMORY_SHARE)
    try:
        found = rows.from_json(untrusted_text.of_file(path, limit_bytes=limit))
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
    trials = [_trial(each, f"{path}, trial {number}") for number, each in enumerate(found, start=1)]
    rules = {_stopping(each.get("stopping"), f"{path}, trial {n}") for n, each in enumerate(found, start=1)}
    return Exported(trials=trials, stopping=rules.pop() if len(rules) == 1 else None)


def _stopping(exported: object, where: str) -> StoppingRule | None:
    try:
        return None if exported is None else StoppingRule.model_validate(exported)
    except ValidationError as error:
        what = f"is not a stopping rule: {error.errors()[0]['msg']}"
        raise StoreError(what, where=where, hint=HINT) from error


_AS_IN_A_RECORD = (
    "version", "error", "started", "duration_s", "metrics", "probes", "validity", "provenance",
)  # fmt: skip


def _trial(exported: dict[str, Any], where: str) -> TrialRecord:
    version = exported.get("version")
    if isinstance(version, int) and version != RECORD_VERSION:
        newer = version > RECORD_VERSION
        raise StoreError(
            f"was written by {'a newer' if newer else 'an earlier'} fslab, in another form",
            where=where, hint="upgrade fslab" if newer else "read it with that fslab",
        )  # fmt: skip
    if "spec" not in exported:
        raise StoreError(
            "lacks the description of the cell ('spec')", where=where, hint=f"export it again; {HINT}"
        )
    try:
        status, _, failure = exported["status"].partition(":")
        written = {name: exported[name] for name in _AS_IN_A_RECORD}
        key = {name: exported[name] for name in TrialKey.model_fields}
        own = {"key": key, "cell": exported["spec"], "status": status, "failure": failure or None}
        return TrialRecord.model_validate(written | own)
    except (KeyError, AttributeError, TypeError, ValidationError, ValueError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StoreError(f"is not an exported trial: {what}", where=where, hint=HINT) from error
