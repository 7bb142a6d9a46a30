"""Scales amounts of work: sizes, counts and times, rounded to values that tools accept, with minimum values. Pure.

Each workload and each medium declares which of its keys are amounts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fslab.cell import Frozen, Scalar
from fslab.units import SIZE_SUFFIXES, parse_duration, parse_size, shown_size

_KIB, _MIB = SIZE_SUFFIXES["k"], SIZE_SUFFIXES["m"]
_PAGE = 4 * _KIB
_WHOLE_MIB_FROM = 16 * _MIB
# A value that exceeds its share by more than this factor is at its minimum; a smaller excess is rounding.
_TOLERANCE = 1.4


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaledAmount:
    """A scaled amount. ``written``, ``value``: before and after, as a study would contain them; ``written`` can be a
    default. ``share``: the ratio of the scaled amount to the original one."""

    written: Scalar
    value: Scalar
    share: float


Changes = Mapping[str, ScaledAmount]


class Scaled(Frozen):
    """An amount of a study that a scale changed. ``entry``: such as ``workloads.dd-write``. ``floor``: it is at its
    minimum."""

    entry: str
    key: str
    written: str
    used: str
    floor: bool


def on_floor(change: ScaledAmount, factor: float) -> bool:
    """Return whether the amount is at its minimum, that is clearly more than its share."""
    return change.share > factor * _TOLERANCE


def size(written: str | int, factor: float, *, least_bytes: int = 1, unit_bytes: int = 1) -> ScaledAmount:
    """Scale a size to whole pages, or whole MiB from 16 MiB on, and to a multiple of ``unit_bytes``.

    The result is at least ``least_bytes``, or the written size if that is smaller. If ``unit_bytes`` does not divide
    the step, the size is rounded up. If several such units apply to one amount, the largest result is a multiple of
    each unit (powers of two).
    """
    before = parse_size(written)
    wanted = max(before * factor, min(least_bytes, before))
    grain = _MIB if wanted >= _WHOLE_MIB_FROM else _PAGE if wanted >= _PAGE else 1
    fitted = math.ceil if grain % unit_bytes else round
    grain = math.lcm(grain, unit_bytes)
    after = max(fitted(wanted / grain), 1) * grain
    if after < min(least_bytes, before):
        after += grain
    return ScaledAmount(written=written, value=shown_size(after), share=after / before if before else 1.0)


def count(written: int, factor: float, *, least: int = 1, unit: int = 1) -> ScaledAmount:
    """Scale a count to a multiple of ``unit``; at least ``least``, or the written count if that is smaller."""
    wanted = max(written * factor, min(least, written))
    after = max(round(wanted / unit), 1) * unit
    return ScaledAmount(written=written, value=after, share=after / written if written else 1.0)


def duration(
    written: str | float, factor: float, *, least_s: float = 1.0, whole_s: bool = False
) -> ScaledAmount:
    """Scale a time to whole milliseconds, or whole seconds; at least ``least_s``, or the written time if smaller."""
    before = parse_duration(written)
    wanted = max(before * factor, min(least_s, before))
    if whole_s:
        after = max(round(wanted), 1)
        return ScaledAmount(written=written, value=after, share=after / before)
    milliseconds = max(round(wanted * 1000), 1)
    value = f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
    return ScaledAmount(written=written, value=value, share=milliseconds / 1000 / before)


def number(written: float, factor: float) -> ScaledAmount:
    """Scale any number, to four significant digits."""
    after = float(f"{written * factor:.4g}")
    return ScaledAmount(written=written, value=after, share=after / written)
