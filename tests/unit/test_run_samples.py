"""Tests of what happened in each part of a run: from samples, by hand."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.limits import wait_for

from fslab.campaign.run_samples import EVERY_S, Ran, RunSample, RunSamples
from fslab.campaign.time_slices import Timeline
from fslab.probes import Target, Transactions
from fslab.system import freezer, proc, processes
from fslab.trial_record import WHOLE, RunPart
from fslab.workloads import Reading


def ran(cpu_s: float = 0.0, threads: int | None = 1, timeline: Timeline | None = None, **more: Any) -> Ran:
    usage = proc.Usage(
        user_s=cpu_s, system_s=0.0, max_rss_bytes=None, voluntary_switches=0, involuntary_switches=0
    )
    done = proc.Completed(argv=("x",), returncode=0, stdout="", stderr="", duration_s=4.0, usage=usage)
    reading = Reading(metrics={}, **more)
    return Ran(reading=reading, done=done, threads=threads, timeline=timeline)


def samples(*rows: tuple[float, ...], cpus: int = 2) -> RunSamples:
    """Return samples from rows of time, CPU time, time on a run queue, MB written, time with requests, idle, all."""
    taken = [
        RunSample(
            at_s=at, cpu_s=cpu, queued_s=queued, read_bytes=0.0, written_bytes=1e6 * written, flushes=0.0,
            io_s=io, idle=idle, all=ticks,
        )
        for at, cpu, queued, written, io, idle, ticks in rows
    ]  # fmt: skip
    return RunSamples(taken=taken, cpus=cpus)


# First two seconds on the CPU, then two seconds that wait for the disk, with 0.2 s of CPU time.
TWO_PARTS = (
    (10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (12.0, 2.0, 0.0, 0.0, 0.0, 200.0, 400.0),
    (14.0, 2.2, 0.0, 90.0, 2.0, 580.0, 800.0),
)
BOTH = {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize(
    "parts",
    [
        {"parts_s": BOTH},  # one after the other
        {"parts_s": BOTH, "part_windows": {"a": (10.0, 12.0), "b": (12.0, 14.0)}},
        {"parts_s": BOTH, "part_rounds": {"a": ((10.0, 11.0), (11.0, 12.0)), "b": ((12.0, 14.0),)}},
    ],
)
def test_each_part_has_its_own_facts(parts: dict[str, Any]) -> None:
    found = samples(*TWO_PARTS).parts(ran(2.2, **parts))
    assert found["a"] == RunPart(seconds=2.0, wait=0.0, cpu_s=2.0, read_bytes=0, written_bytes=0, flushes=0)
    assert found["b"].wait == pytest.approx(0.9)  # 1.8 s of 2 s
    assert found["b"].written_bytes == 90_000_000
    assert found["run"].wait == pytest.approx(1.8 / 4)


def test_parts_end_where_the_tool_says_so() -> None:
    found = samples(*TWO_PARTS)
    said = zip(found.taken, (0.0, 12.0, math.inf), strict=True)
    found.taken = [replace(sample, said=offset) for sample, offset in said]
    parts = found.parts(ran(2.2, parts_s={"a": 0.1, "b": 0.1}, marks={"a": (0, 10), "b": (10, 20)}))
    assert (parts["a"].seconds, parts["b"].seconds) == (2.0, 2.0)
    assert parts["b"].wait == pytest.approx(0.9)


def test_parts_without_windows_are_told_apart_only_if_they_are_nearly_the_whole_run() -> None:
    found = samples(*TWO_PARTS)
    assert set(found.parts(ran(2.2, parts_s={"a": 1.0, "b": 1.0}))) == {"run"}
    assert set(found.parts(ran(2.2, parts_s=BOTH, rounds=2))) == {"run"}
    assert set(found.parts(ran(2.2, parts_s=BOTH))) == {"run", "a", "b"}


def test_the_time_on_a_run_queue_is_no_wait_for_the_disk() -> None:
    """Of 4 s, 1 s ran and 2 s waited for a CPU that a neighbour had: 1 s waited for the disk, half of 2 s."""
    rows = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (4.0, 1.0, 2.0, 0.0, 4.0, 0.0, 800.0))
    assert samples(*rows).parts(ran(1.0))["run"].wait == pytest.approx(0.5)


def test_sleeping_counts_only_while_the_disks_have_requests() -> None:
    rows = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (4.0, 1.0, 0.0, 0.0, 0.5, 0.0, 800.0))
    assert samples(*rows).parts(ran(1.0))["run"].wait == pytest.approx(0.5 / 1.5)


def test_on_one_cpu_that_is_busy_nothing_waits_for_a_disk() -> None:
    """The kernel's threads had the CPU: 10 of 400 ticks were idle, 0.1 s of 4 s."""
    rows = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (4.0, 1.0, 0.0, 0.0, 4.0, 10.0, 400.0))
    assert samples(*rows, cpus=1).parts(ran(1.0))["run"].wait == pytest.approx(0.1 / 1.1)
    assert samples(*rows, cpus=2).parts(ran(1.0))["run"].wait == pytest.approx(0.75)


def test_how_long_an_unknown_number_of_threads_waits_is_unknown() -> None:
    found = samples(*TWO_PARTS).parts(ran(2.2, threads=None))["run"]
    assert (found.wait, found.cpu_s) == (None, 2.2)


def test_more_threads_than_cpus_cannot_be_faster_than_the_cpus() -> None:
    """16 threads used 2 s of two CPUs in 4 s: on a disk without delay, they still take 1 s."""
    rows = ((10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (14.0, 2.0, 1.0, 90.0, 4.0, 200.0, 800.0))
    assert samples(*rows, cpus=2).parts(ran(2.0, threads=16))["run"].wait == pytest.approx(0.75)


def test_several_threads_wait_each_for_itself() -> None:
    rows = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (4.0, 4.0, 0.0, 0.0, 4.0, 800.0, 1600.0))
    assert samples(*rows, cpus=4).parts(ran(4.0, threads=4))["run"].wait == pytest.approx(0.75)


def test_the_time_in_which_a_tool_was_frozen_is_no_wait() -> None:
    rows = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (4.0, 0.5, 0.0, 0.0, 2.0, 0.0, 800.0))
    timeline = Timeline(worked_s=0.0, ended_s=4.0, ran=((0.0, 0.5), (2.0, 2.5)))
    part = samples(*rows).parts(ran(0.5, timeline=timeline))["run"]
    assert (part.seconds, part.wait) == (1.0, 0.5)


def test_a_part_that_is_shorter_than_the_samples_has_only_what_the_tool_reports() -> None:
    short: dict[str, Any] = {"parts_s": {"a": 0.05}, "part_rounds": {"a": ((10.0, 10.05),)}}
    assert samples(*TWO_PARTS).parts(ran(2.2, **short))["a"].wait is None
    part = samples(*TWO_PARTS).parts(ran(2.2, **short, part_cpu_s={"a": 0.04}))["a"]
    assert (part.cpu_s, part.wait, part.written_bytes) == (0.04, None, None)


def test_the_queue_at_the_end_is_that_of_before() -> None:
    """Until 3 s, 1 s ran and 1 s was queued. With 1.5 s at the end, 1.5 s of 4 s were queued, and 1 s waited."""
    found = samples(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (3.0, 1.0, 1.0, 0.0, 3.0, 0.0, 600.0),
        (4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 800.0),
    )
    found.taken[-1] = replace(found.taken[-1], cpu_s=None, queued_s=None)
    assert found.parts(ran(1.5))["run"].wait == pytest.approx(1 / 2.5)
    found.taken = [found.taken[0], found.taken[-1]]
    assert found.parts(ran(1.5))["run"].wait is None


def test_the_share_of_busy_cpus_is_that_of_the_measured_part_and_never_below_0() -> None:
    """On one CPU, idle for 3.5 s of 4 s before 0.5 s of work: its share was computed as −600 % from the whole run."""
    rows = (
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (3.5, 0.0, 0.0, 0.0, 0.0, 350.0, 350.0),
        (4.0, 0.5, 0.0, 0.0, 0.0, 350.0, 400.0),
    )
    found = samples(*rows, cpus=1)
    assert found.busy_percent(Reading(metrics={}, measured_s=0.5)) == pytest.approx(100.0)
    assert found.busy_percent(Reading(metrics={}, measured_s=4.0)) == pytest.approx(12.5)
    assert found.busy_percent(Reading(metrics={})) == pytest.approx(12.5)
    found.of_machine = False
    assert found.busy_percent(Reading(metrics={}, measured_s=0.5)) is None


def test_samples_of_a_real_process_tell_what_it_did(tmp_path: Path) -> None:
    """A child that computes for most of a second, in a shell that waits for it."""
    target = Target(devices=(), filesystem=None, directory=tmp_path)
    found = RunSamples()
    found.begin(target)
    code = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.8: pass"
    done = proc.run(
        ["sh", "-c", 'python3 -c "$0"; true', code],
        watch=lambda running: found.look(lambda: target, running),
        accounted=True,
    )
    found.end(target)
    assert len(found.taken) >= 3
    assert found.taken[1].at_s - found.taken[0].at_s >= EVERY_S
    part = found.parts(Ran(reading=Reading(metrics={}), done=done))["run"]
    assert part.cpu_s is not None
    assert part.cpu_s >= 0.8
    assert part.wait is None  # no disk is known


def test_cpu_time_that_the_kernel_does_not_count_is_unknown() -> None:
    """Of children of a process that ignores SIGCHLD, deep in the tree: only samples see that process."""
    code = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); input()"
    argv = ["sh", "-c", '"$0" -c "$1"; :', sys.executable, code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin
        wait_for(lambda: (times := processes.times(child.pid)) is not None and not times.counted)
        child.stdin.close()
    found, done = samples(*TWO_PARTS), ran(2.2, parts_s=BOTH)
    found.counted = False
    assert found.usage(done.done) is None
    for part in found.parts(done).values():
        assert (part.cpu_s, part.wait) == (None, None)
    assert found.parts(done)["b"].written_bytes == 90_000_000


def test_times_of_a_process_include_children_that_it_waited_for() -> None:
    code = "for i in 1 2 3; do python3 -c 'sum(range(3000000))'; done; echo done; read line"
    with subprocess.Popen(["sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdin
        assert child.stdout.readline() == b"done\n"
        times = processes.times(child.pid)
        used = os.times()
        child.stdin.write(b"\n")
        child.stdin.close()
        child.wait()
    ended = os.times()
    assert times is not None
    assert times.counted
    spent = ended.children_user - used.children_user + ended.children_system - used.children_system
    assert times.cpu_s == pytest.approx(spent, abs=0.05)
    assert processes.times(child.pid) is None


def test_a_process_that_ends_while_it_is_looked_at_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory goes between two system calls, which nothing can arrange in real."""

    def gone(path: object) -> Any:
        raise FileNotFoundError(path)

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, gone)
    times = processes.times(os.getpid())
    assert times is not None
    assert times.cpu_s > 0
    assert freezer._is_stopped(os.getpid())


def test_transactions_have_no_part_of_what_the_start_of_their_server_wrote() -> None:
    taken = [
        RunSample(at_s=at, written_bytes=written, flushes=flushes)
        for at, written, flushes in (
            (10.0, 5.0, 1.0),
            (11.0, 80.0, 9.0),
            (13.0, 90.0, 19.0),
            (14.0, 400.0, 40.0),
        )
    ]
    reading = Reading(metrics={}, transactions=10, part_windows={WHOLE: (11.0, 13.0)})
    found = RunSamples(taken=taken).transactions(reading)
    assert found == Transactions(count=10, bytes_before=75.0, flushes=10.0)
    assert RunSamples(taken=taken).transactions(Reading(metrics={})) is None
