"""Converts campaigns and trials to table rows and back. Does not access the database."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from pydantic import BaseModel
from sqlalchemy import RowMapping

from fslab import untrusted_text
from fslab.cell import Cell, TrialKey
from fslab.errors import NoSpaceError
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.trial_record import Provenance, Status, TrialRecord, ValidityWarning, Value
from fslab.units import Unit, format_size

Row = dict[str, Any]
_NO_PROVENANCE = Provenance()
# Of one output: a trial reads at most 64 MiB, and decoding turns each invalid byte into three.
RAW_LIMIT_BYTES = 256 << 20
LONGEST_TEXT = 64 << 10  # characters that are read of a text for people


def plain(model: BaseModel) -> Row:
    """Return the model as JSON values that every database can store."""
    dumped: Row = _storable(model.model_dump())
    return dumped


def _storable(value: Any) -> Any:
    """Return a value that can be stored: NaN and infinity as null, because JSON has neither; texts as :func:`text`."""
    match value:
        case str():
            return text(value)
        case float() if not isfinite(value):
            return None
        case Mapping():
            return {text(str(key)): _storable(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_storable(each) for each in value]
        case datetime():
            return value.isoformat()
    return value


def from_json(written: str | bytes) -> Any:
    """Return the value of a JSON column. Escaped lone surrogates are returned in the form that :func:`plain` stores."""
    if not isinstance(written, str | bytes):  # SQLite accepts any type in any column
        raise TypeError(f"not a JSON document: {written!r}")
    document = written if isinstance(written, str) else written.decode("utf-8")
    value = untrusted_text.json_of(document)
    return _storable(value) if "\\u" in document else value


def text(said: str) -> str:
    """Return a text as valid UTF-8 without NUL, which PostgreSQL cannot store. Other content of a tool's output or of a
    file name is written as ``\\udcff`` or ``\\x00``."""
    return said.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def campaign_row(campaign: Campaign) -> Row:
    row = plain(campaign) | {"created": campaign.created}
    del row["cells"]  # rows of their own
    return row


def to_campaign(row: RowMapping, cells: Iterable[Cell]) -> Campaign:
    fields = {name: value for name, value in row.items() if name not in {"number", "status"}}
    return Campaign(**fields, status=CampaignStatus(row["status"]), cells=tuple(cells))


def cell_row(cell: Cell, position: int, campaign: int) -> Row:
    """Return the row of a cell: the whole cell in ``spec``, and names in the columns that are useful in SQL queries."""
    return {
        "campaign": campaign,
        "position": position,
        "id": cell.id,
        "stack": cell.stack.name,
        "filesystem": cell.stack.filesystem,
        "medium": cell.stack.medium.type,
        "workload": cell.workload.name,
        "tool": cell.workload.tool,
        "spec": plain(cell),
    }


def to_cell(spec: Mapping[str, Any]) -> Cell:
    return Cell.model_validate(spec)


def trial_row(record: TrialRecord, cell: int) -> Row:
    """Return the row of a trial, without its figures, warnings and output."""
    return {
        "cell": cell,
        "block": record.key.block,
        "seed": record.key.seed,
        "version": record.version,
        "status": record.status.value,
        "failure": record.failure,
        "error": None if record.error is None else text(record.error),
        "started": record.started,
        "duration_s": record.duration_s,
        "provenance": plain(record.provenance),
    }


def figure_rows(figures: Mapping[str, Value], trial: int) -> list[Row]:
    """Return the rows of metrics or probes."""
    return [
        {
            "trial": trial,
            "name": name,
            "position": position,
            "value": figure.value,
            "unit": figure.unit.value,
        }
        for position, (name, figure) in enumerate(figures.items())
    ]


def warning_rows(warnings: Iterable[ValidityWarning], trial: int) -> list[Row]:
    """Return the rows of warnings, in the given order."""
    return [{"trial": trial, "position": position, **plain(item)} for position, item in enumerate(warnings)]


def raw_rows(raw: Mapping[str, str], trial: int) -> list[Row]:
    """Return the rows of the tools' output, compressed. ``surrogatepass`` keeps text that was never valid UTF-8."""
    return [
        {"trial": trial, "name": name, "zlib": zlib.compress(text.encode("utf-8", "surrogatepass"))}
        for name, text in raw.items()
    ]


@dataclass(kw_only=True, slots=True)
class Outputs:
    """Decompresses the tools' output of trials. ``left_bytes``: how much all of it may still have; None: unlimited."""

    left_bytes: int | None = None

    def of(self, rows: Iterable[RowMapping]) -> dict[str, str]:
        """Return the output of a trial by name. ValueError if it is larger than fslab can have stored, NoSpaceError if
        all of it is larger than the memory for it."""
        found = {}
        for row in rows:
            content = _inflated(row["zlib"])
            if self.left_bytes is not None:
                self.left_bytes -= len(content)
                if self.left_bytes < 0:
                    what = "the tools' output of all trials needs more than a quarter of the available memory"
                    hint = "fslab results shows the figures without it"
                    raise NoSpaceError(what, where="memory", hint=hint)
            found[row["name"]] = content.decode("utf-8", "surrogatepass")
        return found


def _inflated(compressed: bytes) -> bytes:
    """Decompress up to a limit: a few kilobytes in a malicious store could expand to gigabytes."""
    whole = zlib.decompressobj()
    content = whole.decompress(compressed, RAW_LIMIT_BYTES)
    if whole.unconsumed_tail:
        raise ValueError(f"a tool's output of more than {format_size(RAW_LIMIT_BYTES)}")
    return content


def to_figures(rows: Iterable[RowMapping]) -> dict[str, Value]:
    """Return metrics or probes by name."""
    return {row["name"]: Value(value=row["value"], unit=Unit(row["unit"])) for row in rows}


def to_warning(row: RowMapping) -> ValidityWarning:
    texts = {name: row[name] and row[name][:LONGEST_TEXT] for name in ("message", "hint")}
    return ValidityWarning.model_validate(texts | {name: row[name] for name in ("kind", "severity", "data")})


def to_trial(
    row: RowMapping,
    *,
    campaign: str,
    cell: Cell,
    metrics: Iterable[RowMapping],
    probes: Iterable[RowMapping],
    warnings: Iterable[RowMapping],
    raw: dict[str, str],
) -> TrialRecord:
    """Return the record for a row of ``trials`` and the rows that belong to it."""
    return TrialRecord(
        version=row["version"],
        key=TrialKey(campaign=campaign, block=row["block"], seed=row["seed"]),
        cell=cell,
        status=Status(row["status"]),
        failure=row["failure"],
        error=row["error"] and row["error"][:LONGEST_TEXT],
        started=row["started"],
        duration_s=row["duration_s"],
        metrics=to_figures(metrics),
        probes=to_figures(probes),
        validity=tuple(to_warning(item) for item in warnings),
        provenance=Provenance.model_validate(row["provenance"]) if row["provenance"] else _NO_PROVENANCE,
        raw=raw,
    )
