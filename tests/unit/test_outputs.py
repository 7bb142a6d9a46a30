"""Files that a user asked for are there whole or not at all; nobody else's links are followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fslab import outputs


def test_what_was_there_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    file.chmod(0o640)
    outputs.replace(file, "new ★")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new ★", 0o640)
    assert [*tmp_path.iterdir()] == [file]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        outputs.replace(tmp_path / "new", b"\0")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_write_that_fails_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(OSError, match="No space left"):
        outputs.replace(file, "new")
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "2026.html", tmp_path / "latest.html"
    real.write_text("old")
    link.symlink_to(real)
    outputs.replace(link, "new")
    assert (link.is_symlink(), real.read_text()) == (True, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_somebody_else_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "shadow", tmp_path / "report.html"
    real.write_text("old")
    link.symlink_to(real)
    os.lchown(link, 65534, 65534)
    outputs.replace(link, "new")
    assert (link.is_symlink(), link.read_text(), real.read_text()) == (False, "new", "old")


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        outputs.replace(pipe, "new")
        assert os.read(reader, 10) == b"new"
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


def test_a_long_name_leaves_room_for_the_unfinished_file(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    outputs.replace(file, "new")
    assert file.read_text() == "new"
