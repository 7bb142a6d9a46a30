"""Facts of this machine that figures depend on, as a set that is stored with the figures. Only reads.

Each fact is declared with the meaning of a difference (``fact``).
"""

import hashlib
import hmac
import json
import os
import platform
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from fslab import __version__
from fslab.errors import UsageError, nearest
from fslab.machine import differences
from fslab.machine.differences import Circumstances, Difference
from fslab.machine.fact import (
    Fact,
    FactGroup,
    Value,
    Weight,
    alike,
    flag_of,
    is_real,
    memory_of,
    number_of,
    selected_of,
    text_of,
)
from fslab.system import mountinfo, paths, sysfs, warm_memory
from fslab.system.mountinfo import Mount

DMI = "sys/class/dmi/id"
# Prefixes of DMI vendor and product names, with their hypervisor, as in systemd-detect-virt(1) (src/basic/virt.c).
VENDORS = {
    "KVM": "kvm", "QEMU": "qemu", "Amazon EC2": "amazon", "Google Compute Engine": "google", "VMware": "vmware",
    "VMW": "vmware", "innotek GmbH": "virtualbox", "VirtualBox": "virtualbox", "Oracle Corporation": "virtualbox",
    "Xen": "xen", "Bochs": "bochs", "Parallels": "parallels", "BHYVE": "bhyve", "Hyper-V": "microsoft",
    "Apple Virtualization": "apple", "OpenStack": "kvm",
}  # fmt: skip
DMI_NAMES = ("product_name", "sys_vendor", "board_vendor", "bios_vendor")


def hypervisor(root: Path) -> Value:
    """Return whether the CPU flags contain ``hypervisor``, or None if /proc/cpuinfo has no flags."""
    flags = sysfs.field(root / "proc/cpuinfo", "flags")
    return None if flags is None else "hypervisor" in flags.split()


def virtualisation(root: Path) -> Value:
    """Return the hypervisor's name, ``unknown hypervisor`` if only the CPU flags show one, None if there is none."""
    if sysfs.field(root / "proc/cpuinfo", "vendor_id") == "User Mode Linux":
        return "uml"
    for said in (sysfs.text(root / DMI / name) for name in DMI_NAMES):
        for beginning, name in VENDORS.items():
            if said and said.startswith(beginning):
                return name
    if kind := sysfs.text(root / "sys/hypervisor/type"):
        return kind
    return "unknown hypervisor" if hypervisor(root) else None


def container(root: Path) -> Value:
    """Return the container manager, from systemd's container interface or a marker file; None if none is found."""
    if said := sysfs.text(root / "run/systemd/container"):
        return said
    for name, marker in (("docker", ".dockerenv"), ("podman", "run/.containerenv")):
        if (root / marker).exists():
            return name
    return None


def distribution(_: Path) -> Value:
    """Return ``PRETTY_NAME`` of os-release(5)."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _images(root: Path) -> Mount | None:
    """Return the mount that the images' directory lies on. The directory need not exist yet."""
    if not is_real(root):
        return None
    try:
        return mountinfo.containing(paths.images())
    except (OSError, ValueError):
        return None


def images_filesystem(root: Path) -> Value:
    """Return the type of the file system that loop images lie on."""
    mount = _images(root)
    return mount.filesystem if mount else None


def images_mount_options(root: Path) -> Value:
    """Return the options of the mount that loop images lie on, and of its superblock."""
    mount = _images(root)
    return mount.options if mount else None


def machine_id(root: Path) -> Value:
    """Return a digest of machine-id(5), because the id itself is confidential. None if it is not set yet."""
    text = (sysfs.text(root / "etc/machine-id") or "").strip()
    if not re.fullmatch("[0-9a-f]{32}", text):
        return None
    return hmac.digest(bytes.fromhex(text), b"fslab", "sha256").hex()[:16]


VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"
# File names. They differ with each installed kernel and have no effect by themselves.
_BOOT_FILES = re.compile(r"(?:BOOT_IMAGE|initrd)=\S*\s*")
# Options that fslab gives its guests: directories, whose path contains the campaign's id, and descriptors.
_OF_ONE_RUN = re.compile(r'(?<!\S)(?:fslab_\w+=|con\d*=\S*fd:)(?:"[^"]*"|\S)*\s*')
_PREEMPTION = re.compile(r"\bPREEMPT\w*")


def mitigations(root: Path) -> Value:
    """Return the kernel's mitigation for each known vulnerability of the processor (admin-guide/hw-vuln)."""
    found = {path.name: sysfs.text(path) for path in (root / VULNERABILITIES).glob("*")}
    return {name: text for name, text in sorted(found.items()) if text} or None


def preemption(_: Path) -> Value:
    """Return the preemption model in the kernel's version string, such as ``PREEMPT_DYNAMIC``."""
    found = _PREEMPTION.search(os.uname().version)
    return found[0] if found else None


def command_line(value: object) -> str:
    """Return the command line without the names of the booted files, and without a guest's options for one run."""
    return _OF_ONE_RUN.sub("", _BOOT_FILES.sub("", str(value))).strip()


CPUS = "sys/devices/system/cpu"


def model(root: Path) -> Value:
    """Return ``model name`` on x86, ``Model`` on some ARM kernels, otherwise the part number."""
    cpuinfo = root / "proc/cpuinfo"
    names = ("model name", "Model", "CPU part")
    return next((found for name in names if (found := sysfs.field(cpuinfo, name))), None)


def each_cpu(name: str, root: Path) -> Value:
    """Return the value of a cpufreq file for all processors; different values are joined by commas."""
    found = {sysfs.text(path) for path in (root / CPUS).glob(f"cpu[0-9]*/cpufreq/{name}")}
    return ", ".join(sorted(text for text in found if text)) or None


def turbo(root: Path) -> Value:
    """Return whether clock rates above the nominal one are allowed (admin-guide/pm/intel_pstate, cpufreq)."""
    off = sysfs.number(root / CPUS / "intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = sysfs.number(root / CPUS / "cpufreq/boost")
    return None if boost is None else boost == 1


def nodes(root: Path) -> Value:
    """Return the number of memory nodes, or None on a kernel without NUMA."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None


HUGE = "sys/kernel/mm/transparent_hugepage"
# Settings of sysctl/vm.rst that decide when and how much dirty data is written back, and what is evicted first.
VM = (
    "swappiness", "dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes",
    "dirty_expire_centisecs", "dirty_writeback_centisecs", "vfs_cache_pressure",
)  # fmt: skip


# The memory that the firmware and the kernel reserve varies slightly from boot to boot.
TOLERANCE = 0.02
_STEP = 64 << 20


def rounded(value: int) -> Value:
    """Round to whole GiB, below 2 GiB to steps of 64 MiB. Below 128 MiB the value is returned unchanged."""
    if value >= 2 << 30:
        return f"{round(value / (1 << 30))} GiB"
    if value < 2 * _STEP:
        return value
    return f"{round(value / _STEP) * (_STEP >> 20)} MiB"


IDLE_LATENCY = Path("/dev/cpu_dma_latency")
NO_LIMIT_US = 2_000_000_000  # PM_QOS_CPU_LATENCY_DEFAULT_VALUE


def idle_latency_us(device: Path = IDLE_LATENCY) -> int | None:
    """Return how long a CPU may take to leave an idle state, the smallest limit that any program requests;
    ``NO_LIMIT_US`` if none does. None if it is unknown: only root may read it."""
    try:
        return int.from_bytes(device.read_bytes()[:4], "little", signed=True)
    except OSError:
        return None


def idle_latency(root: Path) -> Value:
    """Return the limit for a record: microseconds, ``no limit``, or None if it is unknown."""
    found = idle_latency_us(root / IDLE_LATENCY.relative_to("/"))
    return "no limit" if found == NO_LIMIT_US else found


def _of(
    group: FactGroup, weight: Weight = Weight.DECISIVE, **readers: Callable[[Path], Value]
) -> Iterator[Fact]:
    """Yield facts of a group by name, each with what reads it."""
    return (Fact(name=name, group=group, read=read, weight=weight) for name, read in readers.items())


def _settings(**readers: tuple[str, Callable[[Path], Value]]) -> Iterator[Fact]:
    """Yield facts by name, each with the setting of a study that replaces it, and what reads it."""
    for name, (tuned_by, read) in readers.items():
        yield Fact(name=name, group=FactGroup.SETTINGS, read=read, tuned_by=tuned_by)


FACTS = (
    *_of(FactGroup.HOST, Weight.SHOWN, hostname=lambda _: os.uname().nodename),
    *_of(FactGroup.HOST, Weight.PASSING, machine_id=machine_id),
    *_of(
        FactGroup.HOST,
        architecture=lambda _: os.uname().machine,
        hypervisor=hypervisor,
        virtualisation=virtualisation,
        container=container,
        vendor=text_of(f"{DMI}/sys_vendor"),
        product=text_of(f"{DMI}/product_name", "proc/device-tree/model"),
        firmware=text_of(f"{DMI}/bios_version"),
    ),
    *_of(FactGroup.HOST, Weight.SHOWN, distribution=distribution),
    *_of(FactGroup.HOST, Weight.PASSING, init=text_of("proc/1/comm")),
    *_of(FactGroup.TOOLS, Weight.SHOWN, fslab=lambda _: __version__),
    Fact(name="images_filesystem", group=FactGroup.IMAGES, read=images_filesystem, medium="loop"),
    Fact(name="images_mount_options", group=FactGroup.IMAGES, read=images_mount_options, medium="loop"),
    *_of(
        FactGroup.HOST,
        Weight.PASSING,
        boot_id=text_of("proc/sys/kernel/random/boot_id"),
        load_1min=lambda _: os.getloadavg()[0],
    ),
    *_of(
        FactGroup.KERNEL,
        kernel=lambda _: os.uname().release,
        kernel_build=lambda _: os.uname().version,
        preempt_model=preemption,
        mitigations=mitigations,
    ),
    *_of(FactGroup.KERNEL, Weight.SHOWN, kernel_taint=text_of("proc/sys/kernel/tainted")),
    Fact(
        name="kernel_command_line",
        group=FactGroup.SETTINGS,
        read=text_of("proc/cmdline"),
        canonical=command_line,
    ),
    *_of(
        FactGroup.SETTINGS,
        clocksource=text_of("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ),
    *_of(
        FactGroup.CPU,
        cpu=model,
        cpus=lambda _: os.cpu_count(),
        cpus_usable=lambda _: len(os.sched_getaffinity(0)),
        microcode=lambda root: sysfs.field(root / "proc/cpuinfo", "microcode"),
        numa_nodes=nodes,
        cpu_max_khz=number_of(f"{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"),
    ),
    *_settings(
        smt=("cpu_smt", flag_of(f"{CPUS}/smt/active")),
        turbo=("cpu_turbo", turbo),
        governor=("cpu_governor", lambda root: each_cpu("scaling_governor", root)),
    ),
    *_of(
        FactGroup.SETTINGS,
        energy_preference=lambda root: each_cpu("energy_performance_preference", root),
        cpufreq_driver=text_of(f"{CPUS}/cpu0/cpufreq/scaling_driver"),
    ),
    *_settings(cpu_dma_latency=("cpu_dma_latency", idle_latency)),
    *_of(FactGroup.SETTINGS, Weight.SHOWN, idle_driver=text_of(f"{CPUS}/cpuidle/current_driver")),
    Fact(
        name="memory_bytes",
        group=FactGroup.MEMORY,
        read=memory_of("MemTotal"),
        canonical=rounded,
        tolerance=TOLERANCE,
    ),
    *_of(FactGroup.MEMORY, swap_bytes=memory_of("SwapTotal")),
    *_settings(transparent_hugepage=("transparent_hugepage", selected_of(f"{HUGE}/enabled"))),
    *_of(
        FactGroup.SETTINGS,
        free_page_reporting=lambda root: warm_memory.is_reported(root / "sys"),
        proactive_reclaim_s=lambda root: warm_memory.eviction_age_s(root / "sys"),
        transparent_hugepage_defrag=selected_of(f"{HUGE}/defrag"),
        zswap=flag_of("sys/module/zswap/parameters/enabled"),
    ),
    *_settings(**{name: (f"vm.{name}", number_of(f"proc/sys/vm/{name}")) for name in VM}),
)
DIGEST = "digest"
# Prefixes of names that are not in the catalogue: facts of devices, parameters of a study's cells.
PARTS = ("device.", "tuning.", "parameters.", "medium.", "layout.")
IDENTITY = (
    "hostname", "kernel", "kernel_build", "architecture", "cpu", "cpus", "kernel_command_line", "memory_bytes",
)  # fmt: skip
CATALOGUE: dict[str, Fact] = {fact.name: fact for fact in FACTS}


def gather(root: Path = Path("/")) -> dict[str, Any]:
    """Return all facts as plain values by name, None for an unknown one. Sizes are in bytes.

    The names are the same on a host and inside a guest, where many are None. ``digest`` covers the decisive facts.
    """
    found: dict[str, Any] = {name: fact.read(root) for name, fact in CATALOGUE.items()}
    return {**found, DIGEST: digest(found)}


def digest(facts: Mapping[str, Any]) -> str:
    """Return a hash of all decisive facts, 12 hex digits: equal if no decisive fact differs."""
    decisive = {
        name: canonical(fact, facts) for name, fact in CATALOGUE.items() if fact.weight is Weight.DECISIVE
    }
    return hashlib.blake2b(json.dumps(decisive, sort_keys=True).encode(), digest_size=6).hexdigest()


def canonical(fact: Fact, facts: Mapping[str, Any]) -> Any:
    """Return the part of a fact's value that is compared, or None if the fact is unknown."""
    value = facts.get(fact.name)
    return None if value is None else fact.canonical(value)


def identity_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return the facts that differ but must be equal in all trials of a campaign, each as ``name: then → now``."""
    found = []
    for name in IDENTITY:
        fact, values = CATALOGUE[name], (then.get(name), now.get(name))
        if (None in values and values != (None, None)) or not alike(fact, values):
            told = (canonical(fact, then), canonical(fact, now))
            found.append(f"{name}: {told[0]} → {told[1]}")
    return found


def differing(a: Circumstances, b: Circumstances) -> list[Difference]:
    """Return what differs between two sets of results, decisive facts first; see ``differences``."""
    return differences.differences(list(CATALOGUE.values()), a, b)


def tuned_by() -> set[str]:
    """Return the settings of a study that replace a fact. A difference in them is reported as one of the fact."""
    return {fact.tuned_by for fact in CATALOGUE.values() if fact.tuned_by}


def check_names(names: Collection[str]) -> None:
    """Raise UsageError for a name that is neither a fact nor a group of facts."""
    known = differences.names(CATALOGUE.values())
    for name in names:
        if name not in known and not name.startswith(PARTS):
            raise UsageError(
                f"'{name}' is neither a fact nor a group of facts",
                where="--differing",
                hint=nearest(name, known),
            )
