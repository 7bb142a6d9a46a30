"""How much memory there is, and which tmpfs has room for files. Only reads."""

import os
from collections.abc import Iterator
from pathlib import Path

from fslab.errors import NoSpaceError
from fslab.system import mountinfo, path_owners, sysfs
from fslab.units import format_size

FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
SHARED = Path("/dev/shm")  # noqa: S108 - the place for it, shm_overview(7)


def total_bytes() -> int | None:
    """Return the memory of the machine; None if unknown."""
    return meminfo("MemTotal")


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the memory that this process can still use: the minimum over the machine and all its control groups."""
    rooms = [meminfo("MemAvailable", root), *_rooms_of_groups(root)]
    return min((room for room in rooms if room is not None), default=None)


def _rooms_of_groups(root: Path) -> Iterator[int]:
    """Yield the free memory of each control group. cgroup-v2.rst: beyond memory.max the kernel kills processes of a
    group, but it reclaims caches before that."""
    lines = (sysfs.text(root / "proc/self/cgroup") or "").splitlines()
    own = next((Path(line[4:]) for line in lines if line.startswith("0::/")), None)
    if own is None or ".." in own.parts:
        return
    for group in (own, *own.parents):
        directory = root / "sys/fs/cgroup" / group
        limit, used = sysfs.number(directory / "memory.max"), sysfs.number(directory / "memory.current")
        words = (sysfs.text(directory / "memory.stat") or "").split()
        cached = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
        if limit is not None and used is not None:
            yield max(0, limit - used + cached)


def holds(place: Path) -> bool:
    """Return whether files in ``place`` take memory."""
    return mountinfo.containing(place).filesystem in FILE_SYSTEMS


def check_room(size_bytes: int) -> None:
    """Raise NoSpaceError unless all memory file systems together have ``size_bytes`` free. Each file may lie on
    another one of them."""
    rooms = {place.stat().st_dev: os.statvfs(place) for place in _places()}
    free = sum(room.f_bavail * room.f_frsize for room in rooms.values())
    if free < size_bytes:
        raise NoSpaceError(
            f"images and guests need {format_size(size_bytes)}, but only {format_size(free)} are free in memory file "
            "systems",
            where=", ".join(map(str, _places())) or None,
            hint="enlarge /dev/shm (mount -o remount,size=… /dev/shm), or use smaller media and guests",
        )


def meminfo(name: str, root: Path = Path("/")) -> int | None:
    """Return a line of /proc/meminfo, in bytes (proc_meminfo(5): its kB are 1024 bytes); None if it is missing."""
    words = (sysfs.field(root / "proc/meminfo", name) or "").split()
    return int(words[0]) * 1024 if words and words[0].isdecimal() else None


def directory(size_bytes: int, *, executable: bool = True) -> Path:
    """Return a writable directory in memory with ``size_bytes`` free. ``executable``: its files can be mapped so.

    A guest's memory is a file there, mapped executable. With too little room the guest would die by SIGBUS
    when it touches a page, not when it starts. NoSpaceError if there is no such directory.
    """
    seen, barred = [], False
    for place in _places():
        room = os.statvfs(place)
        free = room.f_bavail * room.f_frsize
        if free >= size_bytes and not (executable and room.f_flag & os.ST_NOEXEC):
            return place
        barred |= free >= size_bytes
        seen.append(
            f"{place} has {format_size(free)} free{' and is noexec' * bool(room.f_flag & os.ST_NOEXEC)}"
        )
    raise NoSpaceError(
        f"no memory file system has room for {format_size(size_bytes)} ({'; '.join(seen) or 'there is none'})",
        hint="allow execution (mount -o remount,exec /dev/shm), or set TMPDIR to a tmpfs without noexec"
        if barred
        else "enlarge /dev/shm (mount -o remount,size=… /dev/shm), or reduce guest_memory or the size of the medium",
    )


def _places() -> Iterator[Path]:
    named = [Path(os.environ[name]) for name in ("XDG_RUNTIME_DIR", "TMPDIR") if os.environ.get(name)]
    for place in (SHARED, *named):
        usable = place.is_dir() and os.access(place, os.W_OK | os.X_OK) and path_owners.is_closed(place)
        if usable and holds(place):
            yield place
