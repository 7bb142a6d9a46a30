"""Tests of output files: they are replaced completely or not at all, and links of other users are not followed."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest
from tests.limits import ran

from fslab import safe_output
from fslab.errors import UsageError
from fslab.system import files


def test_what_was_there_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    file.chmod(0o640)
    safe_output.replace(file, "new ★")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new ★", 0o640)
    assert [*tmp_path.iterdir()] == [file]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        safe_output.replace(tmp_path / "new", b"\0")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_write_that_fails_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(UsageError, match="cannot be written: No space left"):
        safe_output.replace(file, "new")
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "2026.html", tmp_path / "latest.html"
    real.write_text("old")
    link.symlink_to(real)
    safe_output.replace(link, "new")
    assert (link.is_symlink(), real.read_text()) == (True, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_somebody_else_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "shadow", tmp_path / "report.html"
    real.write_text("old")
    link.symlink_to(real)
    os.lchown(link, 65534, 65534)
    safe_output.replace(link, "new")
    assert (link.is_symlink(), link.read_text(), real.read_text()) == (False, "new", "old")
    assert not link.stat().st_mode & 0o022, "a link's own permissions are 0777"


def read_while_replaced(pipe: Path, output: Path) -> bytes:
    """Return what a reader of the pipe gets when ``output`` is written."""
    with files.opened(pipe, os.O_RDONLY | os.O_NONBLOCK) as reader:
        safe_output.replace(output, "new")
        return os.read(reader, 10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_somebody_else_to_a_pipe_is_replaced_and_the_pipe_gets_nothing(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "report.html"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    os.lchown(link, 65534, 65534)
    assert read_while_replaced(pipe, link) == b""
    assert link.read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a pipe of another user")
def test_a_pipe_of_somebody_else_is_replaced(tmp_path: Path) -> None:
    """Its owner would read the report, or let its writer wait for ever."""
    tmp_path.chmod(0o1777)
    pipe = tmp_path / "report.html"
    os.mkfifo(pipe)
    os.chown(pipe, 65534, 65534)
    assert read_while_replaced(pipe, pipe) == b""
    assert pipe.read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a pipe of another user")
def test_a_pipe_of_somebody_else_where_only_we_make_files_is_meant(tmp_path: Path) -> None:
    pipe = tmp_path / "report.html"
    os.mkfifo(pipe)
    os.chown(pipe, 65534, 65534)
    assert read_while_replaced(pipe, pipe) == b"new"
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "shell", ["$WRITE | cat", "$WRITE > told; cat told", "(echo before; $WRITE) > told; cat told"]
)
def test_standard_output_by_its_name(shell: str, tmp_path: Path) -> None:
    script = "from pathlib import Path; from fslab import safe_output; safe_output.replace(Path('/dev/stdout'), 'new')"
    write = f'"{sys.executable}" -c "{script}"'
    done = ran(["sh", "-c", shell.replace("$WRITE", write)], check=True, cwd=tmp_path)
    assert done.stdout == ("before\nnew" if "before" in shell else "new")
    assert {each.name for each in tmp_path.iterdir()} <= {"told"}


def test_where_nothing_can_be_renamed_over_a_file_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is mounted into a container cannot be replaced by rename(2) (EBUSY); it is overwritten instead."""
    file = tmp_path / "report.html"
    file.write_text("old and longer")

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    safe_output.replace(file, "new")
    assert file.read_text() == "new"
    assert [*tmp_path.iterdir()] == [file]


def test_a_link_that_leads_to_itself_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to("loop")
    safe_output.replace(link, "new")
    assert link.read_text() == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        safe_output.replace(pipe, "new")
        assert os.read(reader, 10) == b"new"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


def test_a_long_name_leaves_room_for_the_unfinished_file(tmp_path: Path) -> None:
    file = tmp_path / ("漢" * 85)
    safe_output.replace(file, "new")
    assert file.read_text() == "new"


def test_a_pipe_that_is_exchanged_is_written_to_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /tmp, another user can exchange a name between the look and the write."""
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    os.mkfifo(pipe)
    other.write_text("kept")

    def exchanged(*_: object) -> bool:
        pipe.unlink()
        pipe.hardlink_to(other)
        return False

    monkeypatch.setattr(safe_output, "_is_strange", exchanged)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        safe_output.replace(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert other.read_text() == "kept"
