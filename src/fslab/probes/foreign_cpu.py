"""CPU time of other programs: all processes except fslab, its virtual disks, the tool and kernel threads.

Reads ``/proc/PID/stat`` of every process (proc_pid_stat(5)): some 3 µs each, before and after the run only.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.record import Value
from fslab.system import disk
from fslab.system.files import opened
from fslab.units import Unit

_PF_KTHREAD = 0x00200000  # include/linux/sched.h
_STAT_BYTES = 1024
_DISK = b"(" + disk.TOOL.program.encode()
_NAMED = 3
_NOTICEABLE_TICKS = 5


class _Process(NamedTuple):
    name: str
    parent: int
    started: int
    ticks: int  # including those of children that it has waited for


class ForeignCpu(Probe):
    """When a process ends, its time is added to the process that waits for it. The sum over all processes therefore
    includes short-lived ones (a compiler that make runs), except those that no process waits for. The tool has ended
    before the snapshot; fslab waited for it, and fslab is not counted. Inside a container, programs outside are not
    visible. ``kernel_threads_cpu`` is the time of kernel threads: writeback, journal and loop device of the trial, and
    all other work of the machine's kernel."""

    summary = "CPU time of programs that are not part of the trial, and of kernel threads"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.END)

    def snapshot(self, target: Target) -> Snapshot:
        """Return the stat lines of all processes except this one and the servers of its virtual disks.

        Parsing them later takes no time from the run.
        """
        return {
            "lines": dict(_lines(target.proc, os.getpid())),
            "now_s": time.monotonic(),
            "tick_s": 1 / os.sysconf("SC_CLK_TCK"),
            "cpus": os.cpu_count() or 1,
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute the percentage of all CPUs, and name the programs that used most."""
        before, end = (taken[moment] for moment in self.moments)
        first, last = _programs(before["lines"]), _programs(end["lines"])
        kernel_ticks = _kernel_ticks(end["lines"]) - _kernel_ticks(before["lines"])
        capacity_s = (end["now_s"] - before["now_s"]) * end["cpus"]
        if not first or capacity_s <= 0:
            return ProbeFinding(values={})
        ticks = sum(each.ticks for each in last.values()) - sum(each.ticks for each in first.values())
        percent = min(100.0, 100 * max(0, ticks) * end["tick_s"] / capacity_s)
        return ProbeFinding(
            values={
                "foreign_cpu": Value(value=percent, unit=Unit.PERCENT),
                "kernel_threads_cpu": Value(value=max(0, kernel_ticks) * end["tick_s"], unit=Unit.SECONDS),
            },
            texts={"foreign_cpu": tuple(_heaviest(first, last, end["tick_s"]))},
        )


def _lines(proc: Path, own: int) -> Iterator[tuple[int, bytes]]:
    with opened(proc, os.O_DIRECTORY) as directory:
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


def _is_disk(line: bytes, own: int) -> bool:
    """Return whether this is the server of a virtual disk that the process ``own`` started."""
    head, _, tail = line.rpartition(b")")
    return head.endswith(_DISK) and tail.split()[1:2] == [b"%d" % own]


def _kernel_ticks(lines: Mapping[int, bytes]) -> int:
    """Return the ticks of all kernel threads: writeback, journals and loop devices, also those of other programs."""
    fields = (line.rpartition(b")")[2].split() for line in lines.values())
    return sum(
        int(each[11]) + int(each[12]) for each in fields if len(each) > 19 and int(each[6]) & _PF_KTHREAD
    )


def _programs(lines: Mapping[int, bytes]) -> dict[int, _Process]:
    """Return all processes except kernel threads, whose work is mostly the tool's I/O."""
    found = {}
    for pid, line in lines.items():
        # The name is in brackets, and may itself contain brackets and blanks.
        head, _, tail = line.decode("utf-8", "replace").rpartition(")")
        fields = tail.split()
        if len(fields) > 19 and not int(fields[6]) & _PF_KTHREAD:
            ticks = sum(int(field) for field in fields[11:15])
            found[pid] = _Process(
                name=head.partition("(")[2], parent=int(fields[1]), started=int(fields[19]), ticks=ticks,
            )  # fmt: skip
    return found


def _heaviest(first: Mapping[int, _Process], last: Mapping[int, _Process], tick_s: float) -> Iterator[str]:
    gone = {pid for pid, each in first.items() if pid not in last or last[pid].started != each.started}
    used = {
        pid: each.ticks - (first[pid].ticks if pid in first and pid not in gone else 0)
        for pid, each in last.items()
    }
    for pid in (
        gone
    ):  # its waiting parent received all ticks that it ever used, not only those since the first snapshot
        heir = first[pid].parent
        while heir in gone:
            heir = first[heir].parent
        if heir in used:
            used[heir] -= first[pid].ticks
    for pid in sorted(used, key=lambda pid: used[pid], reverse=True)[:_NAMED]:
        if used[pid] >= _NOTICEABLE_TICKS:
            yield f"{last[pid].name} ({pid}) {used[pid] * tick_s:.2f} s"
