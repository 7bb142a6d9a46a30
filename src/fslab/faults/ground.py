"""The files that faults strike, on the file system under a directory, and the virtual disk under that.

Says where on the disk something lies by what the disk's log has of reading or writing it, so that no file system has to
be asked. Judges nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES
from fslab.crash.examine import Subject
from fslab.errors import FslabError, MountError, UnsupportedError
from fslab.faults import FILES
from fslab.system import block_log, disk, mounts, proc

BLOCKS = 8  # of each file: more than what any file system keeps in an inode
NAMES, NAME_BYTES = 64, 100
FILE_BYTES = BLOCKS * BLOCK_BYTES
LIMIT_S = 120.0
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Bytes of the disk. ``data``: of a file of ours; else metadata."""

    start: int
    end: int
    data: bool


@dataclass(kw_only=True, slots=True)
class Ground:
    """``directory`` is on the file system ``tested``, mounted from ``device``, whose disk is served at ``server``."""

    directory: Path
    device: str
    server: Path
    tested: Subject
    seed: int = 0
    _target: Path = field(init=False)

    def __post_init__(self) -> None:
        self._target = mounts.containing(self.directory).target

    def path(self, number: int) -> Path:
        """One of the files; each has a directory of its own."""
        return self.directory / f"d{number:02d}" / "file"

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.directory))

    def lay_out(self) -> None:
        """All files with generation 1, durable; beside each so many names that metadata does not fit in one block."""
        for number in range(FILES):
            directory = self.path(number).parent
            directory.mkdir()
            for name in range(NAMES):
                (directory / f"{name:0{NAME_BYTES}d}").touch()
            self.write(self.path(number), 1)
        mounts.flush(self.directory)

    def bytes_of(self, path: Path, generation: int) -> bytes:
        """Contents that tell directory and generation in each sector: what is renamed within it stays what it is."""
        name = zlib.crc32(self.relative(path.parent).encode())
        places = (contents.Place(sequence=0, inode=name, block=block) for block in range(BLOCKS))
        return b"".join(contents.block(place, generation) for place in places)

    def write(self, path: Path, generation: int) -> None:
        """Write a file, or over it, without a sync."""
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            file.write(self.bytes_of(path, generation))

    def has(self, path: Path, generation: int) -> bool:
        """Whether a file has these contents; OSError where it cannot be read."""
        return path.read_bytes() == self.bytes_of(path, generation)

    # --- the disk ---

    def remount(self) -> None:
        """Nothing is cached afterwards. MountError where it cannot be mounted again."""
        self.unmount()
        self.mount()

    def unmount(self, *, deadline_s: float = mounts.UNMOUNT_DEADLINE_S) -> None:
        mounts.unmount(self._target, deadline_s=deadline_s)
        mounts.wait_released(Path(self.device))

    def mount(self) -> None:
        argv = self.tested.driver.mount_argv(self.tested.options, self.device, str(self._target))
        proc.run(argv, failure=MountError, timeout_s=LIMIT_S)

    def requests(self, operation: str, work: Callable[[], object]) -> list[Range]:
        """Where the disk was read (or written) by this work, and what lies there."""
        disk.ask(self.server, "clear")
        work()
        disk.ask(self.server, "sync")
        rows = block_log.read(disk.log_of(self.server))
        rows = rows.filter(rows["op"] == operation)
        found = dict.fromkeys(zip(rows["offset"], rows["length"], strict=True))
        return [Range(start=at, end=at + length, data=self._is_data(at)) for at, length in found]

    def _is_data(self, at: int) -> bool:
        with (self.server / disk.FILE).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), len(contents.MAGIC), at) == contents.MAGIC

    def arm(self, effect: str, *, where: Range | None = None, **more: Any) -> int:
        """The fault's id."""
        bounds = {} if where is None else {"start": where.start, "end": where.end}
        return int(disk.ask(self.server, "arm", effect=effect, **bounds, **more)["id"])

    def struck(self, *faults: int) -> bool:
        """Whether a request met any of these."""
        known = disk.ask(self.server, "statistics")["faults"]
        return any(each["struck"] for each in known if each["id"] in faults)

    def disarm(self) -> None:
        disk.ask(self.server, "disarm")

    @contextmanager
    def undone(self) -> Iterator[None]:
        """The disk's contents afterwards are those from before: the file system is unmounted meanwhile, and mounted
        as it was then."""
        self.unmount()
        with TemporaryDirectory(prefix="fslab-faults-") as place:
            image = Path(place) / "image"
            disk.ask(self.server, "snapshot", path=str(image))
            self.mount()
            try:
                yield
            finally:
                self.unmount()
                now = Path(place) / "now"
                disk.ask(self.server, "snapshot", path=str(now))
                _restore(image, (image, now), Path(self.device))
                self.mount()


def check_log(server: Path, directory: Path) -> None:
    """UnsupportedError where the disk keeps no log."""
    if not disk.log_of(server).exists():
        raise UnsupportedError(
            "the virtual disk keeps no log", where=str(directory),
            hint="medium: {type: virtual, profile: none, size: 320m, log: requests}",
        )  # fmt: skip


def error_of(work: Callable[[], object]) -> str | None:
    """What the kernel refused it with, such as EIO; None: it did not."""
    try:
        work()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return None


def sync(path: Path) -> None:
    """Fsync of a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _restore(image: Path, stored: Iterable[Path], device: Path) -> None:
    """Write the image wherever it, or what is there now, stores anything: nothing newer may be left behind a log."""
    with image.open("rb", buffering=0) as source, device.open("r+b", buffering=0) as target:
        for at, size in (piece for each in stored for piece in _pieces(each)):
            if os.pwrite(target.fileno(), os.pread(source.fileno(), size, at), at) != size:
                raise FslabError("the disk could not be restored", where=str(device))
        os.fsync(target.fileno())


def _pieces(image: Path) -> Iterator[tuple[int, int]]:
    """Offsets and sizes of what a sparse file stores."""
    with image.open("rb", buffering=0) as file:
        at, size = 0, os.fstat(file.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return  # no more data
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            while at < end:
                piece = min(_COPY_BYTES, end - at)
                yield at, piece
                at += piece
