"""The loop that watches one CPU. ``python -m fslab.system.cpu_speed_loop CPU DESCRIPTOR PARENT``.

While it has to work, it reads 200 × 4 KiB from a file in memory every 25 ms, which takes a quarter of a millisecond,
and writes when, and how much CPU time that took, to a ring in the file DESCRIPTOR. The whole file is read once before,
so that the time does not depend on what ran before and emptied the CPU's caches. It ends with process PARENT.
"""

import mmap
import os
import signal
import sys
import time

from fslab.system import syscalls
from fslab.system.cpu_speed import READS, RING_BYTES, SLICE, SLOTS

PAUSE_S = 0.025
_FILE_BYTES = 64 << 10  # fits in the second-level caches of CPUs since 2010
_READ_BYTES = 4096


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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
