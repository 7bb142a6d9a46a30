"""Tests of system calls that Python lacks, on the file system of the temporary directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fslab import feasibility
from fslab.errors import UnsupportedError
from fslab.filesystem_abilities import Ability, Needs
from fslab.system import syscalls
from fslab.system.syscalls import Fallocate, Rename

MIB = 1 << 20


def test_fallocate_punches_and_refuses(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MIB)
    descriptor = os.open(file, os.O_RDWR)
    try:
        syscalls.fallocate(descriptor, Fallocate.ALLOCATE, MIB, 4096)
        assert os.fstat(descriptor).st_size == MIB + 4096
        syscalls.fallocate(descriptor, Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE, 0, 8192)
        assert os.pread(descriptor, 8193, 0) == bytes(8192) + b"x"
        with pytest.raises(OSError, match="fallocate"):
            syscalls.fallocate(descriptor, Fallocate.PUNCH_HOLE, 0, 4096)  # fallocate(2): requires KEEP_SIZE
    finally:
        os.close(descriptor)


def test_rename_exchanges_and_replaces_nothing(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    syscalls.rename(one, two, Rename.EXCHANGE)
    assert (one.read_text(), two.read_text()) == ("2", "1")
    with pytest.raises(FileExistsError):
        syscalls.rename(one, two, Rename.NOREPLACE)


def test_pages_in_the_cache_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MIB)
    assert syscalls.cached_pages(file) == MIB // syscalls.PAGE_BYTES
    assert syscalls.direct_alignment(file) is None or syscalls.direct_alignment(file)


def test_no_file_here_is_persistent_memory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 4096)
    with pytest.raises(OSError, match=r"\[Errno") as caught:
        syscalls.map_synchronously(file)
    assert caught.value.errno in {errno.EOPNOTSUPP, errno.EINVAL}


def test_what_is_tried_leaves_nothing_behind(tmp_path: Path) -> None:
    tried = {Ability.HARD_LINKS, Ability.SYMLINKS, Ability.CHOWN, Ability.COLON}
    feasibility.check_mounted(tmp_path, Needs(abilities=frozenset({*tried, Ability.XATTR})), "this one")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_when_tried_is_unsupported_with_the_kernel_s_own_word() -> None:
    # In proc(5) no file can be created. This error is not an expected one, so the kernel's message is shown.
    needs = Needs(abilities=frozenset({Ability.DIRECT_WRITES}))
    with pytest.raises(
        UnsupportedError, match=r"needs direct writes, which fails on proc here \(No such file"
    ):
        feasibility.check_mounted(Path("/proc/self"), needs, "proc")


@pytest.mark.skipif(os.geteuid() != 0, reason="for another user, servers run as this user")
def test_a_file_system_without_owners_can_belong_to_the_user_of_servers() -> None:
    with pytest.raises(UnsupportedError, match="needs chown to the user") as caught:
        feasibility.check_mounted(Path("/proc/self"), Needs(abilities=frozenset({Ability.CHOWN})), "proc")
    assert "mount it with uid=65534,gid=65534; or remove" in (caught.value.hint or "")
