"""Tests of trials in User-Mode Linux, and of guests that panic, hang or are killed."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.guest.conftest import cell, group_members
from tests.limits import LIMIT_S

from fslab.campaign import prepared_states
from fslab.campaign.guest_run import RunSpeed
from fslab.campaign.trial_dispatch import TrialMachines
from fslab.cell import Cell, Fresh, MachineSpec, MediumSpec, TrialKey, WorkloadSpec
from fslab.errors import FslabError, GuestError, GuestPanickedError
from fslab.machine import guest as waiting
from fslab.machine.guest import Guest
from fslab.machine.kinds import uml
from fslab.plan import shared_states
from fslab.system import mounts, warm_memory
from fslab.trial_record import Status, TrialRecord


def trial(guests: TrialMachines, wanted: Cell, block: int = 0) -> TrialRecord:
    return guests.run(wanted, TrialKey(campaign=guests.workspace.campaign, block=block, seed=7))


ENDLESS = {"rw": "write", "bs": "1m", "size": "512m", "runtime": "1h", "direct": True}
LIMITED = """
import subprocess
from pathlib import Path
from fslab.system import cgroup, proc
group = Path("/sys/fs/cgroup")
subprocess.run(["mount", "-t", "cgroup2", "none", str(group)], check=True)
before = {*group.glob("*/")}
assert cgroup.may_limit_memory()
with cgroup.memory_limited("fslab-test", 32 << 20) as within:
    copy = "setsid sleep 1000 & head -c 64M /dev/zero >/run/copied"
    proc.run(["sh", "-c", copy], within=within, check=False)
    print((group / "fslab-test/memory.max").read_text())
    print((group / "fslab-test/memory.events").read_text())
assert {*group.glob("*/")} == before, "with the process that was left"
assert before or "memory" not in (group / "cgroup.subtree_control").read_text().split()
Path("/run/copied").unlink()
subprocess.run(["umount", str(group)], check=True)
"""


def test_memory_is_limited_by_control_groups_of_version_2(shared: TrialMachines) -> None:
    """A file in memory that is larger than the limit: the kernel kills what writes it."""
    source = Path(__file__).parents[2] / "src"
    argv = ["env", f"PYTHONPATH={source}", sys.executable, "-c", LIMITED]
    request = {"do": "command", "argv": argv, "timeout_s": LIMIT_S}
    done = shared.ask(cell().stack, "m", request, timeout_s=LIMIT_S)
    assert done["returncode"] == 0, done["stderr"]
    limit, *events = done["stdout"].split()
    killed = dict(zip(events[::2], events[1::2], strict=True))["oom_kill"]
    assert (limit, killed != "0") == (str(32 << 20), True)


@pytest.mark.slow
def test_one_guest_serves_a_batch_of_file_systems(guests: TrialMachines) -> None:
    records = [trial(guests, cell(name)) for name in ("ext4", "f2fs")]
    for record in records:
        assert record.status in {Status.OK, Status.INVALID}, record.error
        assert record.metrics["write_iops"].value
        machine = record.provenance.machine
        assert machine["machine"] == "uml"
        assert machine["kernel"] != os.uname().release
        assert machine["host"]["hostname"] == platform.node()
        assert record.provenance.device["device"] == "ubdb"
        assert record.provenance.device["size_bytes"] == 96 << 20
        mkfs = [each.argv for each in record.provenance.commands if each.stage == "mkfs"]
        assert mkfs == [(f"mkfs.{record.cell.stack.filesystem}", *mkfs[0][1:])]
        assert mkfs[0][-1] == "/dev/ubdb"
    assert "EXT4-fs (ubdb): mounted" in records[0].raw["guest_kernel_log"]
    assert "EXT4-fs" not in records[1].raw["guest_kernel_log"], "only since the trial began"
    assert "F2FS-fs (ubdb): Mounted" in records[1].raw["guest_kernel_log"]
    assert len(guests.running) == 1


def test_a_run_in_which_the_cpu_stood_still_has_a_warning(
    shared: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunSpeed, "_rates", lambda _: [1e6, 1e6, 1e4, 1e6])
    record = trial(shared, cell())
    assert record.status is Status.OK
    assert [each.kind for each in record.validity].count("cpu_stood_still") == 1
    assert record.probes["cpu_stood_still"].value == pytest.approx(24.75)


def test_memory_is_held_for_a_disk_of_a_guest_that_takes_memory(
    shared: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest's page cache is its own memory, but what it writes to a sparse image is memory of the host."""
    monkeypatch.setattr(warm_memory, "is_reported", lambda: True)
    sparse = MediumSpec(name="m", type="ram", options={"size": "1g", "room": "96m"})
    record = trial(shared, cell(stack=cell().stack.model_copy(update={"medium": sparse})))
    assert record.provenance.memory_held_bytes >= 8 << 20
    assert not shared.workspace.warm_memory.held_bytes, "released before the run"
    whole = trial(shared, cell())
    assert whole.provenance.memory_held_bytes == 0, "its memory is allocated already"


def test_a_guest_that_writes_more_than_the_room_of_its_disk_is_ended(shared: TrialMachines) -> None:
    sparse = MediumSpec(name="m", type="ram", options={"size": "1g", "room": "32m"})
    record = trial(
        shared,
        cell(
            stack=cell().stack.model_copy(update={"medium": sparse}),
            workload=WorkloadSpec(name="w", tool="fio", parameters=ENDLESS),
        ),
    )
    assert record.status_text == "failed:no_space", record.error
    assert "has room for 32 MiB" in str(record.error)
    assert shared.running == []


def test_a_guest_shows_that_its_programs_run(shared: TrialMachines, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"do": "command", "argv": ["sleep", str(waiting.ALIVE_EVERY_S + 1)], "timeout_s": LIMIT_S}
    said = []
    read = Guest._read_line

    def noted(guest: Guest, deadline: float) -> str | None:
        said.append(read(guest, deadline))
        return said[-1]

    monkeypatch.setattr(Guest, "_read_line", noted)
    shared.ask(cell().stack, "m", request, timeout_s=LIMIT_S)
    assert waiting.ALIVE in said


def test_a_command_runs_as_root_of_the_guest_and_cannot_write_to_the_host(
    shared: TrialMachines, tmp_path: Path
) -> None:
    script = f"id -u; mknod /run/node b 1 0 && echo made; touch {tmp_path}/x /etc/x; echo $?"
    request = {"do": "command", "argv": ["sh", "-c", script], "timeout_s": 30}
    value = shared.ask(cell().stack, "m", request, timeout_s=LIMIT_S)
    assert value["stdout"].split() == ["0", "made", "1"]
    assert value["stderr"].count("Read-only file system") == 2
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_trials_of_a_block_share_their_files(guests: TrialMachines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host copies the image while the guest waits. A guest that boots again prepares files of its own."""
    monkeypatch.setattr(prepared_states, "DEAREST", math.inf)  # whether copying pays depends on the machine
    medium = MediumSpec(name="m", type="ram", options={"size": "1g", "room": "128m"})
    cells = [
        cell(
            stack=cell("f2fs").stack.model_copy(update={"medium": medium}),
            workload=WorkloadSpec(name=each, tool="engine", parameters={"operation": each, "scale": 0.0001}),
            fresh=Fresh.BLOCK,
        )
        for each in ("delete", "analyze")
    ]
    guests.states.groups = shared_states.groups(cells)
    found = []
    for number, wanted in enumerate((*cells, cells[0])):
        record = trial(guests, wanted)
        assert record.status is Status.OK, (record.error, record.validity)
        named = {"copy", "mkfs", "prepare"}
        found.append([each.stage for each in record.provenance.commands if each.stage in named])
        if number == 1:
            guests.end()
    assert found == [["mkfs", "prepare"], ["copy"], ["mkfs", "prepare"]]


@pytest.mark.slow
def test_mixed_and_command_run_in_a_guest(guests: TrialMachines) -> None:
    """The programs and files of these workloads are available in the guest, and one boot is enough for both."""
    mixed = WorkloadSpec(
        name="both", tool="mixed",
        parameters={
            "parts.a.tool": "dd", "parts.a.op": "write", "parts.a.count": 4,
            "parts.b.tool": "command", "parts.b.run": "touch x",
        },
    )  # fmt: skip
    own = WorkloadSpec(
        name="own",
        tool="command",
        parameters={
            "prepare": "mkdir {directory}/a",
            "run": "cp /etc/passwd {directory}/a/b",
            "cleanup": "rm -r {directory}/a",
        },
    )
    found = {each.name: trial(guests, cell(workload=each)) for each in (mixed, own)}
    for record in found.values():
        assert record.status in {Status.OK, Status.INVALID}, record.error
        assert record.provenance.machine["machine"] == "uml"
    assert found["both"].metrics["a_write_bandwidth"].value
    assert found["both"].metrics["overlap"].value is not None
    assert len(guests.running) == 1


@pytest.mark.slow
def test_a_file_system_that_lives_on_is_not_made_again(guests: TrialMachines) -> None:
    lasting = cell(fresh=Fresh.CELL)
    first, second = (trial(guests, lasting, block) for block in range(2))
    assert [each.stage for each in first.provenance.commands].count("mkfs") == 1
    assert [each.stage for each in second.provenance.commands].count("mkfs") == 0


@pytest.mark.slow
def test_an_error_inside_keeps_its_class(guests: TrialMachines) -> None:
    request = {"do": "call", "function": "fslab.units:parse_size", "arguments": {"value": "2k"}}
    with pytest.raises(GuestError, match=r"failed in the guest: (?s:.*)AttributeError"):
        guests.ask(cell().stack, "m", {**request, "function": "fslab.units:nothing"}, timeout_s=LIMIT_S)
    with pytest.raises(FslabError, match="not a function of fslab"):
        guests.ask(cell().stack, "m", {**request, "function": "os:remove"}, timeout_s=LIMIT_S)


def panic(guest: Guest) -> None:
    with contextlib.suppress(GuestError):  # it no longer answers
        uml.ask_console(guest.directory / "uml/mconsole", "sysrq c", timeout_s=1.0)


def kill(guest: Guest) -> None:
    os.killpg(guest.child.pid, signal.SIGKILL)


def stop(guest: Guest) -> None:
    os.kill(guest.child.pid, signal.SIGSTOP)


@pytest.mark.parametrize(
    ("harm", "failure", "said"),
    [
        pytest.param(panic, "guest_panicked", "Kernel panic", marks=pytest.mark.slow),
        pytest.param(kill, "guest_lost", "EXT4-fs (ubdb): mounted", marks=pytest.mark.slow),
        pytest.param(stop, "guest_hung", "EXT4-fs (ubdb): mounted", marks=pytest.mark.slow),
    ],
)
def test_a_guest_that_is_lost_costs_one_trial(
    harm: Callable[[Guest], None],
    failure: str,
    said: str,
    guests: TrialMachines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harmed: list[Guest] = []

    endless = cell(workload=WorkloadSpec(name="w", tool="fio", parameters={**ENDLESS, "size": "8m"}))
    with monkeypatch.context() as patch:

        def when_mounted() -> None:
            while not guests.running or "mounted filesystem" not in guests.running[0].log_text():
                time.sleep(0.02)
            harmed.append(guests.running[0])
            harm(harmed[0])
            # Not before: on a busy machine, a guest that works may need longer to answer.
            patch.setattr(waiting, "PING_EVERY_S", 1.0)
            patch.setattr(waiting, "PING_LIMIT_S", 2.0)

        helper = threading.Thread(target=when_mounted)
        helper.start()
        record = trial(guests, endless)
        helper.join()
    assert record.status_text == f"failed:{failure}"
    assert said in record.raw["guest_kernel_log"]
    assert record.provenance.machine["machine"] == "uml"
    assert not group_members(harmed[0].child.pid), "ended with all its processes"
    assert not guests.running
    assert trial(guests, cell(), 1).status is not Status.FAILED


def test_a_panic_between_trials_is_told_as_one(shared: TrialMachines) -> None:
    request = {"do": "command", "argv": ["sh", "-c", "echo c > /proc/sysrq-trigger"], "timeout_s": 30}
    with pytest.raises(GuestPanickedError, match="kernel panicked"):
        shared.ask(cell().stack, "m", request, timeout_s=LIMIT_S)


def test_a_kernel_that_does_not_boot_is_not_tried_for_ever(guests: TrialMachines) -> None:
    stack = cell().stack.model_copy(
        update={"machine": MachineSpec(type="uml", kernel="/bin/true", memory="64m")}
    )
    broken = cell().model_copy(update={"stack": stack})
    said = [trial(guests, broken, block) for block in range(3)]
    assert {record.status_text for record in said} == {"failed:guest_lost"}
    assert ["not tried again" in (record.error or "") for record in said] == [False, False, True]
    assert "the guest did not boot: the guest ended (exit status 0)" in (said[0].error or "")


@pytest.mark.root
def test_a_guest_that_writes_without_end_meets_the_end_of_what_it_shares(
    guests: TrialMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory that a guest shares with the host is a tmpfs with a limited size and number of files.

    The limits hold without fslab's periodic check. Device files and set-user-ID bits have no effect in it.
    """
    monkeypatch.setattr(waiting, "SHARE_BYTES", 80 << 20)
    monkeypatch.setattr(waiting, "SHARE_FILES", 64)
    request = {"do": "command", "argv": ["true"], "timeout_s": 30}
    monkeypatch.setattr(Guest, "_check_filled", lambda self: None)
    guests.ask(cell().stack, "m", request, timeout_s=LIMIT_S)
    (guest,) = guests.running
    mount = mounts.at(guest.directory)
    assert mount is not None
    assert {"nosuid", "nodev"} <= set(mount.options.split(","))
    script = f"""cd {guest.directory}; head -c 200m /dev/zero >flood; stat -c %s flood; rm flood
        for i in $(seq 100); do : >f$i; done; ls f* | wc -l; rm -f f*"""
    value = guests.ask(cell().stack, "m", {**request, "argv": ["bash", "-c", script]}, timeout_s=LIMIT_S)
    assert value["stderr"].count("No space left on device") > 1
    written, made = map(int, value["stdout"].split())
    assert written <= waiting.SHARE_BYTES
    assert made < waiting.SHARE_FILES
    guests.end()
    assert mounts.at(guest.directory) is None
    assert not guest.directory.exists()


def test_what_a_guest_s_root_puts_in_its_directory_leads_nowhere(
    shared: TrialMachines, tmp_path: Path
) -> None:
    (victim := tmp_path / "victim").write_text("precious")
    request = {"do": "command", "argv": ["true"], "timeout_s": 30}
    shared.ask(cell().stack, "m", request, timeout_s=LIMIT_S)
    (guest,) = shared.running
    after_next = guest.directory / f"request-{guest.count + 2}.json"
    script = f"ln -s {victim} {after_next}; mkdir -m 0 {guest.directory}/closed"
    shared.ask(cell().stack, "m", {**request, "argv": ["sh", "-c", script]}, timeout_s=LIMIT_S)
    assert after_next.is_symlink()
    record = trial(shared, cell())
    assert record.status_text == "failed:guest_lost"
    assert victim.read_text() == "precious"
    assert not shared.running
