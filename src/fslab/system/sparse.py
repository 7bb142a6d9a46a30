"""Finds the data in sparse files: lseek(2), SEEK_DATA."""

import errno
import os
from collections.abc import Iterator


def data_regions(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each region that is not a hole."""
    end = 0
    while True:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left, or nothing
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def data_pieces(descriptor: int, most_bytes: int = 1 << 20) -> Iterator[tuple[int, int]]:
    """Yield the offsets and sizes of the data, in pieces of at most ``most_bytes``."""
    for start, end in data_regions(descriptor):
        for at in range(start, end, most_bytes):
            yield at, min(most_bytes, end - at)
