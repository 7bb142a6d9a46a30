"""Quantities with units: parse what people write (``4k``, ``1g``, ``10m``), print what people read.

Sizes are powers of 1024, as in fio and mkfs; rates are printed in powers of 1000, as in fio's own SI figures.
Pure functions; imports nothing of ours.
"""

from __future__ import annotations

import re
from enum import StrEnum

SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS_PER = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$", re.IGNORECASE)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|[smhd]?)", re.IGNORECASE)


class Unit(StrEnum):
    """The unit a stored value is in; prefixes are only for printing."""

    BYTES_PER_SECOND = "B/s"
    IOPS = "IOPS"
    FILES_PER_SECOND = "files/s"
    OPERATIONS_PER_SECOND = "ops/s"
    NANOSECONDS = "ns"
    SECONDS = "s"
    BYTES = "B"
    PERCENT = "%"
    COUNT = "count"
    RATIO = "ratio"


class Direction(StrEnum):
    """Which way a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


def parse_size(text: str | int) -> int:
    """Bytes from ``4k``, ``1.5g``, ``64MiB`` or a plain number; ValueError says what is accepted."""
    match = _SIZE.match(str(text))
    if match is None:
        raise ValueError(f"'{text}' is not a size: write a number with k, m, g or t, such as 4k or 1g")
    size = float(match[1]) * SIZE_SUFFIXES[match[2].lower()]
    if size != int(size):
        raise ValueError(f"'{text}' is not a whole number of bytes")
    return int(size)


def parse_duration(text: str | float) -> float:
    """Seconds from ``10m``, ``1h30m``, ``700ms`` or a plain number of seconds; ValueError otherwise."""
    rest = str(text).strip()
    parts = _DURATION_PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise ValueError(f"'{text}' is not a duration: write 30s, 10m, 1h30m or 700ms")
    return sum(float(number) * SECONDS_PER[unit.lower()] for number, unit in parts)


def format_size(size_bytes: float) -> str:
    """``1.5 GiB``: powers of 1024, three significant digits."""
    value = float(size_bytes)
    for prefix in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if abs(value) < 1024:
            return f"{_digits(value)} {prefix}B"
        value /= 1024
    return f"{_digits(value)} EiB"


def format_duration(seconds: float) -> str:
    """``850 ms``, ``12.3 s``, ``2 min 05 s``, ``1 h 12 min``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{_digits(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_value(value: float | None, unit: Unit) -> str:
    """A value as a person reads it: ``61.7k IOPS``, ``1.21 GB/s``, ``85.3 µs``; unknown is ``–``."""
    if value is None:
        return "–"
    match unit:
        case Unit.BYTES_PER_SECOND:
            scaled, prefix = _si(value)
            return f"{scaled} {prefix.upper() if prefix != 'k' else 'k'}B/s"
        case Unit.IOPS | Unit.FILES_PER_SECOND | Unit.OPERATIONS_PER_SECOND:
            scaled, prefix = _si(value)
            return f"{scaled}{prefix} {unit.value}"
        case Unit.NANOSECONDS:
            return _format_ns(value)
        case Unit.SECONDS:
            return format_duration(value)
        case Unit.BYTES:
            return format_size(value)
        case Unit.PERCENT:
            return f"{_digits(value)} %"
        case Unit.RATIO | Unit.COUNT:
            return _digits(value)


def _format_ns(value: float) -> str:
    for limit, divisor, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if abs(value) < limit:
            return f"{_digits(value / divisor)} {unit}"
    return f"{_digits(value / 1e9)} s"


def _si(value: float) -> tuple[str, str]:
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 999.5:
            return _digits(value), prefix
        value /= 1000
    return _digits(value), "T"


def _digits(value: float) -> str:
    """Three significant digits, never scientific; whole numbers without a point."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
