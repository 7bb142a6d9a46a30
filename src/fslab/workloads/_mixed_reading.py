"""Combines the readings of parts that ran at the same time. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from fslab.units import format_duration
from fslab.workloads import Reading, ToolOutput, total

_OF_EACH = ("metrics", "latencies", "errors", "wrong")
_OF_ANY = ("zeros", "repeats", "queue_in_tool", "mounts_damaged", "disk_fails")
_SUMS = ("read_bytes", "written_bytes", "drops")
STREAMS = ("stdout", "stderr")
_Figure = TypeVar("_Figure")
_ALONE = 0.9  # a part that ran for a smaller share of the time left the others without its load for too long


def output_of(name: str, output: ToolOutput, seconds: Mapping[str, float]) -> ToolOutput:
    """Return the output of one part, from the output of all parts."""
    own = {key.partition("/")[2]: text for key, text in output.files.items() if key.startswith(f"{name}/")}
    stdout, stderr = (own.pop(stream, "") for stream in STREAMS)
    figures = output.figures and {
        key.removeprefix(f"{name}_"): value
        for key, value in output.figures.items()
        if key.startswith(f"{name}_")
    }
    return ToolOutput(
        stdout=stdout, stderr=stderr, files=own, duration_s=seconds.get(name, output.duration_s), figures=figures,
    )  # fmt: skip


def combined(parts: Mapping[str, Reading], seconds: Mapping[str, float]) -> Reading:
    """Return one reading: the facts of all parts together, and the figures of each under its name."""
    readings = list(parts.values())
    longest = max(seconds.values(), default=0.0)
    overlap = 100 * min(seconds.values()) / longest if longest else None
    wrote = [each.flushed for each in readings if each.flushed is not None]
    asked = [each.asked_s for each in readings]
    depths = [each.depth for each in readings if each.depth is not None and each.depth.asked > 1]
    rates = ((name, rate) for name, each in parts.items() for rate in each.rates)
    together: dict[str, Any] = {
        **{fact: _named(parts, attrgetter(fact)) for fact in _OF_EACH},
        **{fact: any(map(attrgetter(fact), readings)) for fact in _OF_ANY},
        **{fact: total(map(attrgetter(fact), readings)) for fact in _SUMS},
    }
    together["metrics"]["overlap"] = overlap
    return Reading(
        **together,
        measured_s=longest or None,
        # With a set amount of work in one of them, the time is a result.
        asked_s=None if None in asked else max(filter(None, asked), default=None),
        parts_s=_named(parts, _times, " "),
        direct=all(each.direct for each in readings),
        working_set_bytes=total(map(_working_set, readings)),
        flushed=all(wrote) if wrote else None,
        # The part that is furthest from what was asked decides.
        passes=max((each.passes for each in readings if each.passes is not None), default=None),
        depth=min(depths, key=lambda depth: depth.at_most / depth.asked, default=None),
        rates=tuple(replace(rate, what=f"{name} {rate.what}") for name, rate in rates),
        messages=(*_lines(parts, "messages"), *_ended_early(seconds, longest)),
        promises_broken=_lines(parts, "promises_broken"),
    )


def _named(
    parts: Mapping[str, Reading], of: Callable[[Reading], Mapping[str, _Figure]], between: str = "_"
) -> dict[str, _Figure]:
    """Return the figures of all parts; the name of its part precedes that of each figure."""
    return {
        f"{name}{between}{key}".rstrip(): value
        for name, each in parts.items()
        for key, value in of(each).items()
    }


def _lines(parts: Mapping[str, Reading], fact: str) -> tuple[str, ...]:
    return tuple(f"{name}: {line}" for name, each in parts.items() for line in getattr(each, fact))


def _ended_early(seconds: Mapping[str, float], longest: float) -> Iterator[str]:
    """Yield a message for each part that left the others without its load for too long."""
    for name, each in seconds.items():
        if each < _ALONE * longest:
            yield (
                f"part '{name}' ended after {format_duration(each)}, but the longest part ran for "
                f"{format_duration(longest)}"
            )


def _working_set(part: Reading) -> int | None:
    """Return the bytes of all rounds: parts have different numbers of rounds, and use the files of each once."""
    return None if part.working_set_bytes is None else part.working_set_bytes * part.rounds


def _times(part: Reading) -> Mapping[str, float]:
    """Return the time of each operation of a part, or its only one under an empty name."""
    return part.parts_s or ({} if part.measured_s is None else {"": part.measured_s})
