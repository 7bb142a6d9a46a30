"""Quantities with units: parse ``4k``, ``1g``, ``10m``; print ``1.5 GiB``, ``85.3 µs``.

Studies, options and claims have the same grammar for sizes (``parse_size``, ``Size``). Sizes are in powers of 1024, as
in fio and mkfs. Rates are printed in powers of 1000, as in fio's own SI figures. This module contains only pure
functions, and imports no other module of fslab.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS_PER = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "": 1.0,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SIZE_GRAMMAR = "write a number with k, m, g or t (powers of 1024), such as 4k"
_PLAIN_SIZE = re.compile(r"\d+[kmgt]?", re.IGNORECASE | re.ASCII)
_SIZE = re.compile(r" *(\d+(?:\.\d+)?) *(?:([kmgt])i?)?b? *", re.IGNORECASE | re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)((?:us|ms)(?:ec)?|[smhd]?)", re.IGNORECASE | re.ASCII)


class Unit(StrEnum):
    """The unit of a stored value. Prefixes are used only for printing."""

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


RATES = frozenset({Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND})


class Direction(StrEnum):
    """The preferred direction of a metric."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


LARGEST_BYTES = (1 << 63) - 1  # loff_t
LEAST_GUEST_BYTES = 8 << 20
LONGEST_S = 100 * 365 * 86400.0


def counted(count: int, noun: str) -> str:
    """Return ``1 trial`` or ``3 trials``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def metric_text(name: str) -> str:
    """Return the name of a metric for readers: ``read clat p99.9`` of ``read_clat_p99_9``, ``read IOPS`` of
    ``read_iops``."""
    spaced = re.sub(r"(p\d+)_(?=\d)", r"\1.", name).replace("_", " ")
    return re.sub(r"\b(iops|cpu)\b", lambda found: found[0].upper(), spaced)


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def first_of(names: Sequence[str], most: int, separator: str = ",") -> str:
    """Return the first ``most`` names and the number of the others: ``a, b and 3 more``; with ``;``: ``a; b; and 3
    more``."""
    more = len(names) - most
    told = f"{separator} ".join(names[:most])
    joint = " and" if separator == "," else f"{separator} and"
    return f"{told}{joint} {more} more" if more > 0 else told


def parse_size(text: str | int) -> int:
    """Return the bytes of ``4k``, ``4K``, ``4kb``, ``4KiB``, ``1.5g`` or a number. Raises ValueError otherwise."""
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"'{text}' is not a size: {_SIZE_GRAMMAR}")
    size = Decimal(match[1]) * SIZE_SUFFIXES[(match[2] or "").lower()]
    if size > LARGEST_BYTES:
        raise ValueError(f"'{str(text)[:40]}' is larger than the largest possible file or device (8 EiB)")
    if size != int(size):
        raise ValueError(f"'{text}' is not a whole number of bytes")
    return int(size)


def plain_size(text: object) -> str:
    """Return a size in a form that every tool reads alike: ``8k`` for ``8kb``, ``8KiB`` or 8192; ``64M`` for ``64M``.

    fio 3.33 reads ``1MiB`` as 1,000,000 bytes, and silently reads ``1.5m`` as ``1m``. Raises ValueError like
    ``parse_size``.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text} is not a size: {_SIZE_GRAMMAR}")  # noqa: TRY004 - for pydantic
    size_bytes = parse_size(str(text))
    return str(text).strip() if _PLAIN_SIZE.fullmatch(str(text).strip()) else shown_size(size_bytes)


def shown_size(size_bytes: int) -> str:
    """Return a size such as ``26m``, in the largest unit that gives a whole number."""
    for suffix in ("t", "g", "m", "k"):
        if size_bytes and size_bytes % SIZE_SUFFIXES[suffix] == 0:
            return f"{size_bytes // SIZE_SUFFIXES[suffix]}{suffix}"
    return str(size_bytes)


def _some_size(text: object) -> str:
    plain = plain_size(text)
    if not parse_size(plain):
        raise ValueError(f"'{text}' is not a size: it must be greater than zero")
    return plain


def guest_size(text: object) -> str:
    """Return the memory of a guest as ``plain_size`` does. Raises ValueError also for less than 8 MiB: no kernel works
    with that, so the unit is missing."""
    plain = plain_size(text)
    if parse_size(plain) < LEAST_GUEST_BYTES:
        size = format_size(parse_size(plain))
        raise ValueError(f"'{text}' is {size}, too little for a guest: write it with a unit, such as 512m")
    return plain


_SIZE_SCHEMA = WithJsonSchema({"title": "size", "type": "string"})
Size = Annotated[str, BeforeValidator(plain_size), _SIZE_SCHEMA]
SomeSize = Annotated[str, BeforeValidator(_some_size), _SIZE_SCHEMA]  # not 0
GuestSize = Annotated[str, BeforeValidator(guest_size), _SIZE_SCHEMA]


def parse_share(value: object) -> float:
    """Return ``5%`` or 0.05 as a fraction. Raises ValueError unless it is from 0.1 % to 50 %."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if isinstance(value, bool) or not 0.001 <= share <= 0.5:
        raise ValueError(f"'{value}' is not a share from 0.1% to 50%: write 5% or 0.05")
    return share


Share = Annotated[
    float, BeforeValidator(parse_share), WithJsonSchema({"title": "share", "type": ["string", "number"]})
]


def parse_duration(text: str | float) -> float:
    """Return the seconds of ``10m``, ``1h30m``, ``700ms`` or a plain number of seconds. Raises ValueError otherwise."""
    rest = str(text).strip()
    parts = _DURATION_PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise ValueError(f"'{text}' is not a duration: write 30s, 10m, 1h30m or 700ms")
    seconds = sum(float(number) * SECONDS_PER[unit.lower()] for number, unit in parts)
    if seconds > LONGEST_S:
        raise ValueError(f"'{rest[:40]}' is longer than 100 years")
    return seconds


def some_time(value: object) -> str:
    """Return a duration as text. Raises ValueError unless it is one, and longer than zero."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a duration is a number with s, m or h, such as 30s or 10m")  # noqa: TRY004 - for pydantic
    if not parse_duration(value):
        raise ValueError(f"'{value}' must be greater than zero")
    return str(value)


DURATION_SCHEMA = WithJsonSchema({"title": "duration", "type": ["string", "number"]})
SomeTime = Annotated[str, BeforeValidator(some_time), DURATION_SCHEMA]


def format_size(size_bytes: float) -> str:
    """Return a size such as ``1.5 GiB``: powers of 1024, three significant digits."""
    value = float(size_bytes)
    for prefix in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if abs(value) < 1023.5:
            return f"{_digits(value)} {prefix}B"
        value /= 1024
    return f"{_digits(value)} EiB"


def format_duration(seconds: float) -> str:
    """Return a duration such as ``850 ms``, ``12.3 s``, ``2 min 05 s`` or ``1 h 12 min``."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{_digits(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


_LIKE_ONE = 5e-5  # a ratio that is nearer to 1 is shown as 1
_NOTHING_KNOWN = 1e6  # how many times as large the high end of an interval is as its low one


def ratio_text(*ratios: float) -> tuple[str, ...]:
    """Return ratios with few decimals, but with two significant digits, and enough that a ratio other than 1 does not
    look like 1. The ends of an interval that says nothing are ``<0.001`` and ``>1000``."""
    smallest = min(ratios)
    if says_nothing(smallest, max(ratios)):
        return tuple(_coarse(ratio) for ratio in ratios)
    decimals = 0 if smallest >= 99.5 else 1 if smallest >= 9.995 else 2
    while decimals < 6 and 0 < smallest * 10**decimals < 9.95:
        decimals += 1
    others = [ratio for ratio in ratios if abs(ratio - 1) >= _LIKE_ONE]
    while any(float(f"{ratio:.{decimals}f}") == 1 for ratio in others):
        decimals += 1
    return tuple(f"{ratio:.{decimals}f}" for ratio in ratios)


def says_nothing(low: float, high: float) -> bool:
    """Return whether an interval of a ratio is so wide that its ends are only distracting."""
    return 0 < low * _NOTHING_KNOWN < high


def _coarse(ratio: float) -> str:
    return "<0.001" if ratio < 0.001 else ">1000" if ratio > 1000 else f"{ratio:.2g}"


def format_value(value: float | None, unit: Unit) -> str:
    """Return a value for people, such as ``61.7k IOPS``, ``1.21 GB/s`` or ``85.3 µs``; ``–`` if it is unknown."""
    if value is None:
        return "–"
    match unit:
        case Unit.BYTES_PER_SECOND:
            return _in_best(value, [(1000.0**n, f" {prefix}B/s") for n, prefix in enumerate(_SI)])
        case Unit.IOPS | Unit.FILES_PER_SECOND | Unit.OPERATIONS_PER_SECOND:
            return _in_best(value, [(1000.0**n, f"{prefix} {unit.value}") for n, prefix in enumerate(_SI)])
        case Unit.NANOSECONDS:
            return _in_best(value, _TIMES)
        case Unit.SECONDS:
            return _in_best(value * 1e9, _TIMES) if abs(value) < 1 else format_duration(value)
        case Unit.BYTES:
            return format_size(value)
        case Unit.PERCENT:
            return f"{_digits(value)} %"
        case Unit.RATIO | Unit.COUNT:
            return _digits(value)


_SI = ("", "k", "M", "G", "T")
_TIMES = ((1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s"))
_THOUSANDS = ("", "thousand ", "million ", "billion ", "trillion ")
_SCALES: dict[Unit, list[tuple[float, str]]] = {
    Unit.BYTES_PER_SECOND: [(1000.0**n, f"{prefix}B/s") for n, prefix in enumerate(("", "k", "M", "G", "T"))],
    Unit.BYTES: [(1024.0**n, f"{prefix}B") for n, prefix in enumerate(("", "Ki", "Mi", "Gi", "Ti"))],
    Unit.NANOSECONDS: [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
    Unit.SECONDS: [(1e-3, "ms"), (1.0, "s")],
    **{
        unit: [(1000.0**n, f"{word}{unit.value}") for n, word in enumerate(_THOUSANDS)]
        for unit in (Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND)
    },
    Unit.PERCENT: [(1.0, "%")],
}  # fmt: skip


def in_one_scale(values: Sequence[float], unit: Unit) -> tuple[list[str], str]:
    """Return values of one row as numbers, and their common unit, such as ``GB/s``; empty for a ratio or a count.

    The unit suits the median of the values.
    """
    middle = sorted(map(abs, values))[len(values) // 2] if values else 0.0
    scales = _SCALES.get(unit, [(1.0, "")])
    size, name = next((each for each in reversed(scales) if middle >= 0.9995 * each[0]), scales[0])
    return [_significant(value / size) for value in values], name


def _significant(value: float) -> str:
    """Return at least three significant digits, also of a number below 1, never in scientific notation."""
    return _digits(value) if abs(value) >= 0.995 or not value else f"{float(f'{value:.3g}'):.9f}".rstrip("0")


def _in_best(value: float, scales: Sequence[tuple[float, str]]) -> str:
    """Return a value in the smallest of the units, given from the smallest one on, in which it is below 1000."""
    size, name = next((each for each in scales if abs(value) < 999.5 * each[0]), scales[-1])
    return f"{_digits(value / size)}{name}"


def _digits(value: float) -> str:
    """Return three significant digits, never in scientific notation; whole numbers without a decimal point."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
