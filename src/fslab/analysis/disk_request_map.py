"""What the requests of a run show: which parts of a disk they touched when, and how far apart they were. Pure.

The input is the log of a virtual disk (``system.disk_server``). A map is small enough to be stored with every trial.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fslab import untrusted_text
from fslab.cell import Frozen
from fslab.trial_record import Value
from fslab.units import LARGEST_BYTES, LONGEST_S, Unit

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Array = np.ndarray[Any, Any]

NAME = "requests.json"  # among the output of a trial
READ, WRITE, JOURNAL, DISCARD = KINDS = ("read", "write", "journal", "discard")
INTERVALS = 60
MOST_REGIONS = 32
MOST_DISKS = 64
_LEAST_REGION_BYTES = 1 << 20

Ranges = Sequence[tuple[int, int]]
"""Half-open ranges of bytes."""


_Bytes = Annotated[int, Field(ge=0, le=LARGEST_BYTES)]
_Kind = Literal["read", "write", "journal", "discard"]
_Cell = tuple[_Kind, Annotated[int, Field(ge=0, lt=INTERVALS)], Annotated[int, Field(ge=0)], _Bytes]


class RequestMap(Frozen):
    """The requests of one disk in one run.

    ``regions``: first bytes of the touched parts of the disk, ascending; each has ``region_bytes``. ``cells``: kind,
    number of the interval (of ``seconds / INTERVALS``), number of the region, bytes. A request counts where it starts.
    ``distances``: kind → distance → requests. The distance from the end of the request before is 0, or the largest
    power of two that it reaches. ``seconds`` are those of real time.
    """

    seconds: float = Field(gt=0, le=LONGEST_S, allow_inf_nan=False)
    region_bytes: int = Field(gt=0, le=LARGEST_BYTES)
    regions: tuple[_Bytes, ...] = Field(min_length=1, max_length=MOST_REGIONS)
    cells: tuple[_Cell, ...] = Field(max_length=len(KINDS) * INTERVALS * MOST_REGIONS)
    distances: dict[_Kind, dict[_Bytes, Annotated[int, Field(gt=0, le=LARGEST_BYTES)]]]

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        """Check the values against each other. Stores can come from other machines: every value is checked."""
        far = (distance for counts in self.distances.values() for distance in counts)
        if any(cell[2] >= len(self.regions) for cell in self.cells) or any(each & (each - 1) for each in far):
            raise ValueError("an impossible value")
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskRequests:
    """The requests of one disk that have a place, in the order in which they arrived: an array for each property.

    ``kinds``: index in ``KINDS``. ``distances``: bytes from the end of the request before, for all but the first.
    ``done_ns``: when the last one was done. Times are the drive's. ``knows_journal``: its places are known.
    """

    offsets: Array
    lengths: Array
    arrived_ns: Array
    kinds: Array
    distances: Array
    done_ns: int
    knows_journal: bool


def requests_of(log: pl.DataFrame, journal: Ranges = ()) -> DiskRequests | None:
    """Return the requests of a log; None if none read, wrote or discarded anything. ``journal``: its places."""
    import numpy as np  # noqa: PLC0415 - 0.1 s
    import polars as pl  # noqa: PLC0415

    moved = log.filter(pl.col("op").is_in([READ, WRITE, DISCARD]) & (pl.col("length") > 0)).sort("id")
    if not moved.height:
        return None
    numbers = ("offset", "length", "arrived_ns", "done_ns")
    offsets, lengths, arrived_ns, done_ns = (moved[name].to_numpy().astype(np.int64) for name in numbers)
    kinds = np.array(moved["op"].replace_strict({kind: KINDS.index(kind) for kind in (READ, WRITE, DISCARD)}))
    for low, high in journal:
        inside = (offsets >= low) & (offsets < high) & (kinds == KINDS.index(WRITE))
        kinds[inside] = KINDS.index(JOURNAL)
    return DiskRequests(
        offsets=offsets, lengths=lengths, arrived_ns=arrived_ns, kinds=kinds, done_ns=int(done_ns.max()),
        distances=np.abs(offsets[1:] - (offsets + lengths)[:-1]), knows_journal=bool(journal),
    )  # fmt: skip


def map_of(requests: DiskRequests, rate: float = 1.0) -> RequestMap:
    """Return the map. ``rate``: by how much the drive's time runs faster than real time."""
    import numpy as np  # noqa: PLC0415

    since_ns = requests.arrived_ns - requests.arrived_ns[0]
    whole_ns = float(requests.done_ns - requests.arrived_ns[0]) or 1.0
    region_bytes, regions, at = _regions(requests.offsets)
    intervals = np.minimum((since_ns / whole_ns * INTERVALS).astype(int), INTERVALS - 1)
    sums = np.zeros((len(KINDS), INTERVALS, len(regions)), dtype=np.int64)
    np.add.at(sums, (requests.kinds, intervals, at), requests.lengths)
    return RequestMap(
        seconds=whole_ns / 1e9 / rate,
        region_bytes=region_bytes,
        regions=tuple(int(number) * region_bytes for number in regions),
        cells=tuple(
            (KINDS[kind], int(interval), int(region), int(sums[kind, interval, region]))
            for kind, interval, region in zip(*np.nonzero(sums), strict=True)
        ),
        distances=_counted(requests.kinds[1:], requests.distances),
    )


def figures(disks: Sequence[DiskRequests], rate: float = 1.0) -> dict[str, Value]:
    """Return figures of all disks of a run, by name; empty if no disk had two requests.

    ``disk_sequential``: requests that start where the one before ended. ``disk_seek_p50``, ``disk_seek_p90``: distance
    from the end of the request before. ``disk_gap_p50``: time between arrivals. ``disk_journal_bytes``: bytes written
    to the journal, if its place is known.
    """
    if not any(each.distances.size for each in disks):
        return {}
    import numpy as np  # noqa: PLC0415 - takes 0.2 s, between two trials

    distances = np.concatenate([each.distances for each in disks])
    gaps_ns = np.concatenate([np.diff(each.arrived_ns) for each in disks])
    found = {
        "disk_sequential": Value(value=100 * float((distances == 0).mean()), unit=Unit.PERCENT),
        "disk_gap_p50": Value(value=float(np.median(gaps_ns)) / rate, unit=Unit.NANOSECONDS),
    }
    for percent in (50, 90):
        distance = float(np.percentile(distances, percent))
        found[f"disk_seek_p{percent}"] = Value(value=distance, unit=Unit.BYTES)
    if any(each.knows_journal for each in disks):
        written = sum(int(each.lengths[each.kinds == KINDS.index(JOURNAL)].sum()) for each in disks)
        found["disk_journal_bytes"] = Value(value=written, unit=Unit.BYTES)
    return found


def stored(maps: Sequence[RequestMap]) -> str:
    """Return the text that is stored with a trial: one map per disk."""
    return json.dumps({"version": 1, "disks": [each.model_dump() for each in maps]}, separators=(",", ":"))


def read(text: str) -> tuple[RequestMap, ...]:
    """Return the maps of a stored text. Empty if it is none, of another version, or has impossible values."""
    try:
        document = untrusted_text.json_of(text)
        disks = document["disks"] if document["version"] == 1 else []
        return tuple(RequestMap.model_validate(each) for each in disks[:MOST_DISKS])
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return ()


def _regions(offsets: Array) -> tuple[int, Array, Array]:
    """Return the size of a region, the numbers of the touched ones, and the index of each request's region in them."""
    import numpy as np  # noqa: PLC0415

    size = _LEAST_REGION_BYTES
    while True:
        regions, at = np.unique(offsets // size, return_inverse=True)
        if len(regions) <= MOST_REGIONS:
            return size, regions, at
        size *= 2


def _counted(kinds: Array, distances: Array) -> dict[str, dict[int, int]]:
    """Return kind → distance → requests. The distances become 0, or the largest power of two that they reach."""
    import numpy as np  # noqa: PLC0415

    # The exponent is exact (below 2**53), where a logarithm would be rounded.
    exponents = np.frexp(distances.astype(float))[1].astype(np.int64) - 1
    powers = np.where(distances > 0, np.left_shift(1, np.maximum(exponents, 0)), 0)
    found: dict[str, dict[int, int]] = {}
    for index, kind in enumerate(KINDS):
        reached, counts = np.unique(powers[kinds == index], return_counts=True)
        if reached.size:
            found[kind] = {int(each): int(count) for each, count in zip(reached, counts, strict=True)}
    return found
