"""Tests of the search path with real directories, owners and processes: which directories' programs are not run."""

from __future__ import annotations

import grp
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.tools.test_path_owners import acl

from fslab.errors import ToolMissingError
from fslab.system import proc, search_path, tools
from fslab.system.tools import Tool

NAME = "fslab-test-program"
NOBODY = 65534


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory of the current user, with a program."""
    made = tmp_path / "bin"
    made.mkdir(mode=0o755)
    (made / NAME).write_text("#!/bin/sh\necho ran\n")
    (made / NAME).chmod(0o755)
    return made


def found(monkeypatch: pytest.MonkeyPatch, *entries: object) -> bool:
    """Return whether the program is found with these entries of PATH. Looking it up and running it must agree."""
    monkeypatch.setenv("PATH", ":".join(map(str, (*entries, "/usr/bin", "/bin"))))
    try:
        assert proc.run([NAME]).stdout == "ran\n"
    except ToolMissingError:
        assert tools.find(NAME) is None
        return False
    assert tools.find(NAME) is not None
    return True


def test_a_directory_of_ours_is_searched(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, directory)
    link = directory.parent / "link"
    link.symlink_to(directory)
    assert found(monkeypatch, link)


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "..//bin"])
def test_the_current_directory_is_not(entry: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory if entry in {"", "."} else directory.parent)
    assert not found(monkeypatch, entry)


def test_nor_is_one_that_others_can_write_to(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.chmod(0o1777)
    assert not found(monkeypatch, directory)
    link = directory.parent / "link"
    link.symlink_to(directory)
    search_path.trusted.cache_clear()
    assert not found(monkeypatch, link)
    with pytest.raises(ToolMissingError, match=r"is not used: other users can write to .*bin"):
        tools.require(Tool(program=NAME, package=None))


def test_nor_one_that_an_acl_opens(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.chmod(0o775)
    assert found(monkeypatch, directory)
    acl(directory, (0x02, 7, NOBODY), (0x10, 7, 0xFFFFFFFF))
    search_path.trusted.cache_clear()
    assert not found(monkeypatch, directory)


def test_nor_one_below_a_directory_that_others_can_write_to(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users who can write to the parent directory can replace the directory, unless the parent has the sticky bit."""
    directory.parent.chmod(0o777)
    assert not found(monkeypatch, directory)
    directory.parent.chmod(0o1777)
    search_path.trusted.cache_clear()
    assert found(monkeypatch, directory)


def test_nor_one_that_is_not_there_yet(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{directory.parent}/later:/usr/bin")
    assert f"{directory.parent}/later" not in search_path.directories()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
def test_another_user_s_is_searched_by_root_only_where_they_called_sudo(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(directory, NOBODY, -1)
    assert not found(monkeypatch, directory)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    search_path.trusted.cache_clear()
    assert found(monkeypatch, directory)
    monkeypatch.setenv("SUDO_UID", "1000")
    search_path.trusted.cache_clear()
    assert not found(monkeypatch, directory)


def test_servers_that_a_distribution_keeps_out_of_path_are_found(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Fedora's MariaDB."""
    assert search_path.directories()[-1] == "/usr/libexec"
    monkeypatch.setattr(search_path, "LIBEXEC", str(directory))
    assert tools.find(NAME) == str(directory / NAME)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
class TestAProgramThatOthersCanChange:
    """It is not run, although the directory that it lies in is trusted."""

    @pytest.fixture(autouse=True, params=["itself", "behind a link", "after another program"])
    def way(self, request: pytest.FixtureRequest, directory: Path) -> str:
        if request.param == "behind a link":
            elsewhere = directory.parent / "elsewhere"
            elsewhere.mkdir(mode=0o755)
            (directory / NAME).rename(elsewhere / NAME)
            (directory / NAME).symlink_to(elsewhere / NAME)
        return str(request.param)

    def check(self, way: str, directory: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
        monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
        argv = ["env", NAME] if way == "after another program" else [NAME]
        named = (
            f"its argument '{NAME}' is also the name of a program"
            if len(argv) > 1
            else f"'{NAME}' is a program"
        )
        with pytest.raises(
            ToolMissingError, match=f"not run: {named} that another user can change: .*{said}"
        ):
            proc.run(argv)
        assert tools.find(NAME) is None
        with pytest.raises(ToolMissingError, match=f"is not used: .*{said}"):
            tools.require(Tool(program=NAME, package=None))

    def test_by_its_mode(self, way: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (directory / NAME).chmod(0o757)
        self.check(way, directory, monkeypatch, "other users can write")

    def test_as_their_own(self, way: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.chown(directory / NAME, NOBODY, -1)
        self.check(way, directory, monkeypatch, f"belongs to user {NOBODY}")

    def test_by_an_acl(self, way: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        acl(directory / NAME, (0x02, 7, NOBODY), (0x10, 7, 0xFFFFFFFF))
        self.check(way, directory, monkeypatch, f"its ACL allows user {NOBODY}")

    def test_by_a_group_with_others_in_it(
        self, way: str, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The own group of nobody: no list of members names them."""
        os.chown(directory / NAME, 0, NOBODY)
        (directory / NAME).chmod(0o775)
        self.check(way, directory, monkeypatch, f"its group is {NOBODY}")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
def test_a_group_of_a_directory_is_trusted_by_root_while_nobody_else_is_in_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as staff, to which Debian gives /usr/local/bin."""
    directory.chmod(0o2775)
    os.chown(directory, 0, 50)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=[]))
    assert found(monkeypatch, directory)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=["gone", "nobody"]))
    search_path.trusted.cache_clear()
    assert not found(monkeypatch, directory)
    told = f"{directory}/{NAME} is not used: .*its group is 50, which has the members nobody"
    with pytest.raises(ToolMissingError, match=rf"(?s){told}.*gpasswd -d USER GROUP"):
        tools.require(Tool(program=NAME, package=None))


def test_where_servers_are_kept_is_judged_as_well(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_path, "LIBEXEC", str(directory))
    directory.chmod(0o757)
    assert str(directory) not in search_path.directories()
