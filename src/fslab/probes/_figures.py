"""Differences of counters as values, shared by several probes. Reads nothing."""

from collections.abc import Mapping
from typing import Any

from fslab.trial_record import Value
from fslab.units import Unit


def grown(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    name: str,
    unit: Unit = Unit.COUNT,
    *,
    scale: float = 1,
) -> Value:
    """Return the growth of a counter; None if it is missing or was reset (by a new mount)."""
    first, last = before.get(name), after.get(name)
    if first is None or last is None or last < first:
        return Value(value=None, unit=unit)
    return Value(value=(last - first) * scale, unit=unit)
