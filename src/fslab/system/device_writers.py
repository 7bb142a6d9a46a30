"""Find the processes that can write to a block device, by the numbers of their open files, never by names.

A device node can be anywhere, in any mount namespace, and can be deleted. Only reads. Not found are processes of a
sibling or parent PID namespace, and descriptors in the queue of a socket or in an io_uring.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fslab.system import syscalls, sysfs

PROC = Path("/proc")
# Shared mappings: a process can write to the file through one long after it closed the descriptor.
_SHARED = re.compile(r"^([0-9a-f]+-[0-9a-f]+) ..[-x]s [0-9a-f]+ (\S+ [1-9].*)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Writer:
    """A process, and its name as in /proc/PID/comm."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.name})"


def writers(numbers: Collection[str]) -> list[Writer]:
    """Return the processes that have a device or file with one of these numbers open or mapped for writing. A number is
    as from ``syscalls.file_number``."""
    found = set()
    for process in PROC.glob("[0-9]*"):
        if any(_writes(links, numbers) for links in _open_files(process)):
            found.add(Writer(pid=int(process.name), name=sysfs.text(process / "comm") or "?"))
    return sorted(found)


def _open_files(process: Path) -> Iterator[Iterable[Path]]:
    """Yield the links to each file that the process has open or mapped, even if its first thread has ended.

    All mappings of a file are together: a virtual machine can map its memory in thousands of pieces.
    """
    seen: list[int] = []
    for task in sysfs.entries(process / "task"):
        pid = int(task.name)
        if not any(syscalls.same_descriptors(pid, other) for other in seen):
            seen.append(pid)
            yield from ([link] for link in sysfs.entries(task / "fd"))
    mappings: dict[str, list[str]] = {}
    for place, file in _SHARED.findall(sysfs.text(process / "maps") or ""):
        mappings.setdefault(file, []).append(place)
    for places in mappings.values():
        yield (process / "map_files" / place for place in places)


def _writes(links: Iterable[Path], numbers: Collection[str]) -> bool:
    """Return whether one of the links, which all lead to the same file, was opened for writing."""
    for link in links:
        try:
            if syscalls.file_number(link) not in numbers:
                return False
            # proc_pid_fd(5): the mode of the link itself shows how the file was opened.
            if link.lstat().st_mode & stat.S_IWUSR:
                return True
        except OSError:
            continue  # it was closed
    return False


def locker(path: Path) -> Writer | None:
    """Return the process with the exclusive flock(2) on a file; None if there is none, or one in another namespace."""
    about = os.stat(path)  # noqa: PTH116 - follows links on purpose: the lock is the file's, not its name's
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    for line in (sysfs.text(PROC / "locks") or "").splitlines():
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[3] == "WRITE" and place in words and int(words[4]) > 0:
            pid = int(words[4])
            return Writer(pid=pid, name=sysfs.text(PROC / str(pid) / "comm") or "?")
    return None
