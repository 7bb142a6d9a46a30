"""The log of a virtual disk (engine/disk/PROTOCOL.md, Log) as a table: one row for each request and each mark."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fslab import untrusted_text
from fslab.errors import ToolOutputError

if TYPE_CHECKING:
    import polars as pl

MAGIC = b"FSLABDSK"
HEADER_BYTES = 64
_CACHE_AT, _DURABLE = 32, 1  # in the header: the disk has no volatile cache
OPERATIONS = ("read", "write", "flush", "discard", "mark")
FAILED, FAULT, IGNORED = 1, 2, 4
_FIELDS: list[Any] = [
    ("id", "<u8"), ("arrived_ns", "<u8"), ("done_ns", "<u8"), ("offset", "<u8"), ("data", "<u8"), ("length", "<u4"),
    ("epoch", "<u4"), ("phase", "<u2"), ("op", "u1"), ("flags", "u1"), ("pad", "V12"),
]  # fmt: skip


def read(log: Path) -> pl.DataFrame:
    """Return the rows in the order in which requests were done: ``row``, ``id``, ``op``, ``offset``, ``length``,
    ``arrived_ns``, ``done_ns``, ``epoch``, ``phase`` and ``mark`` (names, or null), ``failed``, ``fault``, ``ignored``.

    Ask the server to ``sync`` first. ToolOutputError if the file is not such a log, or is damaged.
    """
    import numpy as np  # noqa: PLC0415 - 0.3 s
    import polars as pl  # noqa: PLC0415

    _header(log)
    names = _names(Path(f"{log}.json"))
    rows = np.fromfile(log, dtype=_FIELDS, offset=HEADER_BYTES)
    if rows.size and rows["op"].max() >= len(OPERATIONS):
        raise ToolOutputError("a row of this log is damaged", where=str(log))
    frame = pl.DataFrame({name: rows[name] for name, _ in _FIELDS if name != "pad"})
    is_mark = pl.col("op") == OPERATIONS.index("mark")
    marks = pl.when(is_mark).then(pl.col("offset")).otherwise(None)
    return frame.with_row_index("row").select(
        "row", "id", "arrived_ns", "done_ns", "length", "epoch",
        pl.when(is_mark).then(None).otherwise(pl.col("offset")).alias("offset"),
        pl.col("op").replace_strict(dict(enumerate(OPERATIONS))),
        pl.col("phase").replace_strict(dict(enumerate(names["phases"])), default=None, return_dtype=pl.String),
        marks.replace_strict(dict(enumerate(names["marks"])), default=None, return_dtype=pl.String).alias("mark"),
        *(
            (pl.col("flags") & flag != 0).alias(name)
            for name, flag in (("failed", FAILED), ("fault", FAULT), ("ignored", IGNORED))
        ),
    )  # fmt: skip


def has_volatile_cache(log: Path) -> bool:
    """Return whether the disk could lose what it had acknowledged. ToolOutputError if the file is not such a log."""
    (flags,) = struct.unpack_from("<I", _header(log), _CACHE_AT)
    return not flags & _DURABLE


def _header(log: Path) -> bytes:
    with log.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if header[: len(MAGIC)] != MAGIC or len(header) < HEADER_BYTES:
        raise ToolOutputError("this is not a log of fslab-disk", where=str(log))
    return header


def _names(path: Path) -> dict[str, list[str]]:
    """Return the names of phases and of marks."""
    try:
        about = untrusted_text.json_of(path.read_bytes())
        names = {key: about[key] for key in ("phases", "marks")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolOutputError(f"the names in this log cannot be read: {error}", where=str(path)) from error
    if not all(
        isinstance(each, list) and all(isinstance(name, str) for name in each) for each in names.values()
    ):
        raise ToolOutputError("the names in this log are not lists of strings", where=str(path))
    return names
