"""Kernel settings for the time of a campaign: set, and put back what was found.

Only ``vm.*`` sysctls and ``cpu_governor``. The found value is in the journal before the new one is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fslab.errors import NeedsRootError, UnsupportedError
from fslab.storage import Journal

SYSCTL = Path("/proc/sys")
GOVERNORS = Path("/sys/devices/system/cpu")
# Writing these does something instead of setting something.
ACTIONS = frozenset({"vm.drop_caches", "vm.compact_memory"})
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
    elif name.startswith("vm.") and name.removeprefix("vm.").isidentifier() and name not in ACTIONS:
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
    """Set the settings; on leaving put back what was there, in reverse order."""
    changed: list[tuple[Path, str, str]] = []
    try:
        for path, value in [(path, value) for name, value in settings.items() for path in files(name)]:
            restore, found = in_force(path)
            entry = journal.will_create("tuning", f"{restore}={found}")
            changed.append((restore, found, entry))
            _write(path, value)
        yield
    finally:
        for path, found, entry in reversed(changed):
            put_back(path, found)
            journal.undone(entry)


def in_force(path: Path) -> tuple[Path, str]:
    """The file and value that bring back what holds now."""
    found = path.read_text().strip()
    if found == "0" and path.name in PAIRS:
        path = path.with_name(PAIRS[path.name])
        found = path.read_text().strip()
    return path, found


def put_back(path: Path, found: str) -> None:
    """Write the found value again."""
    path.write_text(found)


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except PermissionError as error:
        raise NeedsRootError("setting it needs root", where=str(path), hint="run with sudo") from error
    except OSError as error:
        raise UnsupportedError(
            f"the kernel refuses '{value}' ({error.strerror})", where=str(path), hint="check the value"
        ) from error
