"""The order in which fio starts the jobs of a file (run_threads in its backend.c), and which run together. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fslab.units import parse_duration
from fslab.workloads import _fio_time


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What a job waits for.

    ``walled``: the end of all jobs that run, which also holds the jobs after it (``stonewall``). ``after``: the end of
    the job with this name (``wait_for``). ``delay_s``: this time from fio's own start; None if fio draws it at random.
    Until then, it holds no other job, and a wall does not wait for it. ``ramp_s``: how long it then runs before fio
    measures.
    """

    name: str
    walled: bool = False
    after: str | None = None
    delay_s: float | None = 0.0
    ramp_s: float = 0.0


def start_of(name: str, options: Mapping[str, str | None]) -> Start:
    """Return what the options of a job say about its start."""
    walled = "stonewall" in options and options["stonewall"] != "0"
    return Start(
        name=name,
        walled=walled,
        after=options.get("wait_for"),
        delay_s=_delay_s(options.get("startdelay")),
        ramp_s=_fio_time.ramp_s(options),
    )


def phases(starts: Sequence[Start]) -> tuple[int, ...]:
    """Return a number for each job, counted from 1. Jobs with the same number are measured from the same time on."""
    known: dict[tuple[object, ...], int] = {}
    walls, found = 0, []
    for index, start in enumerate(starts):
        walls += start.walled and index > 0
        key = (walls, start.after, start.delay_s, start.ramp_s, index if start.delay_s is None else None)
        found.append(known.setdefault(key, len(known) + 1))
    return tuple(found)


def spans(starts: Sequence[Start], durations_s: Sequence[float]) -> list[tuple[float, float]]:
    """Return when each job is measured, in seconds from fio's own start. ``durations_s``: without its ramp time."""
    found: dict[int, tuple[float, float]] = {}
    now = 0.0
    while True:
        for index in (index for index in range(len(starts)) if index not in found):
            start = starts[index]
            if (start.delay_s or 0.0) > now:
                continue
            if start.walled and any(end > now for _, end in found.values()):
                break
            if not _awaits(index, starts, found, now):
                begin = now + start.ramp_s
                found[index] = (begin, begin + durations_s[index])
        if len(found) == len(starts):
            return [found[index] for index in range(len(starts))]
        ends = (end for _, end in found.values())
        now = min(at for at in (*ends, *(start.delay_s or 0.0 for start in starts)) if at > now)


def _awaits(
    index: int, starts: Sequence[Start], found: Mapping[int, tuple[float, float]], now: float
) -> bool:
    """Return whether a job before this one that it waits for (``wait_for``) has not ended."""
    after = starts[index].after
    before = (place for place in range(index) if starts[place].name == after)
    return any(place not in found or found[place][1] > now for place in before)


def reported_spans(
    starts: Sequence[Start], reports: Sequence[Mapping[str, Any]], durations_s: Sequence[float]
) -> list[tuple[float, float]]:
    """Return when each job was measured, in seconds: as fio 3.35 and newer report it, else in the order of starts."""
    if not all("job_start" in report for report in reports):
        return spans(starts, durations_s)
    begins = [
        float(report["job_start"]) / 1000 + start.ramp_s
        for start, report in zip(starts, reports, strict=True)
    ]
    return [(begin, begin + seconds) for begin, seconds in zip(begins, durations_s, strict=True)]


def covered_s(found: Iterable[tuple[float, float]]) -> float:
    """Return the time in which at least one job ran."""
    total, last = 0.0, float("-inf")
    for begin, end in sorted(found):
        total += max(end - max(begin, last), 0.0)
        last = max(last, end)
    return total


def together_s(found: Sequence[tuple[float, float]]) -> float | None:
    """Return the time from the first start to the last end; None if at no time all of the jobs ran."""
    first, last = min(begin for begin, _ in found), max(end for _, end in found)
    if max(begin for begin, _ in found) >= min(end for _, end in found):
        return None
    return last - first


def _delay_s(written: str | None) -> float | None:
    if written is None:
        return 0.0
    try:
        return parse_duration(written)
    except ValueError:
        return None
