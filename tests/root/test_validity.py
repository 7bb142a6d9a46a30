"""Tests of validity with real trials: each deliberate disturbance gives its warning, and a good trial does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests import made

from fslab.campaign import disks
from fslab.campaign.probing import Watch
from fslab.campaign.run_samples import Ran
from fslab.campaign.trial import run_trial
from fslab.cell import Cache, StackSpec, TrialKey
from fslab.machine import facts
from fslab.probes import SnapshotMoment, Work, foreign_cpu
from fslab.storage import Workspace, stack
from fslab.system import mountinfo, proc
from fslab.system.proc import Usage
from fslab.trial_record import Severity, Status, TrialRecord, ValidityWarning
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings
from fslab.workloads import Reading

MIB = 1 << 20
READ: dict[str, Any] = {"rw": "randread", "bs": "64k", "size": "32m", "runtime": "1s"}
USAGE = Usage(user_s=0.0, system_s=0.0, max_rss_bytes=0, voluntary_switches=0, involuntary_switches=0)


def spec() -> StackSpec:
    return made.spec(options={"size": "160m", "room": "160m"})


def run(workspace: Workspace, parameters: dict[str, Any], cache: Cache = Cache.WARM) -> TrialRecord:
    cell = made.cell(spec(), parameters=parameters, cache=cache)
    key = TrialKey(campaign=workspace.campaign, block=0, seed=7)
    record = run_trial(cell, key, workspace, machine=facts.gather())
    assert record.metrics, record.error
    return record


def of_kind(record: TrialRecord, kind: str) -> list[ValidityWarning]:
    return [warning for warning in record.validity if warning.kind == kind]


@contextmanager
def hog() -> Iterator[int]:
    """Run a busy loop at high priority and yield its process id. It also ends if its parent ends."""
    endless = "import os\nos.nice(-15)\nparent = os.getppid()\nprint(flush=True)\nwhile os.getppid() == parent: pass"
    process = subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("runtime", "severity"), [("300ms", Severity.INVALID), ("1s", Severity.NOTE)])
def test_a_timed_run_that_is_too_short_is_invalid(
    workspace: Workspace, runtime: str, severity: Severity
) -> None:
    record = run(workspace, {**READ, "direct": True, "runtime": runtime})
    (warning,) = of_kind(record, "too_short")
    assert warning.severity is severity
    # On a busy machine, the longer run can be invalid for another reason. Its status is not checked.
    if severity is Severity.INVALID:
        assert record.status is Status.INVALID


def test_what_the_image_lies_on_is_known(workspace: Workspace, small_disk: Path) -> None:
    def found(medium: str, **options: str) -> str | None:
        stack = made.spec(medium=medium, options={"size": "160m", **options})
        return disks.image_filesystem(made.cell(stack), workspace)

    assert found("loop", path=str(small_disk)) == "tmpfs"
    assert found("loop") == mountinfo.containing(workspace.images).filesystem
    assert found("ram") is None


def test_a_program_that_uses_a_cpu_meanwhile_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_cpu, "_NAMED", 1000)  # others may use more at the same time
    with hog() as pid:
        record = run(workspace, {**READ, "direct": True})
    (warning,) = of_kind(record, "foreign_load")
    assert warning.severity is Severity.WARNING
    assert any(f"({pid})" in program for program in warning.data["programs"]), (pid, warning.data)
    assert warning.data["foreign_percent"] > 5


def test_repeated_reads_from_memory_are_a_warning(workspace: Workspace) -> None:
    once = {name: value for name, value in READ.items() if name != "runtime"}
    round_and_round = {**once, "norandommap": True, "io_size": "160m"}
    record = run(workspace, round_and_round, Cache.COLD)
    (warning,) = of_kind(record, "fits_in_memory")
    assert warning.severity is Severity.WARNING
    assert not of_kind(run(workspace, {**round_and_round, "direct": True}, Cache.COLD), "fits_in_memory")
    assert not of_kind(run(workspace, once, Cache.COLD), "fits_in_memory")


@pytest.mark.parametrize("cold", [True, False])
def test_cached_reads_that_claim_to_be_cold_are_invalid(workspace: Workspace, cold: bool) -> None:
    with ExitStack() as undo:
        up = stack.build(spec(), workspace, undo, slot="m", make=True)
        (up.work / "file").write_bytes(b"x" * 32 * MIB)
        up.flush()
        if cold:
            up.unmount()
            up.drop_caches()
            up.mount()
        watch = Watch(up)
        watch.snapshot(SnapshotMoment.BEFORE)
        assert len((up.work / "file").read_bytes()) == 32 * MIB
        for moment in (SnapshotMoment.END, SnapshotMoment.FLUSHED):
            watch.snapshot(moment)
    done = WorkFacts(read_bytes=32 * MIB, written_bytes=0, working_set_bytes=32 * MIB)
    work = Work(
        read_bytes=32 * MIB, written_bytes=0, duration_s=1.0, measured_s=1.0, usage=USAGE, direct=False, cold=True
    )  # fmt: skip
    run = proc.Completed(argv=(), returncode=0, stdout="", stderr="", duration_s=1.0, usage=USAGE)
    found = watch.derive(work, Ran(reading=Reading(metrics={}), done=run))
    warnings = trial_warnings(TrialFacts(work=done, cold=True, figures=found.values))
    served = [warning.severity for warning in warnings if warning.kind == "cache_served"]
    assert served == ([] if cold else [Severity.INVALID])


def test_a_calm_machine_has_no_probe_that_failed_and_no_clock_that_jumped(workspace: Workspace) -> None:
    record = run(workspace, {**READ, "direct": True})
    kinds = {warning.kind for warning in record.validity}
    assert not kinds & {"probe_failed", "clock_stepped", "suspended", "clocksource_changed"}
    for name in ("clock_step", "suspended", "foreign_cpu", "machine_cpu_busy_measured", "cache_drops"):
        assert record.probes[name].value is not None, name


@pytest.mark.slow
def test_the_rate_of_a_long_run_is_judged(workspace: Workspace) -> None:
    record = run(workspace, {**READ, "direct": True, "runtime": "8s", "rate": "20m"})
    assert len(record.raw["fio_bw.log"].splitlines()) >= 32
    assert not of_kind(record, "not_steady"), "a rate that fio itself holds at 20 MiB/s is steady"


@contextmanager
def stopped(after_s: float, for_s: float) -> Iterator[list[float]]:
    """Stop this process's fio for ``for_s`` seconds, ``after_s`` seconds after its start, as if the device stalled.

    Yield the times of the stop and of its end, which are later on a busy machine.
    """
    over, times = threading.Event(), list[float]()

    def stop() -> None:
        while not (groups := _groups_of("fio")) and not over.wait(0.05):
            pass
        over.wait(after_s)
        for sign in (signal.SIGSTOP, signal.SIGCONT):
            for group in groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, sign)
            times.append(time.monotonic())
            over.wait(for_s)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def _groups_of(program: str) -> set[int]:
    """Return the process groups of this process's children that run ``program``, but not to lay out files only."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    found = set()
    for child in children:
        with suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if program.encode() in words[:3] and b"--create_only=1" not in words:  # after fslab-accounted
                found.add(os.getpgid(int(child)))
    return found


@pytest.mark.slow
def test_a_run_that_stalls_is_a_warning(workspace: Workspace) -> None:
    with stopped(after_s=3.0, for_s=3.0) as times:
        record = run(workspace, {**READ, "direct": True, "runtime": "10s", "rate": "20m"})
    ended = time.monotonic()
    (warning,) = of_kind(record, "stalled")
    assert warning.severity is Severity.WARNING
    # It waits for a busy CPU when it is continued, but stalls for no longer than until its end.
    assert times[1] - times[0] - 1.0 <= warning.data["stalled_s"] <= ended - times[0]


def test_a_cold_trial_drops_only_the_cache_of_its_own_disk(workspace: Workspace) -> None:
    # The test is not marked 'alone'. Therefore it fails if it drops all caches of the machine (tests/caches.py).
    size_bytes = 32 * MIB
    record = run(workspace, {"rw": "read", "bs": "1m", "size": size_bytes}, Cache.COLD)
    assert (record.probes["device_read_bytes"].value or 0) >= size_bytes
    assert not of_kind(record, "cache_not_dropped")


@pytest.mark.parametrize(
    "parameters",
    [
        {"rw": "randwrite", "bs": "4k", "size": "32m", "norandommap": True},
        {"file": "j.fio", "file_text": "[j]\nrw=randwrite\nbs=4k\nsize=32m\nunlink=1\n"},
    ],
    ids=["twice", "deleted"],
)
def test_blocks_that_were_written_twice_or_deleted_are_not_called_compressed(
    workspace: Workspace, parameters: dict[str, Any]
) -> None:
    """Of as many random writes as there are blocks, 1/e of the blocks are left out, and others are written again."""
    record = run(workspace, parameters, Cache.COLD)
    received = record.probes["device_written_bytes_flushed"].value
    assert received is not None
    assert received < 0.8 * 32 * MIB
    assert not of_kind(record, "repeated_data")
