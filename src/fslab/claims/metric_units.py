"""Units of written and printed figures, and the metric of a workload that a name stands for. Pure."""

from math import inf

from fslab.analysis.workload_groups import all_metrics
from fslab.cell import WorkloadSpec
from fslab.claims.language import Range, parted
from fslab.claims.parts import Bounds
from fslab.trial_record import Metric
from fslab.units import Direction, Unit

_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
# Units that can follow a number, with their size in the unit in which a metric is stored.
_WRITTEN: dict[Unit, dict[str, float]] = {
    Unit.BYTES_PER_SECOND: {
        "B/s": 1.0, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9,
        "KiB/s": 1024.0, "MiB/s": 1024.0**2, "GiB/s": 1024.0**3,
    },
    Unit.NANOSECONDS: _TIMES,
    Unit.SECONDS: {name: ns / 1e9 for name, ns in _TIMES.items()},
    Unit.PERCENT: {"%": 1.0, "": 1.0},
    Unit.BYTES: {"": 1.0, "k": 1024.0, "m": 1024.0**2, "g": 1024.0**3},
    **dict.fromkeys((Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND), _SI),
    **dict.fromkeys((Unit.RATIO, Unit.COUNT), _SI),
}  # fmt: skip
# Further units that can occur in a publication.
_PRINTED = {"1/s": 1.0, "files/s": 1.0, "ops/s": 1.0, "IOPS": 1.0}


def in_unit(text: str, unit: Unit) -> float:
    """Convert text such as ``4us`` to the unit of a metric. Raises ValueError with the units that are allowed."""
    (number, written), known = parted(text), _WRITTEN[unit]
    if written not in known:
        units = ", ".join(name for name in known if name) or "none"
        raise ValueError(f"'{text}' is not a figure in {unit.value}; allowed units: {units}")
    return number * known[written]


def bounds(written: Range, unit: Unit | None = None) -> Bounds:
    """Return the bounds of a figure in a unit; without ``unit``, of a ratio.

    Raises ValueError for another unit, and if there is nothing between the ends.
    """
    wider = 1 + written.within
    low = 0.0 if written.low is None else in_unit(written.low, unit or Unit.RATIO) / wider
    high = inf if written.high is None else in_unit(written.high, unit or Unit.RATIO) * wider
    if low >= high:
        raise ValueError(f"'{written}' is empty: write the smaller value first")
    return Bounds(low=low, high=high, strict=written.strict, shown=str(written), of_figure=unit is not None)


def printed(value: float, unit: str, stored_in: Unit | None = None) -> float:
    """Convert a printed figure to the unit in which its metric is stored. Raises ValueError for an unknown unit.

    Without ``stored_in``, for a workload that this version does not know, times become nanoseconds.
    """
    own = {} if stored_in is None else _WRITTEN[stored_in]
    for known in (own, _PRINTED, *_WRITTEN.values()):
        if unit and unit in known:
            return value * known[unit]
    raise ValueError(f"unknown unit '{unit}'")


def metric(workload: WorkloadSpec, name: str | None) -> Metric | None:
    """Return the metric of this name, or else the first whose name ends with it; without ``name``, the first of all."""
    known = all_metrics(workload)
    if name is None:
        return known[0] if known else None
    exact = (found for found in known if found.name == name)
    return next(exact, None) or next((found for found in known if found.name.endswith(f"_{name}")), None)


def sign(better: Direction) -> int:
    return -1 if better is Direction.LOWER else 1
