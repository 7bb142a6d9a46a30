"""Find the places of a file system's journal and superblocks on a device, from its superblock. Only reads.

Fields: Documentation/filesystems/ext4/super.rst and inodes.rst, fs/xfs/libxfs/xfs_format.h, fs/btrfs/disk-io.h.
"""

import struct
from pathlib import Path

from fslab.tracing import Sectors

_HAS_JOURNAL = 4
_BTRFS_SUPERBLOCKS = ((128, 136), (131072, 131080), (536870912, 536870920))  # 64 KiB, 64 MiB, 256 GiB


def of(device: Path) -> Sectors:
    """Return the places for the file system on ``device``; without any if the superblock is unknown or damaged."""
    try:
        return _of(device)
    except (struct.error, ValueError):
        return Sectors()


def _of(device: Path) -> Sectors:
    with device.open("rb", buffering=0) as file:
        head = file.read(4096)
    if head[0x438:0x43A] == b"\x53\xef":
        return Sectors(journal=_ext4_journal(head[1024:2048]), superblocks=((0, 8),))
    if head[:4] == b"XFSB":
        return Sectors(journal=_xfs_log(head), superblocks=())
    with device.open("rb", buffering=0) as file:
        file.seek(65536)
        if file.read(4096)[64:72] == b"_BHRfS_M":
            return Sectors(journal=(), superblocks=_BTRFS_SUPERBLOCKS)
    return Sectors()


def _ext4_journal(superblock: bytes) -> tuple[tuple[int, int], ...] | None:
    """Read the copy of the journal inode's extents in the superblock (s_jnl_blocks); None for a map of blocks, as of
    ext3, or another device."""
    (features,) = struct.unpack_from("<I", superblock, 0x5C)
    if not features & _HAS_JOURNAL:
        return ()
    (log_block,) = struct.unpack_from("<I", superblock, 0x18)
    kept, tree = superblock[0xFD], superblock[0x10C : 0x10C + 60]
    magic, entries, _, depth = struct.unpack_from("<HHHH", tree, 0)
    if kept != 1 or magic != 0xF30A or depth:
        return None
    per_block = (1024 << log_block) // 512
    found = []
    for index in range(entries):
        _, length, high, low = struct.unpack_from("<IHHI", tree, 12 + 12 * index)
        start = (high << 32 | low) * per_block
        found.append((start, start + length * per_block))
    return tuple(found)


def _xfs_log(superblock: bytes) -> tuple[tuple[int, int], ...] | None:
    (start,) = struct.unpack_from(">Q", superblock, 48)
    (group_blocks,) = struct.unpack_from(">I", superblock, 84)
    (blocks,) = struct.unpack_from(">I", superblock, 96)
    block_log, group_log = superblock[120], superblock[124]
    if not start:
        return None  # the log lies on another device
    block = (start >> group_log) * group_blocks + (start & ((1 << group_log) - 1))
    shift = block_log - 9
    return ((block << shift, (block + blocks) << shift),)
