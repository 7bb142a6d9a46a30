"""Combines the readings of parts that ran at the same time. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from fslab.units import format_duration
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
    depths = [each.depth for each in readings if each.depth is not None and each.depth.asked > 1]
    return Reading(
        metrics={**named("metrics"), "overlap": None if overlap is None else 100 * overlap},
        latencies=named("latencies"),
        read_bytes=_sum(each.read_bytes for each in readings),
        written_bytes=_sum(each.written_bytes for each in readings),
        measured_s=longest or None,
        parts_s={
            f"{name} {what}".strip(): taken
            for name, each in parts.items()
            for what, taken in _times(each).items()
        },
        direct=all(each.direct for each in readings),
        # Parts have different numbers of rounds: together, they use the files of all rounds once.
        working_set_bytes=_sum(
            None if each.working_set_bytes is None else each.working_set_bytes * each.rounds
            for each in readings
        ),
        flushed=all(wrote) if wrote else None,
        zeros=any(each.zeros for each in readings),
        repeats=any(each.repeats for each in readings),
        # The part that is furthest from what was asked decides.
        passes=max((each.passes for each in readings if each.passes is not None), default=None),
        depth=min(depths, key=lambda depth: depth.at_most / depth.asked, default=None),
        queue_in_tool=any(each.queue_in_tool for each in readings),
        rates=tuple(
            Rate(what=f"{name} {rate.what}", interval_s=rate.interval_s, values=rate.values)
            for name, each in parts.items()
            for rate in each.rates
        ),
        errors=named("errors"),
        wrong=named("wrong"),
        messages=(
            *(f"{name}: {message}" for name, each in parts.items() for message in each.messages),
            *(
                f"part '{name}' ended after {format_duration(seconds[name])}, but the longest part ran for "
                f"{format_duration(longest)}"
                for name in short
            ),
        ),
        promises_broken=tuple(
            f"{name}: {promise}" for name, each in parts.items() for promise in each.promises_broken
        ),
        drops=sum(each.drops for each in readings),
        mounts_damaged=any(each.mounts_damaged for each in readings),
        disk_fails=any(each.disk_fails for each in readings),
    )


def _times(part: Reading) -> Mapping[str, float]:
    """Return the time of each operation of a part, or its only one under an empty name."""
    return part.parts_s or ({} if part.measured_s is None else {"": part.measured_s})


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
