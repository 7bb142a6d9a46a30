"""Fixtures for tests as root, which make real loop devices and mounts, each in its own directories."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import loops
from tests.disk_server import BINARY, SIZE, Server
from tests.limits import RUN_LIMIT_S, ran
from tests.mkfs import run_mkfs
from tests.starter import Starter

from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.storage import Workspace
from fslab.system import loop_devices, proc, sysfs

MIB = 1 << 20
FSLAB = str(BINARY.with_name("fslab"))
MKFS = {
    "ext4": ["-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "ext2": ["-b", "4096"],
    "xfs": [],
    "btrfs": [],
}
CRASH_SIZE = 320 * MIB
RunCrash = Callable[..., subprocess.CompletedProcess[str]]
Document = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.root)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with cleanup.opened_workspace(new_id(), frozenset()) as opened:
        yield opened


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield the mount point of a tmpfs of 2 MiB. Its name has characters that must be quoted in a URL."""
    target = tmp_path / "disk with ? and %41"
    target.mkdir()
    proc.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "fslab-test", str(target)])
    try:
        yield target
    finally:
        proc.run(["umount", "--lazy", str(target)])


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Yield a function that makes empty loop devices of 64 MiB that do not belong to fslab."""
    images: list[Path] = []

    def make() -> Path:
        image = tmp_path / f"somebody {len(images)}.img"
        image.write_bytes(bytes(64 * MIB))
        images.append(image)
        return loops.attached(image)

    yield make
    for image in images:
        loop_devices.detach(image)


@pytest.fixture
def uncounted(loop: Callable[[], Path]) -> Iterator[Path]:
    """Yield a loop device whose requests the kernel does not count (queue/iostats is 0).

    The setting is restored, because it stays after the image is detached and would affect the next image.
    """
    device = loop()
    switch = sysfs.SYS / "class/block" / device.name / "queue/iostats"
    was = switch.read_text()
    switch.write_text("0")
    try:
        yield device
    finally:
        switch.write_text(was)


@pytest.fixture
def stable(tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """Yield a function that gives a device a stable name, as udev does: a link in /dev/disk/by-id.

    The directories are made if there are none, and removed when they are empty, as udev does.
    """
    links: list[Path] = []
    directory = Path("/dev/disk/by-id")

    def name(device: Path) -> str:
        link = directory / f"fslab-{os.getpid()}-{tmp_path.name}-{len(links)}"
        with _names_locked():
            directory.mkdir(parents=True, exist_ok=True)
            link.symlink_to(device)
        links.append(link)
        return str(link)

    yield name
    with _names_locked():
        for link in links:
            link.unlink()
        with contextlib.suppress(OSError):  # another test, or udev, has links there
            directory.rmdir()
            directory.parent.rmdir()


@contextlib.contextmanager
def _names_locked() -> Iterator[None]:
    """Keep other tests from making or removing the directories of names meanwhile."""
    directory = os.open("/dev", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


@pytest.fixture
def shell() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a tool other than fslab."""

    def run(*argv: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        return ran([str(word) for word in argv], check=check)

    return run


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    if not BINARY.exists():
        pytest.skip("fslab-disk is not installed beside this Python")
    servers: list[Server] = []

    def start(*options: str, size: int = SIZE) -> Server:
        servers.append(Server(tmp_path, *options, size=size))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


@pytest.fixture
def virtual(serve: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Yield a function that makes a file system on a virtual disk and returns a directory on it."""
    target = tmp_path / "mounted"
    target.mkdir()

    def make(
        filesystem: str, *served: str, options: str = "rw", fault: str | None = None, mkfs: str = ""
    ) -> Path:
        server = serve(*served, size=CRASH_SIZE)
        server.control.rename(tmp_path / "fslab-disk.control")  # the path that it has for a medium
        server.control = tmp_path / "fslab-disk.control"
        device = str(server.attach())
        done = run_mkfs([f"mkfs.{filesystem}", "-q", *MKFS[filesystem], *mkfs.split(), device])
        assert done.returncode == 0, done.stderr
        proc.run(["mount", "-t", filesystem, "-o", options, device, str(target)])
        (target / "w").mkdir()
        if fault is not None:
            assert server.ask("arm", effect=fault, op="flush")["ok"]
        return target / "w"

    yield make
    proc.run(["umount", str(target)], check=False)


@pytest.fixture
def crash(
    virtual: Callable[..., Path], document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Return a function that runs ``fslab crash test`` on a new file system and returns its JSON document."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "recordings"))

    def run(
        filesystem: str,
        *arguments: str,
        options: str = "rw",
        fault: str | None = None,
        cache: str = "volatile",
        mkfs: str = "",
    ) -> dict[str, Any]:
        log = ("--log", str(tmp_path / "fslab-disk.log"), "--log-data", "--cache", cache)
        directory = virtual(filesystem, *log, options=options, fault=fault, mkfs=mkfs)
        return document("test", directory, "--scratch", tmp_path, *arguments)

    return run


@pytest.fixture
def run_crash(starter: Starter, tmp_path: Path) -> RunCrash:
    """Return a function that runs ``fslab crash`` to its end, in the directory of the test."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        argv = [FSLAB, "crash", *map(str, words)]
        return starter.run(argv, cwd=tmp_path, timeout_s=RUN_LIMIT_S)

    return run


@pytest.fixture
def document(run_crash: RunCrash) -> Document:
    """Return a function that runs ``fslab crash`` and returns its JSON document."""

    def run(*words: object) -> dict[str, Any]:
        done = run_crash(*words)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run
