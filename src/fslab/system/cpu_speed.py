"""Watches the speed of one CPU: short pieces of fixed work on it, by ``cpu_speed_loop``.

Other guests on the same hardware slow a CPU for some seconds, which no counter of a guest shows. The work is timed by
the CPU time that it takes, so that a CPU that is busy with a measured run does not look slow.
"""

import mmap
import os
import struct
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

from fslab.errors import FslabError
from fslab.system import files, proc

READS = 200
SLICE = struct.Struct("<dd")  # CLOCK_MONOTONIC at the end of the work in seconds; CPU seconds that it took
SLOTS = 1 << 17  # 2 MiB: 50 minutes
# The ring's file begins with SLICE.size bytes, the first of which is 1 while the loop has to work.
RING_BYTES = (1 + SLOTS) * SLICE.size
PART_S = 0.25
MOST_PARTS = 400


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
                    sys.executable, "-P", "-B", "-m", "fslab.system.cpu_speed_loop",
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
