"""Tests that a campaign that runs is known by its store, wherever fslab keeps its own state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.made import campaign
from typer.testing import CliRunner

from fslab.cli import app
from fslab.errors import BusyError, StoreError, UnsafeError
from fslab.store.store import Store

_HOLDS = """
import sys
from fslab.store.store import Store
with Store.open(sys.argv[1]) as store, store.running("runs"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("by_link", [False, True])
def test_another_state_directory_does_not_let_a_running_campaign_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_link: bool
) -> None:
    url = str(tmp_path / "store.sqlite")
    with Store.open(url) as store:
        store.create_campaign(campaign("runs"))
        store.create_campaign(campaign("idle"))
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        for variable in ("XDG_STATE_HOME", "FSLAB_RUNTIME_DIR"):
            monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
        seen = str(tmp_path / "link") if by_link else url
        if by_link:
            os.symlink(url, seen)  # noqa: PTH211 - the string is what fslab gets
        for more in ([], ["--force"]):
            done = CliRunner().invoke(app, ["delete", "runs", "--yes", "--store", seen, *more])
            assert isinstance(done.exception, BusyError)
        with Store.open(seen) as store:
            assert [store.is_running(name) for name in ("runs", "idle")] == [True, False]
    finally:
        process.kill()
        process.communicate()
    with Store.open(url) as store:
        assert not store.is_running("runs")
        store.delete_campaign("runs")


def test_nothing_is_put_beside_a_store_where_another_user_can(tmp_path: Path) -> None:
    url = tmp_path / "theirs" / "store.sqlite"
    with Store.open(str(url)) as store:
        store.create_campaign(campaign("c"))
    url.parent.chmod(0o777)
    with Store.open(str(url), create=False) as store, pytest.raises(UnsafeError):
        store.delete_campaign("c")
    assert not [each for each in url.parent.iterdir() if each.name.endswith("-running")]


@pytest.mark.parametrize(("store_mode", "mode"), [(0o644, 0o600), (0o664, 0o660), (0o600, 0o600)])
def test_who_can_only_read_a_store_cannot_hold_its_locks(tmp_path: Path, store_mode: int, mode: int) -> None:
    url = tmp_path / "store.sqlite"
    with Store.open(str(url)) as store:
        url.chmod(store_mode)
        with store.running("c"):
            assert (tmp_path / "store.sqlite-running").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("there", ["link", "directory"])
def test_another_file_of_the_name_of_the_locks_is_an_error_and_stays(tmp_path: Path, there: str) -> None:
    other, place = tmp_path / "other", tmp_path / "store.sqlite-running"
    other.write_text("kept")
    other.chmod(0o600)
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        store.create_campaign(campaign("c"))
        if there == "link":
            place.symlink_to(other)
        else:
            place.mkdir()
        assert not store.is_running("c")
        with pytest.raises(StoreError, match="cannot be opened"):
            store.delete_campaign("c")
        assert [each.id for each in store.campaigns()] == ["c"]
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("kept", 0o600)
