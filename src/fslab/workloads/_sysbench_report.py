"""Reads figures from the report of sysbench. Pure."""

import re
from itertools import accumulate

from fslab.errors import ToolOutputError

NS_PER_MS = 1e6
_BUCKET = re.compile(r"^ +(\d+\.\d+) \|\**\s+(\d+)$", re.MULTILINE)
PERCENTILE = 95
# The report is rounded to 10 µs, its histogram to 1 µs: below ten times that, two stacks would differ by rounding.
_LEAST_MAX_NS = 100_000
_LEAST_PERCENTILE_NS = 10_000


def figure(text: str, label: str) -> float:
    """Return the number after a label that is alone on its line of the report."""
    match = re.search(rf"^ *{re.escape(label)}: +([\d.]+)s?$", text, re.MULTILINE)
    if match is None:
        raise ToolOutputError(f"sysbench's output has no line '{label}'")
    return float(match[1])


def percentile_ns(text: str) -> float | None:
    """Return the percentile of the histogram, as sysbench takes it (sb_histogram.c); None if there is none, or rounding
    decides it."""
    buckets = [(float(value_ms) * NS_PER_MS, int(count)) for value_ms, count in _BUCKET.findall(text)]
    wanted = int(sum(count for _, count in buckets) * PERCENTILE / 100 + 0.5)
    seen = accumulate(count for _, count in buckets)
    found = next(
        (value_ns for (value_ns, _), count in zip(buckets, seen, strict=True) if count >= wanted), 0.0
    )
    return found if found >= _LEAST_PERCENTILE_NS else None


def longest_ns(text: str) -> float | None:
    """Return the longest latency; None if rounding decides it."""
    found = figure(text, "max") * NS_PER_MS
    return found if found >= _LEAST_MAX_NS else None
