"""CPU time of other programs: all processes except fslab, its virtual disks, the tool with its daemons, and kernel
threads.

Reads ``/proc/PID/stat`` of every process (proc_pid_stat(5)): some 3 µs each, before and after the run only.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import disk_server, process_marks, syscalls
from fslab.system.files import opened
from fslab.trial_record import Value
from fslab.units import Unit

_PF_KTHREAD = 0x00200000  # include/linux/sched.h
_STAT_BYTES = 1024
_NAMED, _NOTICEABLE_TICKS = 3, 5


class _Process(NamedTuple):
    name: str
    parent: int
    started: int
    ticks: int  # including those of children that it has waited for
    of_children: int


class ForeignCpu(Probe):
    """When a process ends, its time is added to the process that waits for it. The processes that are there afterwards
    therefore include short-lived ones (a compiler that make runs), except those that no process waits for. The tool has
    ended before the snapshot; fslab waited for it, and fslab is not counted. Inside a container, programs outside and
    kernel threads are not visible. ``kernel_threads_cpu`` is the time of kernel threads: writeback, journal and loop
    device of the trial, and all other work of the machine's kernel.

    A daemon of the trial (``_own_processes``) is not counted, nor are its children. For one that the tool starts and
    that ends during the run, ``fslab-accounted`` waits."""

    outermost = True  # it reads the environment of all processes: some 10 µs each

    of_machine = True
    summary = "CPU time of programs that are not part of the trial, and of kernel threads"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the stat lines of all processes except this one and the servers of its virtual disks.

        Parsing them later takes no time from the run.
        """
        lines = dict(_lines(target.proc, os.getpid()))
        now_s = time.monotonic()
        return {
            "lines": lines,
            "own": _own_processes(target, lines),
            "now_s": now_s,
            "tick_s": 1 / os.sysconf("SC_CLK_TCK"),
            "cpus": os.cpu_count() or 1,
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the percentage of all CPUs, and name the programs that used most."""
        before, end = (taken[moment] for moment in self.moments)
        first, last = _processes(before["lines"]), _processes(end["lines"])
        for pid in _of_trial(first, last, {*before["own"], *end["own"]}):
            first.pop(pid, None)
            last.pop(pid, None)
        threads = _processes(before["lines"], kernel=True), _processes(end["lines"], kernel=True)
        kernel_ticks = sum(
            _grown(*threads).values()
        )  # the time of a thread that ends is added to no other one
        capacity_s = (end["now_s"] - before["now_s"]) * end["cpus"]
        seconds = Value(value=kernel_ticks * end["tick_s"], unit=Unit.SECONDS)
        of_kernel = {"kernel_threads_cpu": seconds} if threads[0] else {}
        if not first or capacity_s <= 0:  # in a guest, there is no other program
            return ProbeFinding(values=of_kernel)
        percent = min(100.0, 100 * _total(first, last) * end["tick_s"] / capacity_s)
        return ProbeFinding(
            values={"foreign_cpu": Value(value=percent, unit=Unit.PERCENT), **of_kernel},
            texts={"foreign_cpu": tuple(_heaviest(_used(first, last), last, end["tick_s"]))},
        )


def _lines(procfs: Path, own: int) -> Iterator[tuple[int, bytes]]:
    with opened(procfs, os.O_DIRECTORY) as directory:
        for name in os.listdir(directory):  # noqa: PTH208 - by descriptor
            if not name.isdecimal() or int(name) == own:
                continue
            try:
                file = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
            except OSError:
                continue  # it has ended, or is hidden from this user
            try:
                line = os.read(file, _STAT_BYTES)
                if not _is_disk(line, own):
                    yield int(name), line
            except ProcessLookupError:
                continue
            finally:
                os.close(file)


def _of_trial(first: Mapping[int, _Process], last: Mapping[int, _Process], own: set[int]) -> set[int]:
    """Return the processes of the trial, with their children, and who waited for those that ended.

    The latter is init: the time of an ended daemon cannot be told from what init itself used.
    """
    found, left = set[int](), own
    while left:
        found |= left
        left = {pid for pid, each in {**first, **last}.items() if each.parent in left} - found
    return found | {first[pid].parent for pid in found if pid in first and pid not in last}


def _processes(lines: Mapping[int, bytes], *, kernel: bool = False) -> dict[int, _Process]:
    """Return all programs, or all kernel threads: their work is mostly the tool's I/O."""
    found = {}
    for pid, line in lines.items():
        # The name is in brackets, and may itself contain brackets and blanks.
        head, _, tail = line.decode("utf-8", "replace").rpartition(")")
        fields = tail.split()
        if len(fields) > 19 and bool(int(fields[6]) & _PF_KTHREAD) is kernel:
            ticks = sum(int(field) for field in fields[11:15])
            found[pid] = _Process(
                name=head.partition("(")[2], parent=int(fields[1]), started=int(fields[19]), ticks=ticks,
                of_children=int(fields[13]) + int(fields[14]),
            )  # fmt: skip
    return found


def _before(first: Mapping[int, _Process], pid: int, now: _Process) -> _Process | None:
    """Return the process as it was before; None if it is new, also if another one had its number."""
    then = first.get(pid)
    return then if then is not None and then.started == now.started else None


def _total(first: Mapping[int, _Process], last: Mapping[int, _Process]) -> int:
    """Return the ticks that all used in between.

    Those of an ended process are in whichever waited for it, or nowhere: they are subtracted from the time of children
    only, and from all of it together.
    """
    gone = sum(
        each.ticks for pid, each in first.items() if pid not in last or last[pid].started != each.started
    )
    own = waited = 0
    for pid, each in last.items():
        then = _before(first, pid, each)
        own += each.ticks - each.of_children - (then.ticks - then.of_children if then else 0)
        waited += each.of_children - (then.of_children if then else 0)
    return own + max(0, waited - gone)


def _grown(first: Mapping[int, _Process], last: Mapping[int, _Process]) -> dict[int, int]:
    """Return the ticks by which those of each process grew."""
    before = {pid: _before(first, pid, each) for pid, each in last.items()}
    return {pid: each.ticks - (then.ticks if (then := before[pid]) else 0) for pid, each in last.items()}


def _used(first: Mapping[int, _Process], last: Mapping[int, _Process]) -> dict[int, int]:
    """Return the ticks that each process used in between, with those of children that it waited for."""
    gone = {pid for pid, each in first.items() if pid not in last or last[pid].started != each.started}
    used = _grown(first, last)
    for pid in gone:
        # Its waiting parent received all ticks that it ever used, not only those since the first snapshot.
        heir = first[pid].parent
        while heir in gone:
            heir = first[heir].parent
        if heir in used:
            used[heir] -= first[pid].ticks
    return used


def _heaviest(used: Mapping[int, int], last: Mapping[int, _Process], tick_s: float) -> Iterator[str]:
    for pid in sorted(used, key=lambda pid: used[pid], reverse=True)[:_NAMED]:
        if used[pid] >= _NOTICEABLE_TICKS:
            yield f"{last[pid].name} ({pid}) {used[pid] * tick_s:.2f} s"


_DISK = b"(" + disk_server.TOOL.program.encode()


def _own_processes(target: Target, pids: Iterable[int]) -> frozenset[int]:
    """Return the processes that carry the campaign's mark in their environment or work in the file system under test.

    PostgreSQL, for example, overwrites its environment.
    """
    marked = process_marks.marked_processes(target.mark, target.proc) if target.mark else []
    mount = target.directory.parent
    device = os.stat(mount).st_dev if os.path.ismount(mount) else None  # noqa: PTH116 - plain calls
    return frozenset(marked) | {pid for pid in pids if _works_in(target, pid, device)}


def _works_in(target: Target, pid: int, device: int | None) -> bool:
    """Return whether a process's working directory is in the directory under test, or on its device (``device``)."""
    link = f"{target.proc}/{pid}/cwd"  # no Path: this is done for all processes of the machine
    try:
        if device is not None and syscalls.device_of(link) == device:  # follows the link also in namespaces
            return True
        return f"{os.readlink(link)}/".startswith(f"{target.directory}/")  # noqa: PTH115 - plain call
    except OSError:
        return False  # it has ended, or may not be seen


def _is_disk(line: bytes, own: int) -> bool:
    """Return whether this is the server of a virtual disk that the process ``own`` started."""
    head, _, tail = line.rpartition(b")")
    return head.endswith(_DISK) and tail.split()[1:2] == [b"%d" % own]
