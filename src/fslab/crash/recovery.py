"""Measure recovery time: write new files, cut power on the live disk, then mount, read, write and check.

A crash state is an image; this module uses the disk under test itself, with its model, its cache and its mount.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fslab.crash import contents, recording
from fslab.crash.examine import Complaints, Subject
from fslab.crash.sources import check_no_shortage
from fslab.crash.trial_request import RecoveryRequest
from fslab.errors import FslabError, MountError
from fslab.system import disk_server, mountinfo, mounts
from fslab.system.signals import Teardown
from fslab.units import parse_size

PER_DIRECTORY = 1000
LIMIT_S = 6 * 3600.0  # for the repair of a large hard disk; the trial has its own limit
FORMAT = 1
_NEW = "new"
_LAST = "last"


@dataclass(kw_only=True, slots=True)
class Recovery:
    """Times in ns; None: not measured. ``recovery_ns``: mount, and before it check and repair if the file system needs
    them. ``first_read_ns``: read the synced file. ``first_write_ns``: write a new file with fsync. ``check_ns``: a full
    check afterwards. ``read_bytes`` and ``written_bytes``: what the disk transferred during repair and mount.
    ``kept_files``: how many files exist of those that nothing synced. ``lost``: what is wrong with the synced file.
    ``not_mounted``: why the file system cannot be mounted any more."""

    recovery_ns: int | None = None
    first_read_ns: int | None = None
    first_write_ns: int | None = None
    check_ns: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    kept_files: int | None = None
    lost: str | None = None
    damaged: str | None = None
    not_mounted: str | None = None


def measure(directory: Path, device: str, tested: Subject, request: RecoveryRequest) -> dict[str, Any]:
    """Cut power of the virtual disk under ``directory`` once, and return the document. It is mounted again afterwards.

    MountError if other processes use the file system, or if the machine is to blame that it cannot be mounted again.
    """
    target, found = mountinfo.containing(directory).target, Recovery()
    try:
        _measure(directory, target, device, tested, request, found)
    except MountError as error:
        if not tested.refuses(error, device, target):
            raise
        found.not_mounted = str(error)
        found.damaged = f"it cannot be mounted after the power cut: {error}"
    return {"version": FORMAT, "filesystem": tested.driver.name, "files": request.files, **asdict(found)}


def _measure(
    directory: Path, target: Path, device: str, tested: Subject, request: RecoveryRequest, found: Recovery
) -> None:
    server = recording.disk_of(directory)
    os.chdir("/")  # a campaign starts its tools in the directory under test
    names = [Path(device).resolve().name]
    with Teardown() as undo:
        undo.callback(tested.mount_again, device, target)
        # This fails if another process uses the file system, and it makes earlier writes durable before the cut.
        mounts.unmount(target, names, deadline_s=recording.IN_USE_S)
        tested.mount(device, target)
        _cut(server, directory, request)
        before, kernel = _transferred(server), Complaints(tested.driver.mount_type)
        kernel.reasons()
        repaired_ns = _repair(device, tested, found)
        found.recovery_ns = repaired_ns + int(tested.mount(device, target, limit_s=LIMIT_S) * 1e9)
        found.read_bytes, found.written_bytes = (
            after - was for after, was in zip(_transferred(server), before, strict=True)
        )
        _look(directory, request, found)
        if request.check:
            mounts.unmount(target, names)
            mounts.wait_released(Path(device))
            found.check_ns = _check(device, tested, found)
    if found.damaged is None and (said := kernel.serious([Path(device).name])):
        found.damaged = f"the kernel logged: {said[0]}"


def _cut(server: Path, directory: Path, request: RecoveryRequest) -> None:
    """Write the files, cut power and unmount. Power is switched on again afterwards, even after an error."""
    mount = mountinfo.containing(directory)
    with Teardown() as undo:
        undo.callback(disk_server.ask, server, "pace", real=True)
        undo.callback(disk_server.ask, server, "power_on")
        disk_server.ask(server, "pace", real=False)  # the time to write the files is not measured
        try:
            _write(directory, request)
            disk_server.ask(server, "cut", unflushed=request.unflushed, seed=request.seed)
            mounts.unmount(mount.target, [Path(mount.source).resolve().name])
            mounts.wait_released(Path(mount.source))
        except OSError as error:
            raise FslabError(
                f"cannot write the files: {error.strerror}",
                where=str(directory),
                hint="use fewer files, or a medium with more memory",
            ) from error


def _write(directory: Path, request: RecoveryRequest) -> None:
    """Write all files and sync only the last one. The journal is then committed, but not yet written to its place."""
    for path in _paths(directory, request):
        if path.name.endswith("000"):
            path.parent.mkdir(parents=True)
        path.write_bytes(_bytes(parse_size(request.size)))
    _write_synced(directory / _LAST)
    mounts.sync(directory)


def _write_synced(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(_bytes(contents.BLOCK_BYTES))
        os.fsync(file.fileno())


def _paths(directory: Path, request: RecoveryRequest) -> Iterator[Path]:
    for number in range(request.files):
        yield directory / _NEW / f"{number // PER_DIRECTORY:04d}" / f"{number % PER_DIRECTORY:03d}"


def _bytes(size: int) -> bytes:
    pattern = contents.part(contents.Place(sequence=0, inode=1, part=0), 1)
    return (pattern * (size // len(pattern) + 1))[:size]


def _look(directory: Path, request: RecoveryRequest, found: Recovery) -> None:
    """Time the first read and the first write, and count the files. The page cache is as the mount left it."""
    wanted, started = _bytes(contents.BLOCK_BYTES), time.monotonic_ns()
    try:
        there = (directory / _LAST).read_bytes()
        found.lost = None if there == wanted else "the synced file has wrong contents"
    except OSError as error:
        check_no_shortage(error)
        found.lost = f"the synced file: {error.strerror}"
    found.first_read_ns = time.monotonic_ns() - started
    try:
        directory.mkdir(parents=True, exist_ok=True)  # the cut may have lost the directory too
        started = time.monotonic_ns()
        _write_synced(directory / "afterwards")
    except OSError as error:
        raise FslabError(f"cannot write after recovery: {error.strerror}", where=str(directory)) from error
    found.first_write_ns = time.monotonic_ns() - started
    found.kept_files = sum(path.exists() for path in _paths(directory, request))


def _repair(device: str, tested: Subject, found: Recovery) -> int:
    """Check and repair a file system that does not promise to be consistent. Return the time in ns."""
    if tested.promises.consistent.given:
        return 0
    spent = _check(device, tested, found)
    if found.damaged is None:
        return spent
    found.damaged = None
    return spent + int(tested.repair(device, limit_s=LIMIT_S) * 1e9)


def _check(device: str, tested: Subject, found: Recovery) -> int:
    done = tested.check(device, limit_s=LIMIT_S)
    if done.returncode != 0:
        found.damaged = f"{done.argv[0]} exits {done.returncode}"
    return int(done.duration_s * 1e9)


def _transferred(server: Path) -> tuple[int, int]:
    operations = disk_server.ask(server, "statistics")["operations"]
    return operations["read"]["bytes"], operations["write"]["bytes"]
