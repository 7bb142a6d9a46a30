"""Measure the current speed of the machine with fixed work: system calls and copies in memory.

It shows when others take cache and memory bandwidth of the same hardware, which no counter of a guest shows.
"""

import os
import time
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from math import log
from statistics import stdev

from fslab.system.files import memory_file

_FILE_BYTES = 4 << 20
_READ_BYTES = 4096
_BATCH = 1024
ROUNDS = 30
ROUND_S = 0.05


def rate() -> float:
    """Return the reads of 4 KiB per second from a file in memory. OSError if the kernel has no such files."""
    with memory_file("fslab-reference") as descriptor:
        os.truncate(descriptor, _FILE_BYTES)
        offsets = [_READ_BYTES * (number % (_FILE_BYTES // _READ_BYTES)) for number in range(_BATCH)]
        _read(descriptor, offsets)  # the first pass allocates the pages
        done, begun = 0, time.perf_counter()
        while (taken_s := time.perf_counter() - begun) < ROUND_S:
            _read(descriptor, offsets)
            done += _BATCH
        return done / taken_s


def spread(rounds: int = ROUNDS) -> float | None:
    """Return the standard deviation of the logarithm of the rate over some rounds; 0.05 means ± 5 %.

    None if the kernel has no files in memory.
    """
    try:
        return spread_of([rate() for _ in range(rounds)])
    except OSError:
        return None


def spread_of(rates: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms of at least two rates."""
    return stdev(map(log, rates))


def _read(descriptor: int, offsets: list[int]) -> None:
    """Do all reads in a loop that runs in C."""
    deque(map(os.pread, repeat(descriptor), repeat(_READ_BYTES), offsets), maxlen=0)
