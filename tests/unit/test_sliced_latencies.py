"""Tests of the percentiles of operations in slices, against the operations as they were without slices."""

from __future__ import annotations

from random import Random

import pytest

from fslab.campaign.sliced_latencies import percentiles
from fslab.campaign.time_slices import Timeline

SLICE_S, OTHERS_S, WAKE_UP_S = 0.05, 0.15, 0.004
PERCENTS = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def sliced(latencies_s: list[float]) -> tuple[list[tuple[float, float]], Timeline]:
    """Return operations, one after the other, as a tool sees them that is frozen after every ``SLICE_S``. One that is
    interrupted takes longer by a wake-up."""
    operations, at_s, left_s = [], 0.0, SLICE_S
    ran, began_s = [], 0.0
    for latency_s in latencies_s:
        start_s, todo_s = at_s, latency_s
        while todo_s > left_s:
            at_s += left_s
            ran.append((began_s, at_s))
            at_s += OTHERS_S
            began_s, todo_s, left_s = at_s, todo_s - left_s + WAKE_UP_S, SLICE_S
        at_s, left_s = at_s + todo_s, left_s - todo_s
        operations.append((at_s, at_s - start_s))
    ran.append((began_s, at_s))
    return operations, Timeline(worked_s=0.0, ended_s=at_s, ran=tuple(ran))


def nearest_rank(latencies_s: list[float], percent: float) -> float:
    return sorted(latencies_s)[int(len(latencies_s) * percent / 100)] * 1e9


@pytest.mark.parametrize(("slowest_s", "error"), [(0.008, 0.03), (0.1, 0.12)])
def test_percentiles_are_those_without_slices(slowest_s: float, error: float) -> None:
    """One operation in 25 is interrupted: without a correction, p99 would be the time of these. With one in fifty that
    takes 8 ms, or twice as long as a slice: that has one or two wake-ups in it."""
    random = Random(5)
    usual = [random.uniform(0.001, 0.003) for _ in range(50_000)]
    latencies_s = [slowest_s * random.uniform(0.5, 1.0) if random.random() < 0.02 else each for each in usual]
    operations, timeline = sliced(latencies_s)
    found = percentiles(operations, PERCENTS, timeline)
    for name, percent in PERCENTS.items():
        assert found[name] == pytest.approx(nearest_rank(latencies_s, percent), rel=error), name


def test_without_a_freeze_they_are_the_nearest_ranks() -> None:
    latencies_s = [number / 1e6 for number in range(1, 1001)]
    ends_s = [number / 1000 for number in range(1, 1001)]
    whole = Timeline(worked_s=0.0, ended_s=2.0, ran=((0.0, 2.0),))
    found = percentiles(
        zip(ends_s, latencies_s, strict=True), {"p50": 50.0, "p99": 99.0, "p100": 100.0}, whole
    )
    assert found["p50"] == pytest.approx(500e3, rel=0.01)
    assert found["p99"] == pytest.approx(990e3, rel=0.01)
    assert found["p100"] is None
    assert percentiles([], {"p50": 50.0}, whole) == {"p50": None}


def test_operations_outside_all_slices_are_in_the_time_before_or_after() -> None:
    line = Timeline(worked_s=1.0, ended_s=4.0, ran=((1.0, 2.0), (3.0, 4.0)))
    operations = [(0.5, 0.2), (1.5, 0.1), (2.5, 0.1), (3.5, 0.1), (9.0, 0.1)]
    found = percentiles(operations, {"p50": 50.0}, line)["p50"]
    assert found is not None
    assert found <= 0.1e9 * (1 + 1e-9)
