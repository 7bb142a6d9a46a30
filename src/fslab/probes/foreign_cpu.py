"""CPU time of other programs: all processes except fslab, the tool and kernel threads.

Reads ``/proc/PID/stat`` of every process (proc_pid_stat(5)): some 3 µs each, before and after the run only.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.record import Value
from fslab.units import Unit

_PF_KTHREAD = 0x00200000  # include/linux/sched.h
_STAT_BYTES = 1024
_NAMED = 3
_NOTICEABLE_TICKS = 5


class _Process(NamedTuple):
    name: str
    parent: int
    started: int
    ticks: int  # with those of the children that it has waited for


class ForeignCpu(Probe):
    """A process that ends hands its time to the one that waits for it, so the sum over all processes holds that of
    the short-lived ones as well (a compiler run by make), except those that are not waited for. The tool itself ended
    before the snapshot and was waited for by us, who do not count. Programs outside a container do not show inside.
    ``kernel_threads_cpu`` is that of kernel threads, which do the writeback, the journal and the loop device of
    the trial, and whatever else the machine's kernel does meanwhile."""

    summary = "CPU time of programs that are not part of the trial, and of kernel threads"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.END)

    def snapshot(self, target: Target) -> Snapshot:
        """The stat lines of all processes but our own, unread: that takes no time from the run."""
        return {
            "lines": dict(_lines(target.proc, os.getpid())),
            "now_s": time.monotonic(),
            "tick_s": 1 / os.sysconf("SC_CLK_TCK"),
            "cpus": os.cpu_count() or 1,
        }

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Percent of all CPUs, and the names of the heaviest."""
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
    directory = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.listdir(directory):  # noqa: PTH208 - by descriptor
            if not name.isdecimal() or int(name) == own:
                continue
            try:
                file = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
            except OSError:
                continue  # it has ended meanwhile, or is hidden from us
            try:
                yield int(name), os.read(file, _STAT_BYTES)
            except ProcessLookupError:
                continue
            finally:
                os.close(file)
    finally:
        os.close(directory)


def _kernel_ticks(lines: Mapping[int, bytes]) -> int:
    """Of all kernel threads of the machine: writeback, journals, loop devices, and also those of others."""
    fields = (line.rpartition(b")")[2].split() for line in lines.values())
    return sum(
        int(each[11]) + int(each[12]) for each in fields if len(each) > 19 and int(each[6]) & _PF_KTHREAD
    )


def _programs(lines: Mapping[int, bytes]) -> dict[int, _Process]:
    """Without kernel threads: what those do is mostly the tool's I/O."""
    found = {}
    for pid, line in lines.items():
        # The name, in brackets, may itself hold brackets and blanks.
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
    ):  # all that it ever used has come to the one that waited for it, not only what it used meanwhile
        heir = first[pid].parent
        while heir in gone:
            heir = first[heir].parent
        if heir in used:
            used[heir] -= first[pid].ticks
    for pid in sorted(used, key=lambda pid: used[pid], reverse=True)[:_NAMED]:
        if used[pid] >= _NOTICEABLE_TICKS:
            yield f"{last[pid].name} ({pid}) {used[pid] * tick_s:.2f} s"
