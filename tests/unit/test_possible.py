"""Tests of cells that are not possible: they are refused with the reason before anything is created."""

from __future__ import annotations

import pytest
from tests import made

from fslab.cell import Cell
from fslab.errors import UnsupportedError
from fslab.feasibility import check_cell, why_not


def cell(filesystem: str | None, tool: str, **parameters: str | int | bool) -> Cell:
    return made.cell(made.spec(filesystem, "ram" if filesystem else "directory"), tool, parameters)


@pytest.mark.parametrize(
    ("filesystem", "tool", "parameters", "says"),
    [
        ("nilfs2", "fio", {"rw": "randwrite", "size": "1m", "direct": True}, "it needs direct writes: nilfs2 sends"),
        ("nilfs2", "fio", {"rw": "randread", "size": "1m", "direct": True}, None),
        ("nilfs2", "fio", {"rw": "randrw", "size": "1m", "direct": True}, "direct writes"),
        ("nilfs2", "fio", {"rw": "randwrite", "size": "1m"}, None),
        ("ext3", "fio", {"rw": "write", "size": "1m", "fallocate": "keep"}, "it needs fallocate"),
        ("ext3", "fio", {"rw": "write", "size": "1m", "fallocate": "native"}, None),
        ("vfat", "fio", {"rw": "write", "size": "4g"}, "a file of 4 GiB"),
        ("vfat", "fio", {"rw": "write", "size": "4g", "nrfiles": 2}, None),
        ("vfat", "dd", {"op": "write", "bs": "1m", "count": 4096}, "files must be smaller than 4 GiB"),
        ("nilfs2", "dd", {"op": "write", "count": 1, "oflag": "direct,dsync"}, "direct writes"),
        ("vfat", "sysbench", {"file-test-mode": "seqrd", "file-total-size": "8G", "file-num": 1}, "a file of 8 GiB"),
        ("vfat", "sysbench", {"file-test-mode": "seqrd", "file-total-size": "8G"}, None),
        ("nilfs2", "sysbench", {"file-test-mode": "seqwr", "file-extra-flags": "direct"}, "direct writes"),
        ("vfat", "engine", {"operation": "small-files"}, None),
        ("none", "engine", {"operation": "small-files"}, "engine works on files; without a file system, dd and single"),
        ("none", "recovery", {}, "recovery works on files"),
        ("none", "fio", {"rw": "randrw", "size": "1m", "nrfiles": 2}, "'nrfiles' of fio is about files"),
        ("none", "fio", {"rw": "randrw", "size": "1m", "direct": True, "numjobs": 2}, None),
        ("none", "dd", {"op": "read", "count": 1}, None),
        ("vfat", "engine", {"operation": "meta", "operations": "create,link"}, "hard links"),
        ("vfat", "engine", {"operation": "meta", "operations": "create,chmod"}, "owners and permissions"),
        ("vfat", "engine", {"operation": "meta", "operations": "create,stat"}, None),
        ("ext4", "engine", {"operation": "sync-write", "method": "reflink"}, "it needs reflinks"),
        ("xfs", "engine", {"operation": "sync-write", "method": "reflink"}, None),
        ("zfs", "engine", {"operation": "small-files"}, None),
        ("vfat", "packages", {}, "hard links"),
        *(("vfat", each, {}, "it needs sockets") for each in ("mariadb", "postgresql", "redis")),
        ("vfat", "samba", {}, None),  # with mount options for one owner
        *((each, "crash", {}, "promises for a power cut") for each in ("f2fs", "jfs", "reiserfs", "bcachefs")),
        ("nilfs2", "crash", {"application": "sqlite"}, "promises for a power cut"),
        ("f2fs", "recovery", {}, "promises for a power cut"),
        ("jfs", "io-errors", {}, "promises for a power cut"),
        *((each, "crash", {}, None) for each in ("ext2", "ext3", "ext4", "xfs", "btrfs")),
        (None, "fio", {"rw": "write", "size": "8t", "direct": True}, None),
    ],
)  # fmt: skip
def test_why_not(
    filesystem: str | None, tool: str, parameters: dict[str, str | int | bool], says: str | None
) -> None:
    why = why_not(cell(filesystem, tool, **parameters))
    assert (why is None) is (says is None)
    assert says is None or says in (why or "")


def test_the_error_says_which_workload_on_what() -> None:
    with pytest.raises(UnsupportedError, match="w on vfat: it needs symbolic links"):
        check_cell(cell("vfat", "engine", operation="meta", operations="symlink"))
