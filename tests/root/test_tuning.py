"""Tests of settings on the real kernel: they apply during a trial and are restored afterwards, also after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.limits import LIMIT_S
from tests.root.test_trial import cell, run, value

from fslab import feasibility
from fslab.campaign import cleanup
from fslab.cell import Cache
from fslab.errors import UnsupportedError, UsageError
from fslab.machine import facts, tuning
from fslab.storage import Workspace
from fslab.system import loop_devices, sysfs

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SWAPPINESS = Path("/proc/sys/vm/swappiness")
FREE = Path("/proc/sys/vm/min_free_kbytes")

pytestmark = pytest.mark.alone  # settings apply to the whole machine

KILLED = """
import os, signal
from fslab.campaign.undo_journal import CampaignJournal
from fslab.machine import tuning

wanted = {"vm.swappiness": "13", "vm.dirty_bytes": "67108864"}
with CampaignJournal("test-0009") as journal, tuning.tuned(wanted, journal):
    os.kill(os.getpid(), signal.SIGKILL)
"""

KILLED_WITH_A_DEVICE = """
import os, signal, sys
from fslab.campaign.undo_journal import CampaignJournal
from fslab.machine import tuning

with CampaignJournal("test-0011") as journal, tuning.tuned_devices({"read_ahead_kib": "64"}, sys.argv[1:], journal):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def queue(device: Path) -> Path:
    return sysfs.queue_directory(sysfs.block_directory(device))


def test_a_device_has_them_while_it_is_used(loop: Callable[[], Path], workspace: Workspace) -> None:
    device = loop()
    scheduler, ahead = queue(device) / "scheduler", queue(device) / "read_ahead_kb"
    before = sysfs.selected(scheduler), sysfs.text(ahead)
    wanted = {"io_scheduler": "mq-deadline", "read_ahead_kib": "512"}
    if "mq-deadline" not in scheduler.read_text():
        pytest.skip("this kernel has no mq-deadline")
    with tuning.tuned_devices(wanted, [device.name], workspace.journal):
        assert (sysfs.selected(scheduler), sysfs.text(ahead)) == ("mq-deadline", "512")
    assert (sysfs.selected(scheduler), sysfs.text(ahead)) == before
    with pytest.raises(UnsupportedError, match="'cfq' is not available"):  # noqa: SIM117
        with tuning.tuned_devices({"io_scheduler": "cfq"}, [device.name], workspace.journal):
            pytest.fail("went on")


@pytest.mark.parametrize(
    "wanted",
    [{"read_ahead_kib": "64", "max_sectors_kib": "256"}, {"rotational": "1", "read_ahead_kib": "64"},
     {"rotational": "1"}, {"io_scheduler": "mq-deadline"}],
)  # fmt: skip
def test_what_a_setting_does_to_others_is_neither_measured_nor_left(
    wanted: dict[str, str], loop: Callable[[], Path], workspace: Workspace
) -> None:
    """Of a hard disk, each new limit raises the read-ahead, also when it is put back; a new scheduler sets the number
    of requests."""
    device = loop()
    own = queue(device)
    (own / "rotational").write_text("1" if "max_sectors_kib" in wanted else "0")
    (own / "nr_requests").write_text("100")
    (own / "read_ahead_kb").write_text("192")
    files = {name: own.parent / file for name, file in tuning.OF_DEVICES.items()}
    before = {name: sysfs.text(file) for name, file in files.items()}
    if "mq-deadline" not in (before["io_scheduler"] or ""):
        pytest.skip("this kernel has no mq-deadline")
    with tuning.tuned_devices(wanted, [device.name], workspace.journal):
        assert {name: sysfs.selected(files[name]) or sysfs.text(files[name]) for name in wanted} == wanted
    assert {name: sysfs.text(file) for name, file in files.items()} == before


def test_what_the_kernel_rounds_is_refused_and_put_back(
    loop: Callable[[], Path], workspace: Workspace
) -> None:
    """The kernel stores read_ahead_kb in pages (block/blk-sysfs.c): 5 KiB become 4 KiB."""
    device = loop()
    ahead = queue(device) / "read_ahead_kb"
    before = ahead.read_text()
    with pytest.raises(UnsupportedError, match="'5' was written, but the kernel uses '4'"):  # noqa: SIM117
        with tuning.tuned_devices({"read_ahead_kib": "5"}, [device.name], workspace.journal):
            pytest.fail("went on")
    assert ahead.read_text() == before


def test_a_trial_has_them_and_says_so(workspace: Workspace) -> None:
    before = sysfs.selected(HUGE)
    if before is None:
        pytest.skip("this kernel has no huge pages")
    other = "never" if before != "never" else "always"
    record = run(workspace, cell(tuning={"transparent_hugepage": other, "read_ahead_kib": "512"}))
    assert record.metrics, record.error
    assert record.provenance.device["read_ahead_kib"] == 512
    assert sysfs.selected(HUGE) == before


@pytest.mark.parametrize("filesystem", ["ext4", "btrfs"])
@pytest.mark.parametrize("cache", list(Cache))
def test_a_file_system_reads_ahead_as_far_as_asked(
    filesystem: str, cache: Cache, workspace: Workspace
) -> None:
    """btrfs has 4 MiB of its own, which each mount makes anew, whatever its disk has."""
    reading = {"rw": "read", "bs": "128k", "size": "16m", "number_ios": 8, "invalidate": 1}
    record = run(workspace, cell("fio", reading, filesystem, cache=cache, tuning={"read_ahead_kib": "64"}))
    assert record.metrics, record.error
    assert value(record, "device_read_bytes") < 1.5 * (1 << 20)


def test_huge_pages_neither_change_another_setting_nor_leave_it_changed(workspace: Workspace) -> None:
    """With huge pages the kernel raises vm.min_free_kbytes."""
    before, huge = sysfs.text(FREE), sysfs.selected(HUGE)
    if before is None or huge is None:
        pytest.skip("this kernel has no huge pages")
    other = "always" if huge != "always" else "madvise"
    try:
        FREE.write_text("9000")
        with tuning.tuned({"vm.min_free_kbytes": "8192", "transparent_hugepage": other}, workspace.journal):
            assert (sysfs.text(FREE), sysfs.selected(HUGE)) == ("8192", other)
        assert (sysfs.text(FREE), sysfs.selected(HUGE)) == ("9000", huge)
        with tuning.tuned({"transparent_hugepage": other}, workspace.journal):
            pass
        assert (sysfs.text(FREE), sysfs.selected(HUGE)) == ("9000", huge)
    finally:
        FREE.write_text(before)


@pytest.mark.skipif(not facts.IDLE_LATENCY.exists(), reason="this kernel has no CPU idle latency limit")
def test_the_latency_of_idle_cpus_is_limited_while_it_is_asked_for(workspace: Workspace) -> None:
    with tuning.tuned({"cpu_dma_latency": "0"}, workspace.journal):
        assert facts.idle_latency_us() == 0
        with tuning.alone(), tuning.tuned({"cpu_dma_latency": "0"}, workspace.journal):
            pass  # another campaign that has changed settings does not prevent it: nothing has to be restored
        with (
            pytest.raises(UnsupportedError, match="37 was requested, but the kernel uses 0"),
            tuning.tuned({"cpu_dma_latency": "37"}, workspace.journal),
        ):
            pass
    held = [each for each in Path("/proc/self/fd").iterdir() if each.resolve() == facts.IDLE_LATENCY]
    assert held == [], "the request ends with its file"


def test_a_kill_leaves_them_to_the_next_run() -> None:
    before = [sysfs.text(SWAPPINESS), sysfs.text(SWAPPINESS.with_name("dirty_ratio"))]
    done = subprocess.run([sys.executable, "-c", KILLED], check=False, timeout=LIMIT_S)
    assert done.returncode == -signal.SIGKILL
    try:
        assert sysfs.text(SWAPPINESS) == "13"
    finally:
        undone, failures = cleanup.clean_all()
    assert (len(undone), failures) == (2, [])
    assert [sysfs.text(SWAPPINESS), sysfs.text(SWAPPINESS.with_name("dirty_ratio"))] == before


@pytest.mark.parametrize("replaced", [False, True])
def test_a_later_device_of_the_same_name_keeps_its_settings(replaced: bool) -> None:
    with loop_devices.added() as device:
        ahead = queue(device) / "read_ahead_kb"
        ahead.write_text("192")
        killed = [sys.executable, "-c", KILLED_WITH_A_DEVICE, device.name]
        subprocess.run(killed, check=False, timeout=LIMIT_S)
        assert sysfs.text(ahead) == "64"
        if replaced:
            loop_devices.renew(device)
            ahead.write_text("256")
        _, failures = cleanup.clean_all()
        assert failures == []
        assert sysfs.text(ahead) == ("256" if replaced else "192")


def test_nothing_is_put_back_during_a_trial_of_another_campaign(workspace: Workspace) -> None:
    before = [sysfs.text(SWAPPINESS), sysfs.text(SWAPPINESS.with_name("dirty_ratio"))]
    subprocess.run([sys.executable, "-c", KILLED], check=False, timeout=LIMIT_S)
    try:
        with tuning.tuned({"vm.swappiness": "11"}, workspace.journal):
            assert cleanup.clean_all() == ([], [])
            assert sysfs.text(SWAPPINESS) == "11"
    finally:
        undone, failures = cleanup.clean_all()
    assert (len(undone), failures) == (2, [])
    assert [sysfs.text(SWAPPINESS), sysfs.text(SWAPPINESS.with_name("dirty_ratio"))] == before


def test_what_this_machine_lacks_is_refused_before_anything_is_made() -> None:
    wrong = {"vm.no_such_thing": "1", "transparent_hugepage": "sometimes", "vm.min_free_kbytes": "99999999"}
    for name, setting in wrong.items():
        with pytest.raises((UnsupportedError, UsageError), match=name):
            feasibility.check("test-0010", [cell(tuning={name: setting})], frozenset())
    if not Path("/run/systemd/system").is_dir():
        with pytest.raises(UnsupportedError, match="systemd does not run"):
            feasibility.check("test-0010", [cell(tuning={"stop_timers": "fstrim.timer"})], frozenset())
