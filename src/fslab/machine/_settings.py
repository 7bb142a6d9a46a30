"""The settings that a study may change: their files, the values to write, and how to read the current value.

Only reads; ``tuning`` writes. A setting that is not listed here cannot be set, not even by a study or a journal.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UnsupportedError, UsageError
from fslab.machine import tunables
from fslab.system import memory, sysfs

SYSCTL = Path("/proc/sys")
CPUS = Path("/sys/devices/system/cpu")
HUGE = Path("/sys/kernel/mm/transparent_hugepage")
# Set before the others: processors that come back have the governor of their driver, and huge pages raise
# vm.min_free_kbytes (mm/khugepaged.c, set_recommended_min_free_kbytes; seen with Linux 6.18), also when it is put back.
FIRST = ("cpu_smt", "transparent_hugepage")
# In the order in which they are set and put back: a new scheduler resets nr_requests and wbt_lat_usec; max_sectors_kib
# and rotational raise the read-ahead (block/blk-settings.c, blk_apply_bdi_limits; seen with Linux 6.18). Files below
# the directory of a block device.
OF_DEVICES = {
    "io_scheduler": "queue/scheduler", "nr_requests": "queue/nr_requests", "max_sectors_kib": "queue/max_sectors_kb",
    "wbt_lat_usec": "queue/wbt_lat_usec", "rotational": "queue/rotational", "read_ahead_kib": "queue/read_ahead_kb",
    "stripe_cache_size": "md/stripe_cache_size",
}  # fmt: skip
# Only devices with queues of their own have these, not those that pass requests on (dm, md).
OF_QUEUES = frozenset({"nr_requests", "wbt_lat_usec"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """A file and the value to write to it."""

    path: Path
    value: str


def writes(name: str, value: str) -> list[Write]:
    """Return what to write for a setting of the machine.

    UnsupportedError if the machine lacks the setting or the value. UsageError for a value out of bounds: the bounds
    are checked again here, because cells need not come from a study that was just read.
    """
    check_bounds(name, value)
    match name:
        case "cpu_governor":
            found = sorted(CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor"))
            _check_choice(name, value, [path.with_name("scaling_available_governors") for path in found[:1]])
            return _all(name, found, value)
        case "cpu_turbo":
            return _turbo(value)
        case "cpu_smt":
            return _smt(value, CPUS / "smt/control")
        case "transparent_hugepage":
            path = HUGE / "enabled"
            _check_choice(name, value, [path])
            return _all(name, [path] if path.exists() else [], value)
        case _ if name.startswith("vm.") and name in tunables.BOUNDS:
            path = SYSCTL / name.replace(".", "/")
            return _all(name, [path] if path.exists() else [], value)
        case _:
            raise missing(name)


def raised(name: str) -> list[Path]:
    """Return the files of other settings that the kernel changes with this one, and does not change back."""
    path = SYSCTL / "vm/min_free_kbytes"
    return [path] if name == "transparent_hugepage" and path.exists() else []


def device_writes(name: str, value: str, queues: Sequence[Path]) -> list[Write]:
    """Return what to write for a setting of devices, given their request queues in /sys."""
    check_bounds(name, value)
    found = device_files(name, queues)
    if name == "io_scheduler":
        # Devices that only pass requests on to other devices (dm, md) have no choice of schedulers.
        found = [path for path in found if _choices(path) != ["none"]] or found
        _check_choice(name, value, found)
    return _all(name, found, value)


def device_files(name: str, queues: Sequence[Path]) -> list[Path]:
    """Return the files of a setting of devices, given their request queues in /sys."""
    blocks = [queue.parent for queue in queues if name not in OF_QUEUES or (queue.parent / "mq").is_dir()]
    # A file that cannot be read belongs to a feature that is off.
    return [path for block in blocks if sysfs.text(path := block / OF_DEVICES[name]) is not None]


def mount_writes(
    name: str, value: str, filesystem: str, devices: Collection[str], number: str
) -> list[Write]:
    """Return what to write for a setting of devices of which the mounted file system has its own. ``number``: of the
    device that its files are on, as ``major:minor``.

    Most have the read-ahead of their disk. UnsupportedError for one that has not, where the kernel does not show it.
    """
    if name != "read_ahead_kib" or not number.startswith("0:"):
        return []
    own = sysfs.btrfs_directory(devices)  # fs/btrfs/disk-io.c: 4 MiB
    path = None if own is None else (own / "bdi").resolve() / "read_ahead_kb"
    if path is None or not path.exists():
        raise UnsupportedError(
            f"{filesystem} has a read-ahead of its own, which this kernel does not let fslab set",
            where=f"tuning.{name}",
            hint="remove it for this file system",
        )
    return [Write(path=path, value=value)]


def check_bounds(name: str, value: str) -> None:
    """Raise UsageError for a value out of bounds. Unknown settings pass: the caller reports them."""
    if name not in tunables.BOUNDS:
        return
    try:
        tunables.check(name, value, memory_bytes=memory.total_bytes())
    except ValueError as error:
        raise UsageError(str(error), where=f"tuning.{name}") from error


def held(path: Path) -> str:
    """Return the current value of a file; for a list with a selected word, that word."""
    return sysfs.selected(path) or path.read_text().strip()


def in_force(path: Path) -> tuple[Path, str]:
    """Return the file and value to write later to restore the current state.

    Of each pair of ``dirty`` settings only one is in force. The other reads 0, which the kernel does not accept
    (sysctl/vm.rst). If ``path`` is the one that reads 0, the returned file is its counterpart.
    """
    found = held(path)
    if found == "0" and path.name in tunables.PAIRS:
        path = path.with_name(tunables.PAIRS[path.name])
        found = held(path)
    return path, found


def check_together(settings: Mapping[str, str]) -> None:
    """Raise UsageError if the kernel would not follow one of these settings beside the others, or beside its own."""
    found = {
        f"vm.{name}": value
        for name, other in tunables.PAIRS.items()
        if f"vm.{other}" not in settings and (value := sysfs.text(SYSCTL / "vm" / name)) not in {None, "0"}
    }
    try:
        tunables.check_together(settings, {**found, **settings})
    except ValueError as error:
        raise UsageError(str(error), where="tuning") from error


def is_setting(path: Path) -> bool:
    """Return whether ``path`` is the file of a setting. No other file is ever written."""
    if ".." in path.parts:
        return False
    return (
        (path.parent == SYSCTL / "vm" and f"vm.{path.name}" in tunables.BOUNDS)
        or path == HUGE / "enabled"
        or path in {CPUS / "intel_pstate/no_turbo", CPUS / "cpufreq/boost", CPUS / "smt/control"}
        or (path.is_relative_to(CPUS) and path.name == "scaling_governor")
        or (
            path.is_relative_to(sysfs.SYS / "devices")
            and f"{path.parent.name}/{path.name}" in OF_DEVICES.values()
        )
        or (path.parent.parent == sysfs.SYS / "devices/virtual/bdi" and path.name == "read_ahead_kb")
    )


def missing(name: str) -> UnsupportedError:
    """Return the error for a setting that this machine does not have."""
    return UnsupportedError(
        "this machine has no such setting",
        where=f"tuning.{name}",
        hint=f"remove it on this machine; settings that a study can set: {', '.join(tunables.NAMES)}",
    )


def _all(name: str, paths: Sequence[Path], value: str) -> list[Write]:
    if not paths:
        raise missing(name)
    return [Write(path=path, value=value) for path in paths]


def _turbo(value: str) -> list[Write]:
    """The file of intel_pstate is 1 if turbo is *off*; that of other drivers is 1 if it is on (admin-guide/pm)."""
    wanted = tunables.FLAGS[value]
    choices: list[tuple[Path, Callable[[bool], str]]] = [
        (CPUS / "intel_pstate/no_turbo", lambda on: "0" if on else "1"),
        (CPUS / "cpufreq/boost", lambda on: "1" if on else "0"),
    ]
    for path, word in choices:
        if path.exists():
            return [Write(path=path, value=word(wanted))]
    raise missing("cpu_turbo")


def _smt(value: str, control: Path) -> list[Write]:
    """Switch only between on and off: ``forceoff`` cannot be undone, and all other values mean that SMT is missing."""
    wanted = tunables.FLAGS[value]
    if (sysfs.text(control) or "") not in {"on", "off"}:
        raise missing("cpu_smt")
    return [Write(path=control, value="on" if wanted else "off")]


def _check_choice(name: str, value: str, lists: Sequence[Path]) -> None:
    """Raise UnsupportedError if the kernel lists the available values and ``value`` is not among them."""
    for path in lists:
        words = _choices(path)
        if words and value not in words:
            raise UnsupportedError(
                f"'{value}' is not available on this machine",
                where=f"tuning.{name}",
                hint=f"available: {', '.join(words)}",
            )


def _choices(path: Path) -> list[str]:
    """Return the words of a list such as ``[none] mq-deadline``."""
    return re.findall(r"[\w-]+", sysfs.text(path) or "")
