"""The marks in the environment of a campaign's processes, by which they are found and ended: of the campaign, and in
those that commands of a workload started, of the stage of the trial."""

import os
from collections.abc import Iterable
from pathlib import Path

from fslab.system import freezer, processes, sysfs, waiting

MARK = "FSLAB_MARK"
STAGE = "FSLAB_STAGE"
END_DEADLINE_S = 5.0
BEGIN_DEADLINE_S = 1.0
# Of an environment: a process can declare all of its memory to be its environment (prctl(2), PR_SET_MM).
_MOST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16


def marked_processes(mark: str, root: Path = Path("/proc"), *, name: str = MARK) -> list[int]:
    """Return the processes whose environment has this mark as the variable ``name``, except this process and those that
    it descends from."""
    spared = _ancestry(root)
    pids = (int(entry.name) for entry in root.iterdir() if entry.name.isdigit())
    return _marked((pid for pid in pids if pid not in spared), mark, root, name)


def named(pids: Iterable[int]) -> str:
    """Return the names and numbers of processes: ``postgres (17), sleep (18)``."""
    return ", ".join(f"{sysfs.text(Path(f'/proc/{pid}/comm')) or '?'} ({pid})" for pid in pids)


def end_marked(mark: str, *, name: str = MARK) -> None:
    """``kill_marked``, until there are none, at most ``END_DEADLINE_S``."""
    waiting.until(lambda: not kill_marked(mark, name=name), END_DEADLINE_S, 0.05)


def kill_marked(mark: str, *, name: str = MARK) -> bool:
    """Send SIGKILL to ``marked_processes``, and to what these have started, which can have another environment. Return
    whether there were any."""
    found = marked_processes(mark, name=name)

    def whole() -> set[int]:
        marked = _marked(found, mark, processes.PROC, name)
        return {*marked, *processes.descendants(*marked)}

    # When one of them ends, init becomes the parent of what it had started, which is then no descendant any more. So
    # each is known by when it began. That is read before they are listed again: until then, another process can have
    # got a number.
    began = {pid: processes.began(pid) for pid in whole()}
    ours = whole() & began.keys()

    def same() -> list[int]:
        return [pid for pid in ours if processes.began(pid) == began[pid]]

    for pid in processes.killed(ours, same):
        freezer.let_end(pid)
    return bool(found)


def _ancestry(root: Path) -> set[int]:
    """Return this process and all that it descends from."""
    found, pid = set(), os.getpid()
    while pid and pid not in found:
        found.add(pid)
        pid = int(sysfs.field(root / str(pid) / "status", "PPid") or 0)
    return found


def _marked(pids: Iterable[int], mark: str, root: Path, name: str) -> list[int]:
    """Return those of these processes that have the mark.

    In the middle of execve(2) an environment is empty: then neither a mark nor the parent may tell whose the process
    is. All are waited for together, because a user can keep any number of processes in that state: their program is on
    a file system whose server does not answer.
    """
    wanted, found, left = f"{name}={mark}".encode(), list[int](), [*pids]

    def is_decided(pid: int) -> bool:
        process = root / str(pid)
        decided = bool(environment := _environment(process)) or not _runs_program(process)
        if not decided and (decided := _has_environment(process)):
            environment = _environment(process)  # perhaps only since it was read
        if wanted in environment and wanted in environment.split(b"\0"):
            found.append(pid)
        return decided

    def are_decided() -> bool:
        left[:] = [pid for pid in left if not is_decided(pid)]
        return not left

    waiting.until(are_decided, BEGIN_DEADLINE_S, 0.001)
    return found


def _environment(process: Path) -> bytes:
    """Return the environment; empty if the process has ended, or may not be read."""
    # Plain calls, and no more of them than needed: each trial reads the environments of all processes nine times.
    found = b""
    try:
        file = os.open(f"{process}/environ", os.O_RDONLY | os.O_CLOEXEC)
        try:
            while len(found) < _MOST_BYTES:
                found += (piece := os.read(file, _PIECE_BYTES))
                if len(piece) < _PIECE_BYTES:
                    break
        finally:
            os.close(file)
    except OSError:
        return b""
    return found


def _runs_program(process: Path) -> bool:
    """Return whether it is neither a thread of the kernel nor ended."""
    try:
        return bool(os.readlink(f"{process}/exe"))  # noqa: PTH115 - asked for each thread of the kernel
    except OSError:
        return False


def _has_environment(process: Path) -> bool:
    """Return whether the kernel has placed its environment, also an empty one; also if it has ended."""
    fields = (sysfs.text(process / "stat") or "").rpartition(")")[2].split()
    return len(fields) < 49 or fields[48] != "0"  # proc(5), the 51st: env_end
