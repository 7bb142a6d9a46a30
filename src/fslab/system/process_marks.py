"""The mark of a campaign in the environment of its processes, by which they are found and ended."""

import os
import signal
from pathlib import Path

from fslab.system import freezer, process_ending, sysfs

MARK = "FSLAB_MARK"
# Of an environment: a process can declare all of its memory to be its environment (prctl(2), PR_SET_MM).
_MOST_BYTES = 1 << 20


def marked_processes(mark: str, root: Path = Path("/proc")) -> list[int]:
    """Return the processes whose environment has this mark, except this process and those that it descends from."""
    pids = (int(entry.name) for entry in root.iterdir() if entry.name.isdigit())
    spared = _ancestry(root)
    return [pid for pid in pids if pid not in spared and _is_marked(pid, mark, root)]


def kill_marked(mark: str) -> bool:
    """Send SIGKILL to ``marked_processes``, and to what these have started, which can have another environment. Return
    whether there were any."""
    found = marked_processes(mark)

    def whole() -> set[int]:
        marked = [pid for pid in found if _is_marked(pid, mark)]
        return {*marked, *(child for pid in marked for child in freezer.descendants(pid))}

    with process_ending.sent(whole(), signal.SIGKILL, whole) as killed:
        for pid in killed:
            freezer.let_end(pid)
    return bool(found)


def _ancestry(root: Path) -> set[int]:
    """Return this process and all that it descends from."""
    found, pid = set(), os.getpid()
    while pid and pid not in found:
        found.add(pid)
        pid = int(sysfs.field(root / str(pid) / "status", "PPid") or 0)
    return found


def _is_marked(pid: int, mark: str, root: Path = Path("/proc")) -> bool:
    try:
        with (root / str(pid) / "environ").open("rb") as file:
            return f"{MARK}={mark}".encode() in file.read(_MOST_BYTES).split(b"\0")
    except OSError:  # the process has ended, or may not be read
        return False
