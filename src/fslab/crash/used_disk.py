"""Make the first image of a recording that of a disk that was used before.

A new disk holds zeros, which a new block of a file may hold, too: a file system that shows what a block held before
would pass. Only sectors whose first write holds contents of files are changed: what a file system expects zeros in
(inode tables, journals that mkfs cleared) is as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fslab.crash.contents import BLOCK_BYTES, MAGIC, SECTOR_BYTES, STALE
from fslab.system import disk_server
from fslab.system.files import opened, write_all


def fill(base: Path, log: Path) -> int:
    """Write ``STALE`` into the sectors of ``base`` that are zeros and to which ``log`` first writes contents of files,
    alone or with zeros in the same 4 KiB block. Returns the number of blocks."""
    count, written = 0, dict[int, int]()  # by block, a bit for each sector: a log can be as large as memory
    with opened(base, os.O_RDWR) as image:
        for offset, data in disk_server.writes(log):
            for at, block in _blocks(offset, data):
                number, first = divmod(at // SECTOR_BYTES, BLOCK_BYTES // SECTOR_BYTES)
                sectors = (1 << len(block) // SECTOR_BYTES) - 1 << first
                before = written.get(number, 0)
                if not before & sectors and _is_of_files(block) and not any(os.pread(image, len(block), at)):
                    write_all(image, STALE * (len(block) // SECTOR_BYTES), at)
                    count += 1
                written[number] = before | sectors
    return count


def _blocks(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the data of each block of 4 KiB, or of the part that was written."""
    end = offset + len(data)
    while offset < end:
        until = min(end, offset // BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES)
        yield offset, data[offset - end :][: until - offset]
        offset = until


def _is_of_files(block: bytes) -> bool:
    sectors = [block[at : at + SECTOR_BYTES] for at in range(0, len(block), SECTOR_BYTES)]
    known = [sector for sector in sectors if any(sector)]
    return bool(known) and all(sector.startswith(MAGIC) for sector in known)
