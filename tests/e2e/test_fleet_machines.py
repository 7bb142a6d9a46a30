"""Tests of machines with a wrong clock, another version, a full disk or a disk that hangs, and of lost ones."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import fleet_lab
from tests.e2e.test_fleet import CELLS, STUDY, TRIALS, check_results, measured
from tests.frozen import frozen
from tests.limits import LIMIT_S, RUN_LIMIT_S, wait_for
from tests.starter import Starter

from fslab.errors import StoreDeniedError

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.unaffected]

# Shifts the clock of the time of day, as libfaketime does. A time namespace cannot (time_namespaces(7)).
SHIFT = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long off(void) { const char *s = getenv("TEST_CLOCK_SHIFT"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    int done = syscall(SYS_clock_gettime, id, t);
    if (!done && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += off();
    return done;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"""

WRITING = """
title: A study that writes for long
media: {disk: {type: ram, size: 64m}}
stacks: {ext4: {medium: disk, filesystem: ext4}}
workloads: {write: {tool: fio, rw: randwrite, size: 16m, runtime: 5m}}
trials: 8
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def shift(tmp_path: Path) -> Path:
    """Return the path of the library that shifts the clock by TEST_CLOCK_SHIFT seconds."""
    source, library = tmp_path / "shift.c", tmp_path / "shift.so"
    source.write_text(SHIFT)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, timeout=LIMIT_S)
    return library


def restart(member: fleet_lab.Member, **environment: str) -> None:
    """End the agent, and start it again with these variables in addition."""
    member.end()
    member.extra = environment
    member.start()


def status(lab: fleet_lab.Lab) -> dict[str, Any]:
    return {each["name"]: each for each in lab.json("fleet", "status")["machines"]}


def statuses(lab: fleet_lab.Lab, run: str) -> list[str]:
    """Return the status of the run on each machine, sorted by the machines' names."""
    return [each["status"] for each in lab.json("fleet", "status", run)["assignments"]]


def test_clocks_that_are_a_day_off(two: fleet_lab.Lab, study: Path, shift: Path) -> None:
    """Two machines whose clocks differ by two days are online, keep their leases, and finish a run.

    How far each clock is off is shown. An agent that is killed meanwhile takes its own assignment again.
    """
    ahead, behind = two.members
    toml = behind.home / "worker.toml"  # for this machine, the server's certificate is not valid yet
    toml.write_text(re.sub('sslmode=[^"]*', "sslmode=require", toml.read_text()))
    restart(ahead, LD_PRELOAD=str(shift), TEST_CLOCK_SHIFT="86400")
    restart(behind, LD_PRELOAD=str(shift), TEST_CLOCK_SHIFT="-86400")
    wait_for(two.has_joined)
    assert re.search("clock of this machine is (24 h 00|23 h 59) min ahead of the database's", ahead.log)
    shown = status(two)
    assert [round(shown[each]["facts"]["clock_ahead_s"] / 3600) for each in ("lab1", "lab2")] == [24, -24]
    said = two.fslab("fleet", "status").stdout
    assert "ahead" in said
    assert "behind" in said
    behind.pause()
    run = two.begin("run", study, "--fleet", "--json")
    wait_for(partial(behind.processes, "fslab.fleet.measuring"))
    assert behind.kill("fleet", "worker")
    assert behind.agent is not None
    behind.agent.wait(LIMIT_S)
    behind.start()
    behind.go_on()
    out, errors = run.communicate(timeout=RUN_LIMIT_S)
    assert run.returncode == 0, errors
    check_results(two, json.loads(out), CELLS * TRIALS)


def test_another_version_of_fslab(two: fleet_lab.Lab, study: Path, tmp_path: Path) -> None:
    """An operator leaves out a machine of another version; one that was replaced meanwhile refuses. Both say why."""
    other = tmp_path / "other"
    (other / "fslab-99.0.dist-info").mkdir(parents=True)
    (other / "fslab-99.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: fslab\nVersion: 99.0\n"
    )
    one, stale = two.members
    stale.pause()
    held = two.json("run", study, "--fleet", "--detach", "--machines", "lab2")["run"]
    wait_for(partial(stale.processes, "fslab.fleet.measuring"))
    restart(stale, PYTHONPATH=os.pathsep.join(filter(None, (str(other), os.environ.get("PYTHONPATH")))))
    stale.go_on()
    wait_for(lambda: two.json("fleet", "status", held)["assignments"][0]["status"] == "refused")
    (refused,) = two.json("fleet", "status", held)["assignments"]
    assert "this machine runs 99.0: install the same version" in refused["message"]
    done = two.fslab("run", study, "--fleet", "--json", "--trials", "2")
    assert "without lab2: runs fslab 99.0, and this is" in done.stderr
    assert [each["name"] for each in json.loads(done.stdout)["machines"]] == ["lab1"]
    assert measured(one) == CELLS * 2


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a file system of 4 MiB in memory at ``place``."""
    place.mkdir(parents=True, exist_ok=True)
    fleet_lab.sh("mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "small", place)
    try:
        yield
    finally:
        fleet_lab.sh("umount", place)


def fill(place: Path) -> Path:
    """Write a file that leaves no space. Return its path."""
    path = place / "ballast"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
        try:
            while True:
                file.write(b"x")
        except OSError:
            pass
    return path


def test_a_full_disk_below_the_machine_s_own_store(two: fleet_lab.Lab, study: Path) -> None:
    """Measuring waits a minute for space. Then the study has failed, with the reason, and the agent goes on.

    Another machine is not affected. When there is space again, the next study is measured.
    """
    full, _ = two.members
    full.end()
    place = full.home / "data"
    with small_disk(place):
        full.start()
        wait_for(two.has_joined)
        full.pause()
        run = two.begin("run", study, "--fleet", "--json")
        wait_for(partial(full.processes, "fslab.fleet.measuring"))
        wait_for(lambda: (place / "fslab" / "fleet.sqlite").exists() and campaigns(two) == 2)
        ballast = fill(place)
        full.go_on()
        out, errors = run.communicate(timeout=RUN_LIMIT_S)
        assert run.returncode == 0, errors
        ended = {each["name"]: each for each in json.loads(out)["machines"]}
        assert ended["lab2"]["status"] == "finished"
        assert ended["lab1"]["status"] == "failed"
        assert "full" in ended["lab1"]["message"]
        ballast.unlink()
        again = two.json("run", study, "--fleet", "--trials", "2")
        check_results(two, again, CELLS * 2)
        full.end()
    full.start()


def campaigns(lab: fleet_lab.Lab) -> int:
    """Return on how many machines a campaign has begun."""
    return sum(
        bool(member.processes("fslab.fleet.measuring")) and bool(list(member.home.glob("fslab/*")))
        for member in lab.members
    )


def frozen_writer(member: fleet_lab.Member) -> Path | None:
    """Return the mount point of a trial on this machine, None before there is one."""
    for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
        place = line.split()[1]
        if str(member.home) in place and line.split()[2] == "ext4":
            return Path(place)
    return None


def test_a_disk_that_hangs(programs: Path, study: Path, tmp_path: Path, starter: Starter) -> None:
    """A trial's process waits for a frozen file system, and not even SIGKILL ends it.

    The agent ends the study with the mount that cannot be undone, stays online, and runs the next study when the disk
    is back. Takes some minutes: a clean-up has its time.
    """
    study.write_text(WRITING)
    with fleet_lab.lab(programs, tmp_path, 1, starter) as lab:
        (member,) = lab.members
        settings = member.home / "worker.toml"
        settings.write_text(settings.read_text() + "\nstall = 30\n")
        restart(member)
        wait_for(lab.has_joined)
        run = lab.begin("run", study, "--fleet", "--json")
        wait_for(lambda: frozen_writer(member) or run.poll() is not None)
        place = frozen_writer(member)
        assert place is not None
        with frozen(place):
            out, errors = run.communicate(timeout=RUN_LIMIT_S)
            (ended,) = json.loads(out)["machines"]
            assert ended["status"] == "failed", errors
            assert "no trial for 30 s; cannot be undone: " in ended["message"]
            assert str(place) in ended["message"]
            assert lab.has_joined()
        study.write_text(WRITING.replace("5m", "1s"))
        again = lab.json("run", study, "--fleet", "--trials", "2")
        check_results(lab, again, 2)


def test_the_share_of_a_lost_machine_moves(two: fleet_lab.Lab, study: Path) -> None:
    """A machine stops in the middle of its share and is removed: the other one measures the share from its beginning.

    When it wakes up, nothing that it measures is stored.
    """
    work = STUDY[STUDY.index("  files:") : STUDY.index("trials:")]
    study.write_text(STUDY.replace(work, work + work.replace("files:", "more:", 1)))
    _, lost = two.members
    lost.pause()
    run = two.begin("run", study, "--fleet", "--spread", "--json")
    wait_for(partial(lost.processes, "fslab.fleet.measuring"))
    asleep = lost.processes()
    for process in asleep:
        os.kill(process, signal.SIGSTOP)
    try:
        wait_for(lambda: two.fslab("fleet", "forget", "lab2", check=False).returncode == 0)
        out, errors = run.communicate(timeout=RUN_LIMIT_S)
    finally:
        for process in asleep:
            os.kill(process, signal.SIGCONT)
    assert run.returncode == 0, errors
    lost.go_on()
    found = sorted((each["name"], each["status"], each["trials"]) for each in json.loads(out)["machines"])
    assert found == [("lab1", "finished", CELLS * TRIALS)] * 2 + [("lab2", "moved", 0)]
    wait_for(lambda: "cancelled or taken over" in lost.log)
    shown = two.json("fleet", "status", json.loads(out)["run"])["assignments"]
    (moved,) = (each for each in shown if each["status"] == "moved")
    assert moved["message"] == "the machine was removed: starts again on lab1"
    assert moved["trials"] == 0


def test_a_machine_whose_rights_are_taken_away_ends_and_no_other(two: fleet_lab.Lab, study: Path) -> None:
    """Each machine has a role of its own in the database, as docs/fleet.md advises."""
    for number, member in enumerate(two.members):
        two.cluster.execute(f"CREATE ROLE role{number} LOGIN")
        two.fslab("store", "grant", "--measuring", f"role{number}")
        member.end()
        toml = member.home / "worker.toml"
        toml.write_text(toml.read_text().replace("measuring@", f"role{number}@"))
        member.start()
    wait_for(two.has_joined)
    run = two.json("run", study, "--fleet", "--detach", "--trials", "500")["run"]
    wait_for(lambda: all(map(measured, two.members)))
    removed, other = two.members
    two.fslab("store", "grant", "--reading", "role0")
    assert removed.agent is not None
    assert removed.agent.wait(LIMIT_S) == StoreDeniedError.exit_code, removed.log
    assert (
        "permission denied for table fleet_machines\n  → the owner of the database lets a role read or measure"
        in removed.log
    )
    assert removed.processes("fslab.fleet.measuring") == []
    before = measured(other)
    wait_for(lambda: measured(other) > before)
    wait_for(lambda: two.fslab("fleet", "forget", "lab1", check=False).returncode == 0)
    wait_for(lambda: statuses(two, run) == ["failed", "running"])
    two.fslab("fleet", "cancel", run)
    wait_for(lambda: "cancelled or taken over" in other.log)
