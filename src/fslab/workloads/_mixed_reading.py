"""Combines the readings of parts that ran at the same time. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from fslab.validity.facts import Rate
from fslab.workloads import Reading, ToolOutput

STREAMS = ("stdout", "stderr")
_ALONE = 0.9  # a part that ran for a smaller share of the time left the others without its load for too long


def output_of(name: str, output: ToolOutput, seconds: Mapping[str, float]) -> ToolOutput:
    """Return the output of one part, from the output of all parts."""
    own = {key.partition("/")[2]: text for key, text in output.files.items() if key.startswith(f"{name}/")}
    stdout, stderr = (own.pop(stream, "") for stream in STREAMS)
    return ToolOutput(
        stdout=stdout, stderr=stderr, files=own, duration_s=seconds.get(name, output.duration_s)
    )


def combined(parts: Mapping[str, Reading], seconds: Mapping[str, float]) -> Reading:
    """Return one reading: the facts of all parts together, and the figures of each under its name."""
    readings = list(parts.values())
    longest = max(seconds.values(), default=0.0)
    overlap = min(seconds.values()) / longest if longest else None

    def named(what: str) -> dict[str, Any]:
        return {
            f"{name}_{key}": value
            for name, each in parts.items()
            for key, value in getattr(each, what).items()
        }

    short = [name for name, each in seconds.items() if each < _ALONE * longest]
    wrote = [each.flushed for each in readings if each.flushed is not None]
    return Reading(
        metrics={**named("metrics"), "overlap": None if overlap is None else 100 * overlap},
        latencies=named("latencies"),
        read_bytes=_sum(each.read_bytes for each in readings),
        written_bytes=_sum(each.written_bytes for each in readings),
        measured_s=longest or None,
        direct=all(each.direct for each in readings),
        working_set_bytes=_sum(each.working_set_bytes for each in readings),
        flushed=all(wrote) if wrote else None,
        rates=tuple(
            Rate(what=f"{name} {rate.what}", interval_s=rate.interval_s, values=rate.values)
            for name, each in parts.items()
            for rate in each.rates
        ),
        errors=named("errors"),
        wrong=named("wrong"),
        messages=(
            *(f"{name}: {message}" for name, each in parts.items() for message in each.messages),
            *(f"part '{name}' ran for only {seconds[name]:.1f} s of {longest:.1f} s" for name in short),
        ),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
