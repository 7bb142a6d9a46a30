"""Reads the numbers of mkfs.xfs's options and of xfs_info. Pure."""

import re

from fslab.units import parse_size

_SIZES = ("isize", "agcount", "agsize", "bsize")


def value(flag: str, name: str, options: str) -> int | None:
    """Return a number or size among mkfs options; 0 for one in another unit than bytes, None if it is not given."""
    found = re.search(rf"(?<!\S)-{flag}\s*\S*\b{name}=(\w+)", options)
    if found is None:
        return None
    try:
        return parse_size(found[1])
    except ValueError:
        return 0


def has_long_numbers(info: str) -> bool:
    """Return whether the number of the last inode has more than 32 bits, given what xfs_info prints; false if that is
    not known. Source: fs/xfs/xfs_super.c, xfs_set_inode_alloc."""
    found = re.findall(rf"\b({'|'.join(_SIZES)})=(\d+)", info)
    sizes = dict(reversed(found))  # of several block sizes, the data's come first
    if len(sizes) < len(_SIZES):
        return False
    inode, groups, blocks, block = (int(sizes[each]) for each in _SIZES)
    numbers = 1 << (blocks - 1).bit_length()  # of blocks, that each group has
    return ((groups - 1) * numbers + blocks - 1) * (block // inode) >= 1 << 32
