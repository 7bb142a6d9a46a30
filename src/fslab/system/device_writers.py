"""Find the processes that can write to a block device, by the numbers of their open files, never by names.

A device node can be anywhere, in any mount namespace, and can be deleted. Only reads. Not found are processes of a
sibling or parent PID namespace, and descriptors in the queue of a socket or in an io_uring.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from fslab.system import syscalls, sysfs

PROC = Path("/proc")
# Shared mappings: a process can write to the file through one long after it closed the descriptor.
_SHARED = re.compile(r"([0-9a-f]+-[0-9a-f]+) ..[-x]s [0-9a-f]+ (\S+ [1-9].*)")


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
    for name in sysfs.names(str(PROC)):
        process = f"{PROC}/{name}"  # no Path: these are hundreds of processes with thousands of files
        if name.isdecimal() and (_opened(process, numbers) or _mapped(process, numbers)):
            found.add(Writer(pid=int(name), name=sysfs.text(Path(process, "comm")) or "?"))
    return sorted(found)


def _opened(process: str, numbers: Collection[str]) -> bool:
    """Return whether a process has one of the files open for writing, even if its first thread has ended."""
    seen: list[int] = []
    for task in sysfs.names(f"{process}/task"):
        pid = int(task)
        if any(syscalls.same_descriptors(pid, other) for other in seen):
            continue
        seen.append(pid)
        links = (f"{process}/task/{task}/fd/{file}" for file in sysfs.names(f"{process}/task/{task}/fd"))
        if any(_writes(link) and _leads_to([link], numbers) for link in links):
            return True
    return False


def _mapped(process: str, numbers: Collection[str]) -> bool:
    """Return whether a process has one of the files mapped for writing.

    All mappings of a file are together: a virtual machine can map its memory in thousands of pieces.
    """
    mappings: dict[str, list[str]] = {}
    for line in (sysfs.text(Path(process, "maps")) or "").split("\n"):
        if "s " in line and (found := _SHARED.match(line)):  # few are shared, and a search of all takes long
            mappings.setdefault(found[2], []).append(f"{process}/map_files/{found[1]}")
    return any(_leads_to(links, numbers) and any(map(_writes, links)) for links in mappings.values())


def _writes(link: str) -> bool:
    """Return whether the file was opened for writing: the mode of the link itself shows it (proc_pid_fd(5))."""
    try:
        return bool(os.lstat(link).st_mode & stat.S_IWUSR)
    except OSError:  # it was closed
        return False


def _leads_to(links: Iterable[str], numbers: Collection[str]) -> bool:
    """Return whether links, which all lead to the same file, lead to one with such a number."""
    for link in links:
        try:
            return syscalls.file_number(link) in numbers
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
