"""The speed of CPUs, by fixed work: system calls and copies in memory.

``reference_rate`` shows when others take cache and memory bandwidth of the same hardware. ``CpuSpeed`` watches one CPU
by short pieces of work, in ``python -m fslab.system.cpu_speed CPU DESCRIPTOR PARENT``, which ends with process PARENT.

Other guests on the same hardware slow a CPU for some seconds, which no counter of a guest shows. The work is timed by
the CPU time that it takes, so that a CPU that is busy with a measured run does not look slow. While the loop has to
work, it reads 200 × 4 KiB from a file in memory every 25 ms, which takes a quarter of a millisecond, and writes when,
and how much CPU time that took, to a ring in the file DESCRIPTOR. The whole file is read once before, so that the time
does not depend on what ran before and emptied the CPU's caches.
"""

import mmap
import os
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from math import log
from statistics import stdev
from typing import Self

from fslab.errors import FslabError
from fslab.system import files, proc, syscalls
from fslab.system.files import memory_file

READS = 200
SLICE = struct.Struct("<dd")  # CLOCK_MONOTONIC at the end of the work in seconds; CPU seconds that it took
SLOTS = 1 << 17  # 2 MiB: 50 minutes
# The ring's file begins with SLICE.size bytes, the first of which is 1 while the loop has to work.
RING_BYTES = (1 + SLOTS) * SLICE.size
PART_S = 0.25
MOST_PARTS = 400
PAUSE_S = 0.025
_FILE_BYTES = 64 << 10  # fits in the second-level caches of CPUs since 2010
_READ_BYTES = 4096
_REFERENCE_BYTES = 4 << 20
_BLOCK_BYTES = 4096
_BATCH = 1024
ROUNDS = 30
ROUND_S = 0.05


@dataclass(kw_only=True, slots=True)
class CpuSpeed:
    """The loop on ``cpu``. A context manager that ends it. ``mark``: an environment variable of its process.

    It works between ``resume`` and ``pause`` only. If it cannot run, there are no rates.
    """

    cpu: int
    mark: tuple[str, str]
    _ring: mmap.mmap | None = field(default=None, init=False)
    _child: proc.Child | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            try:
                descriptor = undo.enter_context(files.memory_file("fslab-cpu-speed-ring"))
                os.truncate(descriptor, RING_BYTES)
                self._ring = mmap.mmap(descriptor, RING_BYTES)
                nothing = files.held(os.devnull, undo, os.O_WRONLY)
                argv = [
                    sys.executable, "-P", "-B", "-m", "fslab.system.cpu_speed",
                    str(self.cpu), str(descriptor), str(os.getpid()),
                ]  # fmt: skip
                self._child = proc.start(argv, output=nothing, inherit=(descriptor,), env=dict([self.mark]))
            except (OSError, FslabError):
                self._ring = None
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the loop. Can be called twice."""
        child, self._child, self._ring = self._child, None, None
        if child is not None:
            child.end()

    def is_alive(self) -> bool:
        """Return whether the loop's process runs."""
        return self._child is not None and self._child.exit_code() is None

    def resume(self) -> None:
        """Let the loop work."""
        if self._ring is not None:
            self._ring[0] = 1

    def pause(self) -> None:
        """Let the loop rest: it wakes up every 25 ms and does nothing."""
        if self._ring is not None:
            self._ring[0] = 0

    def rates(self, begun_s: float, ended_s: float) -> list[float]:
        """Return the reads per CPU second in equal parts of a time, in seconds of CLOCK_MONOTONIC.

        A part is a quarter of a second, or more if there would be over 400. Its rate is 0 if it has no piece of work.
        Empty if none has: the time is too short or too long ago, or the loop did not run.
        """
        return [] if self._ring is None else _rates(self._ring[SLICE.size :], begun_s, ended_s)


def _rates(ring: bytes, begun_s: float, ended_s: float) -> list[float]:
    import numpy as np  # noqa: PLC0415 - not for the loop, which imports this module

    parts = min(max(round((ended_s - begun_s) / PART_S), 1), MOST_PARTS)
    moments, cpu_s = np.frombuffer(ring).reshape(-1, 2).T
    during = (moments >= begun_s) & (moments < ended_s) & (cpu_s > 0)
    if not during.any():
        return []
    part = ((moments[during] - begun_s) / (ended_s - begun_s) * parts).astype(int)
    took_s, pieces = np.bincount(part, cpu_s[during], parts), np.bincount(part, minlength=parts)
    return [READS * float(count / time) if count else 0.0 for count, time in zip(pieces, took_s, strict=True)]


def main(cpu: int, descriptor: int, parent: int) -> None:
    syscalls.die_with(parent, signal.SIGKILL)
    os.sched_setaffinity(0, {cpu})
    ring = mmap.mmap(descriptor, RING_BYTES)
    file = os.memfd_create("fslab-cpu-speed")
    os.truncate(file, _FILE_BYTES)
    whole = range(0, _FILE_BYTES, _READ_BYTES)
    offsets = [whole[number % len(whole)] for number in range(READS)]
    slot = 0
    while True:
        time.sleep(PAUSE_S)
        if not ring[0]:
            continue
        for offset in whole:
            os.pread(file, _READ_BYTES, offset)
        begun = time.thread_time()
        for offset in offsets:
            os.pread(file, _READ_BYTES, offset)
        SLICE.pack_into(ring, (1 + slot) * SLICE.size, time.monotonic(), time.thread_time() - begun)
        slot = (slot + 1) % SLOTS


def reference_rate() -> float:
    """Return the reads of 4 KiB per second from a file in memory. OSError if the kernel has no such files."""
    with memory_file("fslab-reference") as descriptor:
        os.truncate(descriptor, _REFERENCE_BYTES)
        offsets = [_BLOCK_BYTES * (number % (_REFERENCE_BYTES // _BLOCK_BYTES)) for number in range(_BATCH)]
        _read_all(descriptor, offsets)  # the first pass allocates the pages
        done, begun = 0, time.perf_counter()
        while (taken_s := time.perf_counter() - begun) < ROUND_S:
            _read_all(descriptor, offsets)
            done += _BATCH
        return done / taken_s


def reference_spread(rounds: int = ROUNDS) -> float | None:
    """Return the standard deviation of the logarithm of the rate over some rounds; 0.05 means ± 5 %.

    None if the kernel has no files in memory.
    """
    try:
        return spread_of_rates([reference_rate() for _ in range(rounds)])
    except OSError:
        return None


def spread_of_rates(rates: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms of at least two rates."""
    return stdev(map(log, rates))


def _read_all(descriptor: int, offsets: list[int]) -> None:
    """Do all reads in a loop that runs in C."""
    deque(map(os.pread, repeat(descriptor), repeat(_BLOCK_BYTES), offsets), maxlen=0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
