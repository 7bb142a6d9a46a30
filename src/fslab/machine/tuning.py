"""Kernel settings for the time of a campaign: set, and put back what was found.

Only ``vm.*`` sysctls and ``cpu_governor``. The found value is in the journal before the new one is set.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fslab.errors import BusyError, NeedsRootError, UnsupportedError
from fslab.storage import Journal

SYSCTL = Path("/proc/sys")
GOVERNORS = Path("/sys/devices/system/cpu")
# Writing the first two does something instead of setting something; the others guard against attacks or panics.
FORBIDDEN = frozenset(
    {
        "vm.drop_caches", "vm.compact_memory", "vm.mmap_min_addr", "vm.unprivileged_userfaultfd", "vm.panic_on_oom",
        "vm.mmap_rnd_bits", "vm.mmap_rnd_compat_bits", "vm.memfd_noexec",
    }
)  # fmt: skip
# Of each pair only one is in force and the other reads 0, which the kernel does not take back
# (Documentation/admin-guide/sysctl/vm.rst): what was in force is put back by writing the other one.
PAIRS = {
    "dirty_bytes": "dirty_ratio",
    "dirty_ratio": "dirty_bytes",
    "dirty_background_bytes": "dirty_background_ratio",
    "dirty_background_ratio": "dirty_background_bytes",
}


def files(name: str, sysctl: Path = SYSCTL, governors: Path = GOVERNORS) -> list[Path]:
    """The files behind a setting; UnsupportedError if this machine has none."""
    found: list[Path] = []
    if name == "cpu_governor":
        found = sorted(governors.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    elif name.startswith("vm.") and name.removeprefix("vm.").isidentifier() and name not in FORBIDDEN:
        path = sysctl / name.replace(".", "/")
        found = [path] if path.exists() else []
    if not found:
        raise UnsupportedError(
            "this machine has no such setting", where=f"tuning.{name}",
            hint="vm.* sysctls (ls /proc/sys/vm) and cpu_governor can be set",
        )  # fmt: skip
    return found


@contextmanager
def tuned(settings: Mapping[str, str], journal: Journal) -> Iterator[None]:
    """Set the settings; on leaving put back what was there, in reverse order.

    BusyError while another campaign has settings of its own: it would put back ours, or we its.
    """
    with ExitStack() as undo:
        if settings:
            undo.callback(os.close, _alone())
        for path, value in [(path, value) for name, value in settings.items() for path in files(name)]:
            restore, found = in_force(path)
            entry = journal.will_create("tuning", f"{restore}={found}")
            undo.callback(_restore, restore, found, journal, entry)
            _write(path, value)
        yield


def in_force(path: Path) -> tuple[Path, str]:
    """The file and value that bring back what holds now."""
    found = path.read_text().strip()
    if found == "0" and path.name in PAIRS:
        path = path.with_name(PAIRS[path.name])
        found = path.read_text().strip()
    return path, found


def is_setting(path: Path) -> bool:
    """Whether this is a file that ``files`` could have named."""
    return path.parent == SYSCTL / "vm" or (
        path.is_relative_to(GOVERNORS) and path.name == "scaling_governor" and ".." not in path.parts
    )


def _alone() -> int:
    """A descriptor that keeps other campaigns from changing settings until it is closed."""
    descriptor = os.open(SYSCTL / "vm", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise BusyError(
            "another campaign has kernel settings of its own at this moment", where="tuning",
            hint="wait for it, or end it",
        ) from error  # fmt: skip
    return descriptor


def put_back(path: Path, found: str) -> None:
    """Write the found value again."""
    path.write_text(found)


def _restore(path: Path, found: str, journal: Journal, entry: str) -> None:
    put_back(path, found)
    journal.undone(entry)


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except PermissionError as error:
        raise NeedsRootError("setting it needs root", where=str(path), hint="run with sudo") from error
    except OSError as error:
        raise UnsupportedError(
            f"the kernel refuses '{value}' ({error.strerror})", where=str(path), hint="check the value"
        ) from error
