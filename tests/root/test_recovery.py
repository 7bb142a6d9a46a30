"""Tests of ``fslab crash recover``: power is cut on a virtual disk, and its file system is mounted again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.disk_server import BINARY
from tests.mkfs import run_mkfs
from tests.root.conftest import Document, RunCrash

from fslab.api.crash import run_request
from fslab.campaign.cleanup import clean_all
from fslab.crash import recovery
from fslab.errors import UnsupportedError
from fslab.system import mountinfo, proc
from fslab.workloads import REGISTRY as WORKLOADS
from fslab.workloads import ToolOutput
from fslab.workloads.recovery import RecoveryParameters

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")

Virtual = Callable[..., Path]
FILES = 300


@pytest.fixture
def recovered(document: Document) -> Document:
    return lambda directory, *arguments: document("recover", directory, "--files", FILES, *arguments)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "ext2"])
def test_what_was_synced_is_there_and_it_is_mounted_again(
    virtual: Virtual, recovered: Document, filesystem: str
) -> None:
    directory = virtual(filesystem, "--cache", "volatile")
    proc.run(["mount", "--make-shared", str(directory.parent)])
    options = mountinfo.containing(directory).options
    found = recovered(directory)
    assert (found["filesystem"], found["lost"], found["damaged"]) == (filesystem, None, None)
    for name in ("recovery", "first_read", "first_write", "check"):
        assert found[f"{name}_ns"] > 0
    assert found["read_bytes"] > 0, "nothing was read to mount it"
    assert 0 <= found["kept_files"] <= FILES
    after = mountinfo.containing(directory)
    assert after.options == options
    assert [each.partition(":")[0] for each in after.propagation] == ["shared"]
    (directory / "more").write_text("x")


@pytest.mark.parametrize("profile", ["hdd-7200", "ssd-sata"])
def test_on_modelled_disks(virtual: Virtual, recovered: Document, profile: str) -> None:
    found = recovered(virtual("ext4", "--profile", profile) / "new", "--unflushed", "kept", "--no-check")
    assert (found["lost"], found["check_ns"]) == (None, None)
    assert found["kept_files"] == FILES, "the journal has all that was there when the last file was synced"
    assert found["written_bytes"] > 0, "a journal was replayed"


def test_a_disk_that_ignores_flushes_loses_what_was_synced(virtual: Virtual, recovered: Document) -> None:
    directory = virtual("ext4", "--cache", "volatile", fault="ignore-flush")
    found = recovered(directory, "--unflushed", "lost", "--no-check")
    assert found["lost"] is not None
    assert found["kept_files"] == 0


def test_what_cannot_lose_power_is_refused_and_unchanged(
    virtual: Virtual, run_crash: RunCrash, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    directory = virtual("ext4")
    (directory / "there").write_text("kept")
    for place, told in (
        (plain, "not on one virtual disk"),
        (directory, "not empty"),
        (directory / "there", "exists"),
    ):
        done = run_crash("recover", place)
        assert done.returncode != 0
        assert told in done.stderr
    assert (directory / "there").read_text() == "kept"
    assert list(plain.iterdir()) == []


@pytest.mark.parametrize("command", [("test",), ("recover",), ("fault", "write-error-once")])
def test_a_journal_on_another_device_is_refused(
    loop: Callable[[], Path], virtual: Virtual, run_crash: RunCrash, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """States of one disk would be mounted with the journal as it is now, and change it."""
    journal = loop()
    assert run_mkfs(["mkfs.ext4", "-q", "-b", "4096", "-O", "journal_dev", str(journal)]).returncode == 0
    log = ("--log", str(tmp_path / "fslab-disk.log"), "--log-data", "--cache", "volatile")
    directory = virtual("ext4", *log, mkfs=f"-J device={journal}")
    done = run_crash(command[0], directory, *command[1:])
    assert done.returncode == UnsupportedError.exit_code, done.stderr
    assert "also on other devices" in done.stderr
    assert list(directory.iterdir()) == []


def test_a_file_system_that_cannot_be_mounted_after_the_cut_is_a_finding(
    virtual: Virtual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = virtual("ext4", "--cache", "volatile")
    request, cut, superblock = tmp_path / "request", recovery._cut, list[bytes]()
    device = Path(mountinfo.containing(directory).source)
    request.write_text(json.dumps({"do": "recover", "directory": str(directory / "new"), "files": 10}))

    def destroyed(*arguments: Any) -> None:
        cut(*arguments)
        with device.open("r+b") as disk:
            superblock.append(disk.read(4096))
            disk.seek(0)
            disk.write(bytes(4096))

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "_cut", destroyed)
        told = run_request(request)
    assert "the kernel logged: EXT4-fs" in told["not_mounted"]
    output = ToolOutput(stdout=json.dumps(told), stderr="", duration_s=1.0)
    read = WORKLOADS.get("recovery").read(RecoveryParameters(), output)
    assert read.promises_broken == (told["damaged"],)
    assert set(read.metrics.values()) == {None}
    with device.open("r+b") as disk:
        disk.write(superblock[0])
    assert clean_all()[1] == []
    assert mountinfo.containing(directory).source == str(device)


def test_where_a_file_system_is_in_use_nothing_is_cut(virtual: Virtual, run_crash: RunCrash) -> None:
    directory = virtual("ext4", "--cache", "volatile")
    with (directory.parent / "open").open("w") as file:
        done = run_crash("recover", directory, "--files", "10")
        assert done.returncode != 0
        assert "cannot unmount" in done.stderr
        file.write("goes on")
        file.flush()
        os.fsync(file.fileno())
    assert list(directory.iterdir()) == []


def test_a_disk_that_is_full_is_said_to_be(virtual: Virtual, run_crash: RunCrash) -> None:
    directory = virtual("ext4")
    done = run_crash("recover", directory, "--files", "3", "--size", "200m")
    assert done.returncode != 0
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    (directory / "more").write_text("power is on")
