"""How much memory there is, and where files can lie in it: a tmpfs with room. Looks only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fslab.errors import NoSpaceError
from fslab.system import mounts, sysfs
from fslab.units import format_size

SHARED = Path("/dev/shm")  # noqa: S108 - the place for it, shm_overview(7)


def total_bytes() -> int | None:
    """Of the machine; None where the kernel does not tell."""
    return _told("MemTotal")


def _told(name: str, table: Path = Path("/proc/meminfo")) -> int | None:
    # proc_meminfo(5): its kB are 1024 bytes
    lines = (line.split() for line in (sysfs.text(table) or "").splitlines())
    found = next((words for words in lines if words[:1] == [f"{name}:"]), None)
    return int(found[1]) * 1024 if found else None


def directory(size_bytes: int, *, executable: bool = True) -> Path:
    """A directory of ours in memory with room for ``size_bytes``; ``executable``: its files can be mapped so.

    A guest's memory is a file there, mapped executable; with too little room the guest would die by SIGBUS
    when it touches a page, not when it starts. NoSpaceError where there is none.
    """
    seen, barred = [], False
    for place in _places():
        room = os.statvfs(place)
        free = room.f_bavail * room.f_frsize
        if free >= size_bytes and not (executable and room.f_flag & os.ST_NOEXEC):
            return place
        barred |= free >= size_bytes
        seen.append(f"{place} has {format_size(free)}{' and is noexec' * bool(room.f_flag & os.ST_NOEXEC)}")
    raise NoSpaceError(
        f"no memory file system takes {format_size(size_bytes)} ({'; '.join(seen) or 'there is none'})",
        hint="let programs lie there (mount -o remount,exec /dev/shm), or let TMPDIR be a tmpfs where they may"
        if barred
        else "enlarge /dev/shm (mount -o remount,size=… /dev/shm), or ask for less (guest_memory, size of the medium)",
    )


def _places() -> Iterator[Path]:
    named = [Path(os.environ[name]) for name in ("XDG_RUNTIME_DIR", "TMPDIR") if os.environ.get(name)]
    for place in (SHARED, *named):
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK) and _in_memory(place):
            yield place


def _in_memory(place: Path) -> bool:
    return mounts.containing(place).filesystem in {"tmpfs", "ramfs"}
