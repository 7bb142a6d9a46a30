"""Tests of the loop that watches the speed of a CPU: what it says of a time, and how it ends."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.limits import LIMIT_S, wait_for
from tests.unit.claimed import cell, trials

from fslab.campaign.guest_run import STOOD_STILL, TOOL_BEGINS, TOOL_ENDS, RunSpeed, stood_still
from fslab.system import proc, process_marks
from fslab.system.cpu_speed import CpuSpeed
from fslab.trial_record import TrialRecord, Value
from fslab.units import Unit

_numbers = itertools.count()


@pytest.fixture
def mark() -> tuple[str, str]:
    """Return a mark that no other test has, in this process or another one."""
    return (process_marks.MARK, f"fslab-test-{os.getpid()}-{next(_numbers)}")


LAST = max(os.sched_getaffinity(0))


def known_at_last(speed: CpuSpeed, since_s: float) -> list[float]:
    """Return the rates since a moment, as soon as one is known. The loop starts when the machine lets it."""
    deadline = time.monotonic() + LIMIT_S
    while not (rates := speed.rates(since_s, time.monotonic())):
        assert time.monotonic() < deadline, "the loop does not run"
        time.sleep(0.05)
    return rates


def rests(speed: CpuSpeed) -> bool:
    """Return whether the loop did nothing for more than a part of a run."""
    now_s = time.monotonic()
    return speed.rates(now_s - 0.4, now_s) == []


def test_the_speed_of_a_time_is_known_and_the_loop_ends(mark: tuple[str, str]) -> None:
    with CpuSpeed(cpu=LAST, mark=mark) as speed:
        begun = time.monotonic()
        speed.resume()
        assert max(known_at_last(speed, begun)) > 0
        assert speed.rates(begun - 100, begun - 99) == []
        assert speed.is_alive()
        (loop,) = process_marks.marked_processes(mark[1])
        assert os.sched_getaffinity(loop) == {LAST}
    assert not process_marks.marked_processes(mark[1])
    assert not speed.is_alive()
    assert speed.rates(begun, time.monotonic()) == []


def test_parts_without_work_are_unknown(mark: tuple[str, str]) -> None:
    with CpuSpeed(cpu=LAST, mark=mark) as speed:
        begun = time.monotonic()
        speed.resume()
        known_at_last(speed, begun)
        speed.pause()

        def ends_unknown() -> bool:
            parts = speed.rates(begun, time.monotonic())
            return parts[-1] == 0 < max(parts)

        wait_for(ends_unknown)


def test_a_loop_that_was_killed_is_known_and_leaves_nothing(mark: tuple[str, str]) -> None:
    opened = open_files()
    with CpuSpeed(cpu=LAST, mark=mark) as speed:
        wait_for(lambda: len(process_marks.marked_processes(mark[1])) == 1)
        (loop,) = process_marks.marked_processes(mark[1])
        os.kill(loop, signal.SIGKILL)
        wait_for(lambda: not speed.is_alive())
        speed.end()
        assert open_files() == opened


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def forged() -> TrialRecord:
    """Return what the root of a guest may write."""
    (record,) = trials(cell("ext4"), [100.0])
    return record.model_copy(update={"probes": {STOOD_STILL: Value(value=90.0, unit=Unit.PERCENT)}})


def test_a_record_has_what_the_loop_measured_whatever_the_guest_says(mark: tuple[str, str]) -> None:
    with CpuSpeed(cpu=LAST, mark=mark) as speed, RunSpeed(speed=speed) as run:
        run.told("something else")
        run.told(TOOL_BEGINS)
        known_at_last(speed, time.monotonic())
        run.told(TOOL_ENDS)
        record = run.completed(forged())
    assert record.probes[STOOD_STILL].unit is Unit.PERCENT
    assert record.probes[STOOD_STILL].value != 90.0


@pytest.mark.parametrize("messages", [(), (TOOL_BEGINS,), (TOOL_ENDS,), (TOOL_ENDS, TOOL_BEGINS)])
def test_without_a_run_nothing_is_known(mark: tuple[str, str], messages: tuple[str, ...]) -> None:
    with CpuSpeed(cpu=LAST, mark=mark) as speed, RunSpeed(speed=speed) as run:
        for message in messages:
            run.told(message)
        assert STOOD_STILL not in run.completed(forged()).probes
    with RunSpeed(speed=None) as unwatched:
        unwatched.told(TOOL_BEGINS)
        unwatched.told(TOOL_ENDS)
        assert STOOD_STILL not in unwatched.completed(forged()).probes


@pytest.mark.parametrize(
    ("rates", "lost"),
    [
        ([], 0.0),
        ([100.0, 1.0, 100.0], 0.0),
        ([100.0, 100.0, 100.0, 100.0], 0.0),
        ([100.0, 51.0, 100.0, 100.0], 0.0),
        ([100.0, 20.0, 100.0, 100.0], 0.2),
        ([90.0, 0.0, 110.0, 100.0, 100.0], 0.2),
        ([0.0, 90.0, 0.0, 0.0, 0.0, 110.0, 0.0, 0.0], 0.6),
    ],
)
def test_a_cpu_stands_still_at_less_than_half_of_its_usual_speed(rates: list[float], lost: float) -> None:
    assert stood_still(rates) == pytest.approx(lost)


def test_leaving_a_run_that_has_not_ended_lets_the_loop_rest(mark: tuple[str, str]) -> None:
    with CpuSpeed(cpu=LAST, mark=mark) as speed:
        with RunSpeed(speed=speed) as run:
            run.told(TOOL_BEGINS)
            known_at_last(speed, time.monotonic())
        wait_for(lambda: rests(speed))


def test_a_cpu_that_does_not_exist_has_no_speed(mark: tuple[str, str]) -> None:
    with CpuSpeed(cpu=1 << 14, mark=mark) as speed:
        speed.resume()
        wait_for(lambda: not speed.is_alive())
        assert speed.rates(time.monotonic() - 1, time.monotonic()) == []
    assert not process_marks.marked_processes(mark[1])


def test_a_loop_that_cannot_start_leaves_nothing(
    mark: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    opened = open_files()
    monkeypatch.setattr(proc, "start", refuse)
    with CpuSpeed(cpu=LAST, mark=mark) as speed:
        speed.resume()
        speed.pause()
        assert not speed.is_alive()
        assert speed.rates(0.0, time.monotonic()) == []
    assert open_files() == opened


KILLED = """
import sys, time, os
from fslab.system.cpu_speed import CpuSpeed
with CpuSpeed(cpu=max(os.sched_getaffinity(0)), mark=("FSLAB_MARK", "x")) as speed:
    print("up", flush=True)
    time.sleep(1000)
"""


def test_it_ends_with_a_killed_process() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        started = [int(text) for text in children.read_text().split()]
        process.send_signal(signal.SIGKILL)
    assert started
    deadline = time.monotonic() + LIMIT_S
    while any(_alive(each) for each in started):
        assert time.monotonic() < deadline, "still running"
        time.sleep(0.02)


def _alive(process: int) -> bool:
    try:
        return b"fslab.system.cpu_speed" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
