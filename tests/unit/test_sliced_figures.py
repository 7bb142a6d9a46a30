"""Tests of the figures of tools that were frozen in between: as if they had not been."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from fslab.campaign.sliced_figures import slice_percentiles, thawed
from fslab.campaign.time_slices import Timeline
from fslab.trial_record import Metric
from fslab.units import Direction, Unit
from fslab.workloads import Reading

# From 10 s on it runs for 1 s of every 4 s: 12 s by its own clock, 3 s in truth.
LINE = Timeline(worked_s=10.0, ended_s=22.0, ran=((10.0, 11.0), (14.0, 15.0), (18.0, 19.0), (22.0, 22.0)))
METRICS = (
    Metric(name="read_iops", unit=Unit.IOPS),
    Metric(name="read_lat_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    Metric(name="read_clat_p50", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    Metric(name="read_clat_p99_9", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    Metric(name="read_clat_max", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    Metric(name="elapsed", unit=Unit.SECONDS, better=Direction.LOWER),
    Metric(name="cpu_user", unit=Unit.PERCENT, better=Direction.NEITHER),
    Metric(name="depth", unit=Unit.COUNT, better=Direction.NEITHER),
)


def reading(**values: float | None) -> Reading:
    return Reading(metrics=values, measured_s=12.0, asked_s=3.0)


def test_rates_and_durations_lose_the_frozen_time() -> None:
    found = thawed(reading(read_iops=1000.0, elapsed=12.0, cpu_user=10.0, depth=4.0), METRICS, LINE)
    assert found.metrics == {"read_iops": 4000.0, "elapsed": 3.0, "cpu_user": 40.0, "depth": 4.0}
    assert found.measured_s == 3.0
    assert found.sliced


def test_a_mean_latency_loses_the_time_of_requests_in_flight_at_a_freeze() -> None:
    """One request at a time: 3 s of work in 30 requests are 0.1 s each. Three of them also waited
    through a freeze, so the tool reports (3 s + 9 s) / 30 on average."""
    found = thawed(reading(read_iops=2.5, read_lat_mean=0.4e9), METRICS, LINE)
    assert found.metrics["read_lat_mean"] == pytest.approx(0.1e9)


def test_a_mean_latency_is_unknown_if_it_is_chance_how_many_freezes_hit_a_request() -> None:
    """Buffered writes take 2 % of the time, fsync the rest. Whether one of three freezes hits a write is chance: it
    adds 3 s to the sum of 1000 latencies of 60 µs."""
    metrics = [
        Metric(name="write_iops", unit=Unit.IOPS),
        Metric(name="write_lat_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER),
        Metric(name="fsync_mean", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    ]
    means = {"write_lat_mean": 60e3, "fsync_mean": 11.94e6}
    each = replace(reading(write_iops=1000 / 12, **means), counts={"fsync": 1000})
    found = thawed(each, metrics, LINE).metrics
    assert found["write_lat_mean"] is None
    assert found["fsync_mean"] == pytest.approx(2.985e6)
    # One fsync for 64 writes: most rounds have no freeze in one, and would report a third of its latency or less.
    rare = replace(each, counts={"fsync": 16})
    assert thawed(rare, metrics, LINE).metrics["fsync_mean"] is None
    assert thawed(replace(each, counts={}), metrics, LINE).metrics["fsync_mean"] is None


def test_percentiles_stay_only_where_few_requests_were_interrupted() -> None:
    found = thawed(reading(read_clat_p50=50e3, read_clat_p99_9=2e6, read_clat_max=4e9), METRICS, LINE)
    assert found.metrics == {"read_clat_p50": 50e3, "read_clat_p99_9": None, "read_clat_max": None}


def test_without_a_freeze_nothing_changes() -> None:
    whole = Timeline(worked_s=10.0, ended_s=22.0, ran=((9.0, 22.5),))
    values = {"read_iops": 1000.0, "read_lat_mean": 1e6, "read_clat_p99_9": 2e6, "read_clat_max": 3e6}
    assert thawed(reading(**values), METRICS, whole).metrics == values


def test_each_part_has_its_own_window() -> None:
    """The second part ran without a break: its rate is what the tool reports."""
    metrics = (
        Metric(name="create_rate", unit=Unit.FILES_PER_SECOND),
        Metric(name="read_rate", unit=Unit.FILES_PER_SECOND),
        Metric(name="read_cpu", unit=Unit.NANOSECONDS),
    )
    found = thawed(
        Reading(
            metrics={"create_rate": 100.0, "read_rate": 100.0, "read_cpu": 500.0},
            measured_s=5.0,
            parts_s={"create": 4.0, "read": 1.0},
            windows={"create_rate": (10.0, 14.0), "read_rate": (14.0, 15.0)},
            part_windows={"create": (10.0, 14.0), "read": (14.0, 15.0)},
        ),
        metrics,
        LINE,
    )
    assert found.metrics == {"create_rate": 400.0, "read_rate": 100.0, "read_cpu": 500.0}
    assert found.parts_s == {"create": 1.0, "read": 1.0}
    assert found.measured_s == 2.0


def test_a_part_that_the_tool_marks_loses_the_freezes_between_its_marks() -> None:
    """In the second slice it writes that the part begins, in the third that it has ended: one freeze of 3 s lies in
    between. The part took 3.5 s by its clock: 0.5 s in truth."""
    line = replace(LINE, said=(5, 30, 40, 40))
    metrics = (
        Metric(name="write_bandwidth", unit=Unit.BYTES_PER_SECOND),
        Metric(name="write_latency_max", unit=Unit.NANOSECONDS, better=Direction.LOWER),
    )
    values = {"write_bandwidth": 100.0, "write_latency_max": 3.1e9}
    marked = Reading(metrics=values, measured_s=3.5, parts_s={"write": 3.5}, marks={"write": (20, 35)})
    found = thawed(marked, metrics, line)
    assert found.metrics == {"write_bandwidth": 700.0, "write_latency_max": None}
    assert found.parts_s == {"write": 0.5}
    assert found.measured_s == 0.5
    alone = thawed(replace(marked, marks={"write": (20, 29)}), metrics, line)
    assert alone.metrics == values
    assert alone.measured_s == 3.5


def test_what_ran_before_the_first_freeze_ran_together_with_the_others() -> None:
    """All tools start at the same time. One that only computes is not seen to work, and one can end unseen."""
    cpu = (Metric(name="time", unit=Unit.SECONDS, better=Direction.LOWER),)
    ended = Timeline(worked_s=10.0, ended_s=11.0, ran=((10.0, 11.0),))
    assert thawed(Reading(metrics={"time": 1.0}, measured_s=1.0), cpu, ended).together_share == 1.0
    assert thawed(reading(elapsed=12.0), METRICS, LINE).together_share == pytest.approx(1 / 3)
    windowed = Reading(metrics={"time": 4.0}, measured_s=4.0, windows={"time": (14.0, 18.0)})
    assert thawed(windowed, cpu, LINE).together_share == 0.0
    marked = Reading(metrics={"a_x": 1.0}, measured_s=5.0, parts_s={"a": 5.0}, marks={"a": (3, 10)})
    rate = (Metric(name="a_x", unit=Unit.IOPS),)
    assert thawed(marked, rate, replace(LINE, said=(5, 30, 40, 40))).together_share == pytest.approx(1 / 2)
    assert thawed(marked, rate, replace(LINE, said=(2, 30, 40, 40))).together_share == 0.0


def test_a_run_that_is_measured_whole_has_its_start() -> None:
    """It ran for 1 s before it was seen to do I/O: 100 files in 4 s of its own time, 13 s by the clock."""
    line = replace(LINE, ran=((9.0, 11.0), *LINE.ran[1:]))
    metrics = (Metric(name="create_rate", unit=Unit.FILES_PER_SECOND),)
    found = thawed(Reading(metrics={"create_rate": 100 / 13}, measured_s=13.0, whole_run=True), metrics, line)
    assert found.metrics["create_rate"] == pytest.approx(25.0)


def test_a_mean_latency_of_reads_and_writes_is_that_of_all_in_flight() -> None:
    both = (Metric(name=f"{direction}_iops", unit=Unit.IOPS) for direction in ("read", "write"))
    metrics = (*both, Metric(name="latency_mean", unit=Unit.NANOSECONDS))
    found = thawed(reading(read_iops=2.0, write_iops=0.5, latency_mean=0.4e9), metrics, LINE)
    assert found.metrics["latency_mean"] == pytest.approx(0.1e9)


def test_a_tool_that_never_ran_in_its_window_has_no_figure() -> None:
    idle = Timeline(worked_s=11.5, ended_s=13.0, ran=((10.0, 11.0), (14.0, 15.0)))
    found = thawed(Reading(metrics={"read_iops": 5.0}, measured_s=1.0), METRICS, idle)
    assert found.metrics == {"read_iops": None}


def test_work_before_the_first_io_was_seen_is_in_the_time_too() -> None:
    """dd measures 2.5 s, which end with it: from 0.5 s on. Its I/O is seen at 1.1 s."""
    seen_late = Timeline(worked_s=1.1, ended_s=3.0, ran=((0.0, 1.2), (2.5, 3.0)))
    work = Reading(metrics={"read_iops": 120.0}, measured_s=2.5)  # 300 requests
    found = thawed(work, METRICS, seen_late)
    assert found.measured_s == pytest.approx(1.2)
    assert found.metrics["read_iops"] == pytest.approx(300 / 1.2)


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
    found = slice_percentiles(operations, PERCENTS, timeline)
    for name, percent in PERCENTS.items():
        assert found[name] == pytest.approx(nearest_rank(latencies_s, percent), rel=error), name


def test_without_a_freeze_they_are_the_nearest_ranks() -> None:
    latencies_s = [number / 1e6 for number in range(1, 1001)]
    ends_s = [number / 1000 for number in range(1, 1001)]
    whole = Timeline(worked_s=0.0, ended_s=2.0, ran=((0.0, 2.0),))
    found = slice_percentiles(
        zip(ends_s, latencies_s, strict=True), {"p50": 50.0, "p99": 99.0, "p100": 100.0}, whole
    )
    assert found["p50"] == pytest.approx(500e3, rel=0.01)
    assert found["p99"] == pytest.approx(990e3, rel=0.01)
    assert found["p100"] is None
    assert slice_percentiles([], {"p50": 50.0}, whole) == {"p50": None}


def test_operations_outside_all_slices_are_in_the_time_before_or_after() -> None:
    line = Timeline(worked_s=1.0, ended_s=4.0, ran=((1.0, 2.0), (3.0, 4.0)))
    operations = [(0.5, 0.2), (1.5, 0.1), (2.5, 0.1), (3.5, 0.1), (9.0, 0.1)]
    found = slice_percentiles(operations, {"p50": 50.0}, line)["p50"]
    assert found is not None
    assert found <= 0.1e9 * (1 + 1e-9)
