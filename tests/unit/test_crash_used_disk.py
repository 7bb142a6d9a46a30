"""Tests of the first image of a recording: where it holds what was on the disk before the test."""

from __future__ import annotations

import struct
from pathlib import Path

from fslab.crash import contents, used_disk
from fslab.crash.contents import BLOCK_BYTES, PART_BYTES, SECTOR_BYTES, STALE, Place
from fslab.system import disk_server

FAILED = 1
HEADER = struct.pack("<8sIIQQ32x", disk_server.MAGIC, 1, 64, 1 << 20, 0)
PART = contents.part(Place(sequence=1, inode=1, part=0), 1)
OTHER = b"\x01" * PART_BYTES


def filled(tmp_path: Path, base: bytes, *rows: tuple[int, bytes], flags: int = 0) -> tuple[int, bytes]:
    """Return the number of blocks that are filled, and the image then. ``rows``: offsets and data of writes."""
    image, log, at = tmp_path / "base", tmp_path / "log", 0
    image.write_bytes(base)
    written = HEADER
    for offset, data in rows:
        written += struct.pack("<QQQQQIIHBB12x", 0, 1, 1, offset, at, len(data), 0, 0, 1, flags)
        at += len(data)
    log.write_bytes(written)
    Path(f"{log}.data").write_bytes(b"".join(data for _, data in rows))
    return used_disk.fill(image, log), image.read_bytes()


def test_a_new_block_of_a_file_holds_other_bytes_before_it_is_written(tmp_path: Path) -> None:
    stale, zeros = STALE * (BLOCK_BYTES // SECTOR_BYTES), bytes(BLOCK_BYTES)
    assert filled(tmp_path, 2 * zeros, (0, 2 * PART)) == (1, stale + zeros)
    assert filled(tmp_path, 2 * zeros, (0, PART + bytes(PART_BYTES))) == (1, stale + zeros), (
        "half of it is a hole"
    )
    assert filled(tmp_path, zeros, (0, bytes(PART_BYTES) + PART)) == (1, stale), "the first half of it is"
    assert filled(tmp_path, 2 * zeros, (1024, 3 * PART)) == (2, zeros[:1024] + STALE * 12 + zeros[:1024])
    assert filled(tmp_path, 2 * zeros, (0, 2 * OTHER + 2 * PART)) == (1, zeros + stale), (
        "metadata is before it"
    )
    assert filled(tmp_path, zeros, (0, PART), (PART_BYTES, PART)) == (2, stale), "blocks are of 2 KiB"
    assert filled(tmp_path, zeros, (PART_BYTES, OTHER), (0, PART)) == (
        1,
        stale[:PART_BYTES] + zeros[PART_BYTES:],
    )


def test_what_may_be_no_data_of_a_file_is_as_it_was(tmp_path: Path) -> None:
    zeros = bytes(BLOCK_BYTES)
    for rows in (
        [(0, OTHER + PART)],  # such as a block of extended attributes
        [(0, PART + OTHER)],
        [(0, zeros)],
        [(0, 2 * OTHER), (0, 2 * PART)],  # metadata was there first
        [(SECTOR_BYTES, OTHER), (0, 2 * PART)],
        [(0, OTHER[:SECTOR_BYTES]), (0, 2 * PART)],
        [(PART_BYTES, OTHER), (PART_BYTES, PART)],
    ):
        assert filled(tmp_path, zeros, *rows) == (0, zeros)
    assert filled(tmp_path, zeros, (0, 2 * PART), flags=FAILED) == (0, zeros)
    assert filled(tmp_path, OTHER + OTHER, (0, 2 * PART)) == (0, OTHER + OTHER), "it has contents already"
    half = OTHER + bytes(PART_BYTES)
    assert filled(tmp_path, half, (0, 2 * PART)) == (0, half), "half of it has"


def test_it_is_told_from_bytes_of_files() -> None:
    assert contents.describe(STALE) == "bytes that were on the disk before the test"
