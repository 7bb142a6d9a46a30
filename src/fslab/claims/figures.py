"""Units of figures that people write and print, and which metric of a workload a name means. Pure."""

import re

from fslab.cell import WorkloadSpec
from fslab.record import Metric
from fslab.units import Direction, Unit
from fslab.workloads import parsed_if_known

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(.*)")
_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
# What is written after a number, and what one of it is in the unit that a metric is kept in.
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
# Units that a publication prints, beside those above.
_PRINTED = {"1/s": 1.0, "files/s": 1.0, "ops/s": 1.0, "IOPS": 1.0}


def in_unit(text: str, unit: Unit) -> float:
    """``4us`` in the unit of a metric; ValueError says what can be written there."""
    match = _NUMBER.fullmatch(text)
    known = _WRITTEN[unit]
    if match is None or match[2] not in known:
        units = ", ".join(name for name in known if name) or "none"
        raise ValueError(f"'{text}' is no figure in {unit.value}: units to write are {units}")
    return float(match[1]) * known[match[2]]


def printed(value: float, unit: str) -> float:
    """A printed figure in the unit that its metric is kept in; ValueError for a unit that is not known."""
    for known in (_PRINTED, *_WRITTEN.values()):
        if unit and unit in known:
            return value * known[unit]
    raise ValueError(f"no unit '{unit}'")


def metrics(workload: WorkloadSpec) -> tuple[Metric, ...]:
    """What a workload yields, the headline first; empty if this program does not know it any more."""
    known = parsed_if_known(workload)
    return known.metrics() if known else ()


def metric(workload: WorkloadSpec, name: str | None) -> Metric | None:
    """The metric of this name, or the first whose name ends with it; the first of all where none is asked for."""
    known = metrics(workload)
    if name is None:
        return known[0] if known else None
    for found in known:
        if found.name == name:
            return found
    return next((found for found in known if found.name.endswith(f"_{name}")), None)


def sign(better: Direction) -> int:
    """1 where a larger figure is better or neither is, −1 where a smaller one is."""
    return -1 if better is Direction.LOWER else 1
