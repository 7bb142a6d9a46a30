"""Tests of the facts of a machine, read from trees of files: a laptop, and a guest that shows almost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fslab.errors import UsageError
from fslab.machine import facts
from fslab.machine.advice import advise
from fslab.machine.fact import Weight


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


@pytest.fixture
def laptop(tmp_path: Path) -> Path:
    cpu = "sys/devices/system/cpu"
    return write(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: Core i7\nmicrocode\t: 0xf4\nflags\t\t: fpu vmx",
            "proc/meminfo": "MemTotal:       16384 kB\nSwapTotal:      2048 kB",
            "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1 root=/dev/sda1 quiet",
            "proc/sys/vm/swappiness": "60",
            "proc/1/comm": "systemd",
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave",
            f"{cpu}/cpu1/cpufreq/scaling_governor": "performance",
            f"{cpu}/intel_pstate/no_turbo": "0",
            f"{cpu}/smt/active": "1",
            f"{cpu}/vulnerabilities/meltdown": "Mitigation: PTI",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
            "sys/class/dmi/id/sys_vendor": "LENOVO",
            "sys/class/dmi/id/bios_version": "N1",
            "sys/devices/system/node/node0/x": "",
        },
    )


def test_a_laptop_tells_its_settings(laptop: Path) -> None:
    found = facts.gather(laptop)
    told = {
        "cpu": "Core i7", "microcode": "0xf4", "memory_bytes": 16 << 20, "swap_bytes": 2 << 20, "swappiness": 60,
        "governor": "performance, powersave", "turbo": True, "smt": True, "transparent_hugepage": "madvise",
        "clocksource": "hpet", "vendor": "LENOVO", "firmware": "N1", "numa_nodes": 1, "hypervisor": False,
        "virtualisation": None, "mitigations": {"meltdown": "Mitigation: PTI"},
        "images_filesystem": None,  # the mounts of this machine are not those of the tree
    }  # fmt: skip
    assert {name: found[name] for name in told} == told


def test_a_bare_guest_has_unknown_facts_and_no_zeros(tmp_path: Path) -> None:
    found = facts.gather(write(tmp_path, {"proc/cpuinfo": "vendor_id\t: User Mode Linux\nmodel name\t: UML"}))
    assert (found["cpu"], found["virtualisation"]) == ("UML", "uml")
    for name in (
        "memory_bytes",
        "governor",
        "turbo",
        "smt",
        "swappiness",
        "vendor",
        "mitigations",
        "hypervisor",
    ):
        assert found[name] is None, name
    assert found["kernel"]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"sys/class/dmi/id/product_name": "KVM"}, "kvm"),
        ({"sys/class/dmi/id/product_name": "Standard PC", "sys/class/dmi/id/sys_vendor": "QEMU"}, "qemu"),
        ({"sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "amazon"),
        ({"sys/hypervisor/type": "xen"}, "xen"),
        ({"proc/cpuinfo": "flags : fpu hypervisor"}, "unknown hypervisor"),
        ({"proc/cpuinfo": "flags : fpu"}, None),
    ],
)
def test_hypervisors_by_name(files: dict[str, str], name: str | None, tmp_path: Path) -> None:
    assert facts.virtualisation(write(tmp_path, files)) == name


def test_boost_counts_the_other_way_round(tmp_path: Path) -> None:
    boost = "sys/devices/system/cpu/cpufreq/boost"
    assert facts.gather(write(tmp_path, {boost: "0"}))["turbo"] is False
    assert facts.gather(write(tmp_path, {boost: "1"}))["turbo"] is True


def test_the_digest_stands_for_what_matters_only() -> None:
    known = {
        "kernel": "6.1",
        "hostname": "a",
        "boot_id": "1",
        "memory_bytes": 24 << 30,
        "kernel_command_line": "quiet",
    }
    same = {
        **known,
        "hostname": "b",
        "boot_id": "2",
        "memory_bytes": (24 << 30) - 1000,
        "kernel_command_line": "BOOT_IMAGE=/x quiet",
    }
    assert facts.digest(known) == facts.digest(same)
    for name, value in (
        ("kernel", "6.2"),
        ("memory_bytes", 16 << 30),
        ("kernel_command_line", "quiet mitigations=off"),
    ):
        assert facts.digest(known) != facts.digest({**known, name: value}), name


def test_every_fact_of_the_moment_is_never_compared() -> None:
    passing = {name for name, fact in facts.CATALOGUE.items() if fact.weight is Weight.PASSING}
    assert passing == {"boot_id", "load_1min", "init", "machine_id"}


def test_names_that_may_differ() -> None:
    facts.check_names(["kernel", "machine", "governor", "device.model", "parameters.bs"])
    with pytest.raises(UsageError, match="did you mean 'governor'"):
        facts.check_names(["govenor"])


def test_advice_names_the_tuning(laptop: Path) -> None:
    found = {each.tuning: each.what for each in advise({**facts.gather(laptop), "load_1min": 3.0, "cpus": 4})}
    assert "performance, powersave" in found["cpu_governor: performance"]
    assert "turbo" in found["cpu_turbo: off"]
    assert "timers" in found["stop_timers: apt-daily.timer apt-daily-upgrade.timer fstrim.timer man-db.timer"]
    assert found["vm.swappiness: 1"]
    assert "hpet" in found[None] or "3.0" in found[None]
    quiet = {
        "governor": "performance",
        "turbo": False,
        "clocksource": "tsc",
        "load_1min": 0.1,
        "cpus": 4,
        "init": "bash",
    }
    assert advise(quiet) == []
    assert advise({}) == []


def test_a_machine_id_is_a_digest_and_never_shown_itself(tmp_path: Path) -> None:
    known = "0123456789abcdef0123456789abcdef"
    file = tmp_path / "etc/machine-id"
    file.parent.mkdir()
    found = []
    for text in (f"{known}\n", known, f"{known[:-1]}0\n", "uninitialized\n", ""):
        file.write_text(text)
        found.append(facts.machine_id(tmp_path))
    assert found[0] == found[1] != found[2]
    assert known[:8] not in str(found[0])
    assert found[3:] == [None, None]
    file.unlink()
    assert facts.machine_id(tmp_path) is None
