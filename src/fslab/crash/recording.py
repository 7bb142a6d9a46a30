"""Record runs of a source on the disk under a directory: the disk's image before the runs, and its log of them.

And what the mount or the repair of a crash state writes, on a separate virtual disk with a copy of it: crash states of
that are those of a power cut while a file system recovers from an earlier one. Only records; ``judge`` decides what the
contents must be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from fslab.crash import used_disk
from fslab.crash.examine import Subject
from fslab.crash.sources import Source
from fslab.errors import FslabError, UnsupportedError
from fslab.system import disk_server, files, mountinfo, mounts, proc, process_marks, sysfs
from fslab.system.signals import Teardown, shielded

if TYPE_CHECKING:
    import polars as pl

    from fslab.system.mountinfo import Mount

START = "start"
FLUSHED = "flushed"  # after each group of runs that are performed at the same time
TRIES = 10
IN_USE_S = 2.0
_DIRECTORY = "recovering"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """``base``: the disk's image when ``log`` began. The data and the names of ``log`` are in files beside it."""

    base: Path
    log: Path

    def table(self) -> pl.DataFrame:
        return disk_server.read_log(self.log)

    def files(self) -> tuple[Path, ...]:
        return (self.base, self.log, Path(f"{self.log}.data"), Path(f"{self.log}.json"))

    def kept_in(self, directory: Path) -> Recording:
        """Copy the files into ``directory`` and return the copy."""
        for file in self.files():
            proc.run(["cp", "--sparse=always", "--", str(file), str(directory / file.name)])
        return Recording(base=directory / self.base.name, log=directory / self.log.name)


def disk_of(directory: Path) -> Path:
    """Return the directory of the virtual disk under a mounted directory; UnsupportedError if it is not on one."""
    source = Path(mountinfo.containing(directory).source)
    backing = sysfs.text(sysfs.block_directory(source) / "loop/backing_file") if source.exists() else None
    server = Path(backing).parent if backing else None
    if server is None or not disk_server.control_of(server).exists():
        raise UnsupportedError(
            "this is not on one virtual disk",
            where=str(directory),
            hint="medium: {type: virtual, profile: hdd-7200}, layout: single",
        )
    return server


def server_of(directory: Path) -> Path:
    """Do the same as :func:`disk_of`; UnsupportedError also if the disk keeps no log of its data."""
    server = disk_of(directory)
    if not Path(f"{disk_server.log_of(server)}.data").exists():
        raise UnsupportedError(
            "this is not on one virtual disk with a log of its data",
            where=str(directory),
            hint="medium: {type: virtual, profile: none, size: 320m, log: data}, layout: single",
        )
    return server


def record(directory: Path, source: Source[Any], scratch: Path, threads: int = 1) -> Recording:
    """Create the directories of the runs, perform ``threads`` runs at a time, and return what the disk recorded."""
    server = server_of(directory)
    try:
        source.lay_out(directory)
        recording = _begin(directory, server, scratch)
        _perform_all(directory, server, source, threads)
    except OSError as error:
        at = f" '{error.filename}'" if error.filename else ""
        raise FslabError(
            f"the file system refuses a step{at}: {error.strerror}",
            where=str(directory),
            hint="see its mount options; with 'No space left', use fewer sequences or a larger disk",
        ) from error
    disk_server.ask(server, "sync")
    used_disk.fill(recording.base, recording.log)
    return recording


def _perform_all(directory: Path, server: Path, source: Source[Any], threads: int) -> None:
    runs = range(len(source.steps))
    with ThreadPoolExecutor(threads) as pool:
        for first in runs[::threads]:
            _together(pool, directory, server, source, runs[first : first + threads])
            mounts.flush(directory)  # data that no sync covers also reaches the disk, so cuts hit it
            disk_server.ask(server, "mark", name=FLUSHED)


def put_away(mount: Mount, tested: Subject, undo: ExitStack) -> None:
    """Unmount the recorded file system; ``undo`` mounts it again.

    Before Linux 6.7, btrfs does not mount a state while another device with the same UUID is mounted.
    """
    os.chdir("/")  # a campaign starts its tools in the directory under test
    undo.callback(tested.mount_again, mount.source, mount.target)
    mounts.unmount(mount.target, [Path(mount.source).resolve().name], deadline_s=IN_USE_S)


class _EndedError(FslabError):
    """A run ends because another one failed, or because the test was interrupted."""


def _together(
    pool: ThreadPoolExecutor, directory: Path, server: Path, source: Source[Any], numbers: range
) -> None:
    """Perform these runs at the same time. If one fails, the others end at their next step, and its error is raised."""
    ended = Event()

    def mark(name: str) -> None:
        if ended.is_set():
            raise _EndedError("another run failed", where=name)
        disk_server.ask(server, "mark", name=name)

    def perform(number: int) -> None:
        try:
            source.perform(directory, number, mark)
        except BaseException:
            ended.set()
            raise

    try:
        running = [pool.submit(perform, number) for number in numbers]
        wait(running)
    except BaseException:
        ended.set()  # the pool waits for its threads
        raise
    errors = [error for each in running if (error := each.exception()) is not None]
    for error in sorted(errors, key=lambda each: isinstance(each, _EndedError)):
        raise error


def _begin(directory: Path, server: Path, scratch: Path) -> Recording:
    """Take a snapshot of the disk, and start the log with nothing written between the two. Otherwise the log would
    write old data over newer contents, and make states that no disk can have."""
    base, log = scratch / "crash-base", disk_server.log_of(server)
    for _ in range(TRIES):
        mounts.flush(directory)
        disk_server.ask(server, "clear")
        base.unlink(missing_ok=True)
        disk_server.ask(server, "snapshot", path=str(base))
        disk_server.ask(server, "mark", name=START)
        disk_server.ask(server, "sync")
        rows = disk_server.read_log(log)
        if rows.filter(rows["op"].is_in(["write", "discard"])).is_empty():
            return Recording(base=base, log=log)
    raise FslabError(
        "the file system did not become idle", where=str(directory), hint="stop other programs that use it"
    )


@contextmanager
def recovery_of(
    image: Path, tested: Subject, target: Path, *, volatile: bool, repair: bool = False
) -> Iterator[Recording | None]:
    """Record the requests from mount to unmount of ``image`` on ``target``; None if it cannot be mounted.

    ``volatile``: whether the disk has a volatile cache. ``repair``: record a full repair instead; None if it fails, or
    if the file system has none. ``image`` is the base of the recording. It is not changed, except before a repair that
    needs its log replayed. The recording is removed when the context ends.
    """
    tested.check_mountable(image)
    if repair and tested.driver.repair_needs_replay and not _mounted(tested, image, target):
        yield None
        return
    directory = image.with_name(_DIRECTORY)
    mark = os.environ.get(process_marks.MARK, "crash")
    with Teardown() as undo:
        undo.callback(_remove_directory, directory)
        with shielded():  # a disk without a model is ready at once
            server = disk_server.start(
                directory, _options_of_copy(image, directory, volatile=volatile), mark=mark
            )
            undo.callback(server.end)
        _copy_image(image, server.file)
        server.ask("clear")
        done = (
            tested.repaired_by(tested.driver.full_repair_argv(str(server.file)))
            if repair
            else _mounted(tested, server.file, target)
        )
        server.ask("sync")
        yield Recording(base=image, log=disk_server.log_of(directory)) if done else None


def _remove_directory(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _options_of_copy(image: Path, directory: Path, *, volatile: bool) -> Sequence[str]:
    size, cache = str(image.stat().st_size), "volatile" if volatile else "none"
    log = ("--log", disk_server.log_of(directory).name, "--log-data", "--log-limit", size)
    return ("--size", size, "--cache", cache, *log)


def _mounted(tested: Subject, file: Path, target: Path) -> bool:
    """Mount and unmount the file. Return whether it could be mounted."""
    with Teardown() as undo:
        undo.callback(mounts.unmount, target, devices=None)
        return tested.mount_copy(file, target).returncode == 0


def _copy_image(image: Path, file: Path) -> None:
    """Copy the parts of the image that are neither holes nor zeros to an empty disk."""
    with image.open("rb", buffering=0) as source, file.open("r+b", buffering=0) as target:
        for at, size in files.data_pieces(source.fileno()):
            piece = os.pread(source.fileno(), size, at)
            if piece.strip(b"\0"):
                files.write_all(target.fileno(), piece, at)
        os.fsync(target.fileno())
