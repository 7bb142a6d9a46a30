"""Tests of ``fslab crash fault``: how real file systems react to errors of a virtual disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY
from tests.root.conftest import Document, RunCrash

from fslab.api.crash import run_request
from fslab.campaign.cleanup import clean_all
from fslab.faults import FILES, trial
from fslab.faults.struck_files import Ground
from fslab.storage.filesystems.btrfs import Btrfs
from fslab.system import mountinfo

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")

Virtual = Callable[..., Path]


@pytest.fixture
def struck(virtual: Virtual, document: Document, tmp_path: Path) -> Callable[[str, str], dict[str, Any]]:
    """Return a function that tests one fault on a new file system and returns the JSON document.

    It also checks that the file system is mounted again with the same options and can be written.
    """

    def strike(filesystem: str, fault: str) -> dict[str, Any]:
        directory = virtual(filesystem, "--log", str(tmp_path / "fslab-disk.log"))
        options = mountinfo.containing(directory).options
        found = document("fault", directory, fault, "--scratch", tmp_path)
        assert found["hit"] == found["reported"] + found["silent"] + found["unharmed"]
        assert (found["filesystem"], found["fault"], found["lost"]) == (filesystem, fault, 0)
        assert mountinfo.containing(directory).options == options
        (directory / "more").write_text("x")
        return found

    return strike


Struck = Callable[[str, str], dict[str, Any]]


@pytest.mark.parametrize(("filesystem", "verdict"), [("ext4", "silent"), ("btrfs", "reported")])
def test_data_checksums_report_a_flipped_bit(struck: Struck, filesystem: str, verdict: str) -> None:
    found = struck(filesystem, "bit-rot-data")
    assert (found["hit"], found[verdict]) == (FILES, FILES)


@pytest.mark.parametrize("filesystem", [pytest.param("xfs", marks=pytest.mark.slow), "btrfs"])
def test_no_flipped_bit_of_metadata_is_served(struck: Struck, filesystem: str) -> None:
    found = struck(filesystem, "bit-rot-metadata")
    assert found["hit"] > 0
    assert found["silent"] == 0
    if filesystem == "btrfs":
        assert found["unharmed"] == found["hit"], "metadata has a second copy (DUP)"


def test_what_cannot_be_read_is_an_error(struck: Struck) -> None:
    assert struck("ext4", "read-error-data")["reported"] == FILES


def test_metadata_that_cannot_be_read_come_from_a_second_copy(struck: Struck) -> None:
    found = struck("btrfs", "read-error-metadata")
    assert found["unharmed"] == found["hit"] > 0


@pytest.mark.parametrize("filesystem", ["ext4", pytest.param("btrfs", marks=pytest.mark.slow)])
def test_a_second_fsync_says_success_although_the_data_are_gone(struck: Struck, filesystem: str) -> None:
    found = struck(filesystem, "write-error-data")
    assert (found["hit"], found["reported"], found["reported_once"]) == (FILES, FILES, FILES)


def test_ext4_stops_when_no_write_succeeds_and_is_whole_afterwards(struck: Struck) -> None:
    found = struck("ext4", "write-error-all")
    assert (found["reported"], found["writes_stopped"], found["needs_repair"]) == (FILES, True, False)


def test_ext2_goes_on(struck: Struck) -> None:
    found = struck("ext2", "write-error-once")
    assert (found["reported"], found["writes_stopped"]) == (FILES, False)


@pytest.mark.parametrize("filesystem", ["xfs", pytest.param("btrfs", marks=pytest.mark.slow)])
def test_a_flush_that_fails_is_reported(struck: Struck, filesystem: str) -> None:
    found = struck(filesystem, "flush-error")
    assert found["hit"] == found["reported"] > 0


@pytest.mark.parametrize("filesystem", ["ext2", pytest.param("btrfs", marks=pytest.mark.slow)])
def test_replacing_on_a_full_disk_leaves_the_old_or_the_new(struck: Struck, filesystem: str) -> None:
    found = struck(filesystem, "full-disk")
    assert (found["hit"], found["silent"], found["writes_stopped"]) == (FILES, 0, False)


def test_what_cannot_have_a_fault_is_refused_and_unchanged(
    virtual: Virtual, run_crash: RunCrash, tmp_path: Path
) -> None:
    directory = virtual("ext4")
    (directory / "there").write_text("kept")
    for place, fault, told in (
        (tmp_path, "flush-error", "not on one virtual disk"),
        (directory, "flush-error", "keeps no log"),
        (directory, "smoke", "no fault 'smoke'"),
    ):
        done = run_crash("fault", place, fault)
        assert done.returncode != 0
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    assert (directory / "there").read_text() == "kept"


def test_where_a_file_system_is_in_use_nothing_is_armed(
    virtual: Virtual, run_crash: RunCrash, tmp_path: Path
) -> None:
    directory = virtual("ext4", "--log", str(tmp_path / "fslab-disk.log"))
    with (directory.parent / "open").open("w"):
        done = run_crash("fault", directory, "flush-error")
    assert done.returncode != 0
    assert "cannot unmount" in done.stderr


def test_a_file_system_that_cannot_be_mounted_any_more_is_a_finding(
    virtual: Virtual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repair of btrfs, which would find its other superblock, is left out."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = virtual("btrfs", "--log", str(tmp_path / "fslab-disk.log"))
    device = Path(mountinfo.containing(directory).source)
    request, come_back, superblock = tmp_path / "request", trial._come_back, list[bytes]()
    told = {"do": "fault", "directory": str(directory), "fault": "bit-rot-data", "scratch": str(tmp_path)}
    request.write_text(json.dumps(told))

    def destroyed(ground: Ground, result: trial.Result) -> None:
        ground.unmount()
        with device.open("r+b", buffering=0) as disk:
            disk.seek(64 << 10)
            superblock.append(disk.read(4096))
            disk.seek(64 << 10)
            disk.write(bytes(4096))
        come_back(ground, result)

    with monkeypatch.context() as patch:
        patch.setattr(trial, "_come_back", destroyed)
        patch.setattr(Btrfs, "repair_argv", lambda *_: None)
        found = run_request(request)
    assert (found["needs_repair"], found["lost"]) == (True, FILES)
    assert found["not_mounted"] in found["examples"]
    with device.open("r+b", buffering=0) as disk:
        disk.seek(64 << 10)
        disk.write(superblock[0])
    assert clean_all()[1] == []
    assert mountinfo.containing(directory).source == str(device)
