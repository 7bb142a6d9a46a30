"""Tests of tuning: which file each setting is written to, that it is checked and later restored; systemd timers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fslab.errors import (
    BusyError,
    FslabError,
    NeedsRootError,
    ToolFailedError,
    UnsafeError,
    UnsupportedError,
    UsageError,
)
from fslab.machine import _settings, facts, tunables, tuning
from fslab.machine._settings import Write, writes
from fslab.system import memory, proc


@dataclass
class Noted:
    """A journal in memory."""

    pending: list[tuple[str, str]] = field(default_factory=list)

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        self.pending.append((kind, target))
        return target

    def undone(self, entry: str) -> None:
        self.pending = [(kind, target) for kind, target in self.pending if target != entry]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with files that look like the kernel's settings, and use them instead of the kernel's."""
    (tmp_path / "proc/vm").mkdir(parents=True)
    for name, value in {
        "swappiness": "60",
        "dirty_bytes": "0",
        "dirty_ratio": "20",
        "drop_caches": "0",
    }.items():
        (tmp_path / "proc/vm" / name).write_text(value + "\n")
    for cpu in ("cpu0", "cpu1"):
        frequency = tmp_path / "cpu" / cpu / "cpufreq"
        frequency.mkdir(parents=True)
        (frequency / "scaling_governor").write_text("powersave\n")
        (frequency / "scaling_available_governors").write_text("performance powersave \n")
    (tmp_path / "huge").mkdir()
    (tmp_path / "huge/enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(tuning, "LOCK", tmp_path / "lock")
    for name, path in (("SYSCTL", "proc"), ("CPUS", "cpu"), ("HUGE", "huge")):
        monkeypatch.setattr(_settings, name, tmp_path / path)
    return tmp_path


def test_only_known_settings_and_no_actions(tree: Path) -> None:
    assert writes("vm.swappiness", "1") == [Write(path=tree / "proc/vm/swappiness", value="1")]
    for name in (
        "vm.drop_caches",
        "kernel.core_pattern",
        "vm.../x",
        "vm.nothing",
        "vm/swappiness",
        "cpu_turbo",
    ):
        with pytest.raises(UnsupportedError, match="no such setting"):
            writes(name, "1")


def test_every_processor_has_its_governor_and_only_one_that_it_knows(tree: Path) -> None:
    assert [write.path.parts[-3] for write in writes("cpu_governor", "performance")] == [
        "cpu0",
        "cpu1",
    ]
    with pytest.raises(UnsupportedError, match="performance, powersave"):
        writes("cpu_governor", "fast")


def test_turbo_is_written_the_way_round_that_the_driver_has_it(tree: Path) -> None:
    boost = tree / "cpu/cpufreq/boost"
    boost.parent.mkdir()
    boost.write_text("1\n")
    assert writes("cpu_turbo", "off") == [Write(path=boost, value="0")]
    no_turbo = tree / "cpu/intel_pstate/no_turbo"
    no_turbo.parent.mkdir()
    no_turbo.write_text("0\n")
    assert writes("cpu_turbo", "off") == [Write(path=no_turbo, value="1")]
    with pytest.raises(UsageError, match="'maybe' is not one of on"):
        writes("cpu_turbo", "maybe")


@pytest.mark.parametrize("state", ["forceoff", "notsupported", "notimplemented", None])
def test_smt_that_cannot_be_put_back_is_left_alone(state: str | None, tree: Path) -> None:
    control = tree / "cpu/smt/control"
    control.parent.mkdir()
    if state:
        control.write_text(state)
    with pytest.raises(UnsupportedError, match="no such setting"):
        writes("cpu_smt", "off")
    control.write_text("on")
    assert writes("cpu_smt", "off") == [Write(path=control, value="off")]


def test_what_is_in_force_is_what_brings_it_back(tree: Path) -> None:
    vm = tree / "proc/vm"
    assert _settings.in_force(vm / "dirty_bytes") == (vm / "dirty_ratio", "20")
    assert _settings.in_force(vm / "dirty_ratio") == (vm / "dirty_ratio", "20")
    assert _settings.in_force(tree / "huge/enabled") == (tree / "huge/enabled", "madvise")


def test_settings_are_made_and_put_back_in_reverse_order(tree: Path) -> None:
    journal = Noted()
    swappiness = tree / "proc/vm/swappiness"
    governors = list(tree.glob("cpu/cpu*/cpufreq/scaling_governor"))
    with tuning.tuned({"vm.swappiness": "10", "cpu_governor": "performance"}, journal):
        assert swappiness.read_text() == "10"
        assert {path.read_text() for path in governors} == {"performance"}
        assert journal.pending[0] == ("tuning", f"{swappiness}=60")
        assert len(journal.pending) == 3
    assert swappiness.read_text() == "60"
    assert {path.read_text() for path in governors} == {"powersave"}
    assert journal.pending == []


def test_processors_are_there_before_they_get_a_governor(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = tree / "cpu/smt/control"
    control.parent.mkdir()
    control.write_text("off")
    written: list[str] = []
    monkeypatch.setattr(tuning, "_write", lambda write: written.append(write.path.name))
    monkeypatch.setattr(tuning, "_verify", lambda made: written.append(f"{len(made)} verified"))
    with tuning.tuned({"vm.swappiness": "1", "cpu_governor": "performance", "cpu_smt": "on"}, Noted()):
        assert written == ["control", "swappiness", "scaling_governor", "scaling_governor", "4 verified"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"vm.dirty_bytes": "1048576", "vm.dirty_ratio": "10"}, "replace each other"),
        ({"vm.dirty_background_bytes": "8192", "vm.dirty_background_ratio": "1"}, "replace each other"),
        ({"vm.dirty_background_ratio": "20", "vm.dirty_ratio": "20"}, "half of the latter"),
        ({"vm.dirty_background_ratio": "30"}, "and vm.dirty_ratio 20: the kernel"),
        ({"vm.dirty_background_ratio": "19"}, None),
        ({"vm.dirty_ratio": "5"}, None),
        ({"vm.dirty_background_ratio": "30", "vm.dirty_bytes": "1048576"}, None),
    ],
)
def test_settings_that_the_kernel_would_not_follow_beside_others(
    tree: Path, settings: dict[str, str], says: str | None
) -> None:
    (tree / "proc/vm/dirty_background_ratio").write_text("10\n")
    with nullcontext() if says is None else pytest.raises(UsageError, match=says):
        _settings.check_together(settings)


def test_a_value_that_does_not_hold_is_refused_and_put_back(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel changes some values, such as read_ahead_kb, which it rounds down to whole pages."""
    swappiness, real = tree / "proc/vm/swappiness", _settings.held
    monkeypatch.setattr(_settings, "held", lambda path: "4" if path.read_text() == "5" else real(path))
    with (
        pytest.raises(UnsupportedError, match="'5' was written, but the kernel uses '4'"),
        tuning.tuned({"vm.swappiness": "5"}, Noted()),
    ):
        pytest.fail("went on")
    assert swappiness.read_text() == "60"


class TestLock:
    """Tests of the lock of the settings: only one campaign at once changes them, and no other user can hold it."""

    def test_the_second_one_is_refused_until_the_first_has_ended(self, tree: Path) -> None:
        with tuning.alone(), pytest.raises(BusyError, match="another campaign"), tuning.alone():
            pytest.fail("went on")
        with tuning.alone():
            assert tuning.LOCK.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("how", ["readable", "link", "fifo", "directory"])
    def test_a_file_that_others_could_hold_is_not_used(self, how: str, tree: Path) -> None:
        match how:
            case "readable":
                tuning.LOCK.touch()
                tuning.LOCK.chmod(0o644)
            case "link":
                (tree / "elsewhere").touch(0o600)
                tuning.LOCK.symlink_to(tree / "elsewhere")
            case "fifo":
                os.mkfifo(tuning.LOCK, 0o600)
            case _:
                tuning.LOCK.mkdir(0o700)
        with pytest.raises(UnsafeError), tuning.tuned({"vm.swappiness": "5"}, Noted()):
            pytest.fail("went on")
        assert (tree / "proc/vm/swappiness").read_text() == "60\n"

    @pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
    def test_nor_is_one_of_another_user(self, tree: Path) -> None:
        tuning.LOCK.touch(0o600)
        os.chown(tuning.LOCK, 65534, 65534)
        with pytest.raises(UnsafeError, match="other users can open it"), tuning.alone():
            pytest.fail("went on")


def test_devices_are_set_with_those_below_them(tmp_path: Path) -> None:
    disks = tmp_path / "devices/pci"
    for name in ("sda", "sdb"):
        (disks / name / "queue").mkdir(parents=True)
        (disks / name / "queue/scheduler").write_text("none [mq-deadline]\n")
    partition, virtual = disks / "sda/sda1", tmp_path / "devices/virtual/dm-0"
    partition.mkdir()
    (virtual / "queue").mkdir(parents=True)
    (virtual / "queue/scheduler").write_text("none\n")
    (virtual / "slaves").mkdir()
    (virtual / "slaves/sda1").symlink_to(partition)
    (virtual / "slaves/sdb").symlink_to(disks / "sdb")
    (tmp_path / "class/block").mkdir(parents=True)
    (tmp_path / "class/block/dm-0").symlink_to(virtual)
    found = tuning.queues(["dm-0"], tmp_path)
    assert found == [virtual / "queue", disks / "sda/queue", disks / "sdb/queue"]
    made = _settings.device_writes("io_scheduler", "mq-deadline", found)
    assert made == [
        Write(path=disks / name / "queue/scheduler", value="mq-deadline") for name in ("sda", "sdb")
    ]
    with pytest.raises(UnsupportedError, match="none, mq-deadline"):
        _settings.device_writes("io_scheduler", "bfq", found)
    with pytest.raises(UnsupportedError, match="no such setting"):
        _settings.device_writes("read_ahead_kib", "128", found)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/proc/sys/vm/swappiness", True),
        ("/proc/sys/kernel/core_pattern", False),
        ("/proc/sys/vm/mmap_min_addr", False),
        ("/proc/sys/vm/drop_caches", False),
        ("/proc/sys/vm/../kernel/core_pattern", False),
        ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", True),
        ("/sys/devices/system/cpu/smt/control", True),
        ("/sys/devices/virtual/block/loop0/queue/scheduler", True),
        ("/sys/devices/virtual/block/loop0/queue/write_cache", False),
        ("/sys/kernel/mm/transparent_hugepage/enabled", True),
        ("/sys/devices/virtual/bdi/btrfs-7/read_ahead_kb", True),
        ("/sys/devices/virtual/bdi/btrfs-7/max_ratio", False),
        ("/etc/queue/scheduler", False),
    ],
)
def test_what_a_journal_may_have_written_again(path: str, ours: bool) -> None:
    assert _settings.is_setting(Path(path)) is ours


def test_a_file_system_whose_read_ahead_cannot_be_set_is_refused() -> None:
    """Only those on the number of their disk have its read-ahead."""
    assert _settings.mount_writes("read_ahead_kib", "64", "xfs", ["sda"], "8:0") == []
    assert _settings.mount_writes("nr_requests", "64", "bcachefs", ["sda"], "0:51") == []
    with pytest.raises(UnsupportedError, match="bcachefs has a read-ahead of its own"):
        _settings.mount_writes("read_ahead_kib", "64", "bcachefs", ["no-disk"], "0:51")


class TestTimers:
    """Tests of timers with a simulated systemctl: which commands would run."""

    @pytest.fixture
    def ran(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        active, calls = {"a.timer", "c.timer"}, []

        def run(argv: Sequence[str], **_: Any) -> proc.Completed:
            calls.append(list(argv))
            name = argv[-1]
            match argv[1]:
                case "stop":
                    active.discard(name)
                case "start":
                    active.add(name)
            code = 3 if argv[1] == "is-active" and name not in active else 0
            usage = proc.Usage(
                user_s=0, system_s=0, max_rss_bytes=0, voluntary_switches=0, involuntary_switches=0
            )
            return proc.Completed(
                argv=tuple(argv), returncode=code, stdout="", stderr="", duration_s=0.0, usage=usage
            )

        monkeypatch.setattr(proc, "run", run)
        monkeypatch.setattr(tuning, "check_timers", lambda: None)
        return calls

    def test_only_those_that_were_active_are_started_again(self, ran: list[list[str]]) -> None:
        journal = Noted()
        with tuning.timers_stopped(tunables.timers("a.timer, b.timer c.timer"), journal):
            assert journal.pending == [("timer", "a.timer"), ("timer", "c.timer")]
            ran.clear()
        assert ran == [
            ["systemctl", "start", "--", "c.timer"],
            ["systemctl", "start", "--", "a.timer"],
        ]
        assert journal.pending == []

    def test_one_that_cannot_be_stopped_ends_it_and_is_started(
        self, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tuning, "_is_active", lambda _: True)
        with (
            pytest.raises(ToolFailedError, match="still active"),
            tuning.timers_stopped(["a.timer"], Noted()),
        ):
            pytest.fail("went on")
        assert ran[-1] == ["systemctl", "start", "--", "a.timer"]

    def test_names(self) -> None:
        assert tunables.timers("") == ()
        for name in ("apt-daily.service", "-x.timer;", "a/b.timer", "x"):
            with (
                pytest.raises(UsageError, match="not the name of a timer"),
                tuning.tuned({"stop_timers": name}, Noted()),
            ):
                pytest.fail("went on")
        assert tuning.is_timer("fstrim.timer")
        assert not tuning.is_timer("../x.service")

    def test_without_systemd_they_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedError, match="systemd does not run"):
            tuning.check_timers(tmp_path / "nothing")
        with pytest.raises(FslabError):
            tuning.check({"stop_timers": "no-timer"})


class TestIdle:
    """Tests of the limit for the latency of idle CPUs, which holds while its file is open."""

    def test_what_is_requested_is_written_in_binary_and_verified(self, tmp_path: Path) -> None:
        device = tmp_path / "cpu_dma_latency"
        device.write_bytes(facts.NO_LIMIT_US.to_bytes(4, "little"))
        with tuning.latency_limited(None, device):
            assert facts.idle_latency_us(device) == facts.NO_LIMIT_US, "nothing was requested"
        with tuning.latency_limited("70000", device):
            assert device.read_bytes() == b"\x70\x11\x01\x00"
            assert facts.idle_latency_us(device) == 70000

    def test_a_kernel_without_it_refuses(self, tmp_path: Path) -> None:
        with (
            pytest.raises(UnsupportedError, match="has no limit for the latency of idle CPUs"),
            tuning.latency_limited("0", tmp_path / "nothing"),
        ):
            pass

    @pytest.mark.parametrize(
        ("flags", "device", "limit"),
        [("fpu hypervisor", True, "0"), ("fpu", True, "2"), ("fpu", False, None)],
    )
    def test_the_machine_decides_which_limit_keeps_cpus_ready(
        self, tmp_path: Path, flags: str, device: bool, limit: str | None
    ) -> None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/cpuinfo").write_text(f"flags : {flags}\n")
        path = tmp_path / "cpu_dma_latency"
        if device:
            path.write_bytes(facts.NO_LIMIT_US.to_bytes(4, "little"))
        assert tuning.latency_us("auto", path, tmp_path) == limit
        assert tuning.latency_us("7", path, tmp_path) == "7"
        tunables.check("cpu_dma_latency", "auto")
        with pytest.raises(ValueError, match=r"from 0 to 100$"):
            tunables.check("vm.compaction_proactiveness", "auto")
        with tuning.latency_limited("auto", tmp_path / "nothing"):
            pass

    def test_another_user_than_root_runs_a_study_that_leaves_the_limit_to_the_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As quick does in a guest (docs/machines.md)."""
        (device := tmp_path / "cpu_dma_latency").touch()
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        monkeypatch.setattr(os, "access", lambda *_: False)
        tuning.check({"cpu_dma_latency": "auto"})
        assert tuning.latency_us("auto", device, tmp_path) is None
        for settings in ({"cpu_dma_latency": "7"}, {"cpu_dma_latency": "auto", "vm.swappiness": "1"}):
            with pytest.raises(NeedsRootError):
                tuning.check(settings)

    def test_a_limit_that_is_not_in_force_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        device = tmp_path / "cpu_dma_latency"
        device.touch()
        monkeypatch.setattr(facts, "idle_latency_us", lambda _: facts.NO_LIMIT_US)
        with (
            pytest.raises(UnsupportedError, match="but the kernel uses 2000000000"),
            tuning.latency_limited("0", device),
        ):
            pass

    def test_a_lower_limit_of_another_program_counts_only_as_what_the_machine_chose(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The study would be recorded with 100 µs, and measured with 1."""
        device = tmp_path / "cpu_dma_latency"
        device.touch()
        monkeypatch.setattr(facts, "idle_latency_us", lambda _: 1)
        monkeypatch.setattr(facts, "virtualisation", lambda _: None)
        with tuning.latency_limited("auto", device):
            pass
        with (
            pytest.raises(UnsupportedError, match="100 was requested, but the kernel uses 1") as refused,
            tuning.latency_limited("100", device),
        ):
            pass
        assert refused.value.hint == "another program requests less: end it, or write 1 in the study"

    @pytest.mark.parametrize(
        ("held", "fact"),
        [(b"\0\0\0\0", 0), (facts.NO_LIMIT_US.to_bytes(4, "little"), "no limit"), (None, None)],
    )
    def test_the_fact_tells_no_limit_from_unknown(
        self, tmp_path: Path, held: bytes | None, fact: object
    ) -> None:
        (tmp_path / "dev").mkdir()
        if held is not None:
            (tmp_path / "dev/cpu_dma_latency").write_bytes(held)
        assert facts.idle_latency(tmp_path) == fact


class TestBounds:
    """Tests of the limits of what a study can set, which are narrower than those of the kernel."""

    @pytest.mark.parametrize(
        "value",
        ["", "-1", "9999999999999999", "1" * 30, "../../x", "a/b", "1\n2", "x.service", "1;2", "٣", "1 2"],
    )
    def test_every_setting_has_them(self, value: str) -> None:
        for name in tunables.NAMES:
            if (name, value) != (tunables.TIMERS, ""):
                with pytest.raises(ValueError, match=r"is not|is not the name of a timer"):
                    tunables.check(name, value)

    @pytest.mark.parametrize(
        "name",
        [
            "vm.drop_caches", "vm.compact_memory", "vm.panic_on_oom", "vm.nr_hugepages", "vm.mmap_min_addr",
            "vm.overcommit_ratio", "vm.oom_kill_allocating_task", "kernel.panic", "vm.", "vm.../x", "vm.swappiness/",
        ],
    )  # fmt: skip
    def test_what_has_none_cannot_be_set(self, name: str) -> None:
        with pytest.raises(ValueError, match="cannot be set by a study"):
            tunables.check(name, "1")

    def test_an_amount_of_memory_is_a_share_of_what_there_is(self) -> None:
        """The limit depends on the machine's memory: of 1 GiB, 65536 kB (a sixteenth) are allowed, of 64 GiB more."""
        tunables.check("vm.min_free_kbytes", "262144", memory_bytes=64 << 30)
        tunables.check("vm.min_free_kbytes", "65536", memory_bytes=1 << 30)
        with pytest.raises(ValueError, match="at most 65536, 6% of this machine's memory"):
            tunables.check("vm.min_free_kbytes", "65537", memory_bytes=1 << 30)
        with pytest.raises(ValueError, match="50% of this"):
            tunables.check("vm.dirty_bytes", str((1 << 29) + 1), memory_bytes=1 << 30)

    def test_what_a_store_holds_is_checked_again_before_anything_is_written(
        self, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A resumed campaign takes its settings from the store, not from a study that has just been checked."""
        monkeypatch.setattr(memory, "total_bytes", lambda: 1 << 30)
        (tree / "proc/vm/min_free_kbytes").write_text("67584")
        for settings in ({"vm.min_free_kbytes": "99999999"}, {"vm.swappiness": "10", "cpu_governor": "../x"}):
            with pytest.raises(UsageError, match=r"tuning\."), tuning.tuned(settings, Noted()):
                pytest.fail("went on")
        for limit in ("x", "-1", str(10**12), ""):
            with (
                pytest.raises(UsageError, match=r"tuning\.cpu_dma_latency"),
                tuning.tuned({"cpu_dma_latency": limit}, Noted()),
            ):
                pytest.fail("went on")
        with pytest.raises(UsageError, match="io_scheduler"):
            _settings.device_writes("io_scheduler", "../x", [tree])
        assert (tree / "proc/vm/min_free_kbytes").read_text() == "67584"
        assert (tree / "proc/vm/swappiness").read_text().strip() == "60"
