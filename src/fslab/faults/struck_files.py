"""The files that faults strike, the file system under their directory, and the virtual disk under the file system.

The disk's log of reads and writes shows where on the disk something lies, so no code depends on the file system.
Judges nothing.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fslab.crash import contents
from fslab.crash.contents import BLOCK_BYTES
from fslab.crash.examine import Subject
from fslab.errors import UnsupportedError
from fslab.faults import FILES
from fslab.system import disk_server, files, mountinfo, mounts
from fslab.system.signals import Teardown
from fslab.system.temporary import TemporaryDirectory

BLOCKS = 8  # of each file: more than any file system stores in an inode
NAMES, NAME_BYTES = 64, 100
FILE_BYTES = BLOCKS * BLOCK_BYTES
LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A range of bytes on the disk. ``data``: it holds data of one of the files; else metadata."""

    start: int
    end: int
    data: bool


@dataclass(kw_only=True, slots=True)
class Ground:
    """``directory`` is on the file system ``tested``, which is mounted from ``device``. ``server`` is the directory of
    the virtual disk, ``scratch`` that for copies of it (None: the system's)."""

    directory: Path
    device: str
    server: Path
    tested: Subject
    seed: int = 0
    scratch: Path | None = None
    target: Path = field(init=False)

    def __post_init__(self) -> None:
        self.target = mountinfo.containing(self.directory).target

    def path(self, number: int) -> Path:
        """Return the path of one of the files; each has its own directory."""
        return self.directory / f"d{number:02d}" / "file"

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.directory))

    def lay_out(self) -> None:
        """Create all files with generation 1 and make them durable. Beside each, create so many names that the metadata
        does not fit in one block."""
        for number in range(FILES):
            directory = self.path(number).parent
            directory.mkdir()
            for name in range(NAMES):
                (directory / f"{name:0{NAME_BYTES}d}").touch()
            self.write(self.path(number), 1)
        mounts.flush(self.directory)

    def bytes_of(self, path: Path, generation: int) -> bytes:
        """Return contents with directory and generation in each sector. They stay valid if a file is renamed in its
        directory."""
        name = zlib.crc32(self.relative(path.parent).encode())
        parts = range(BLOCKS * contents.PARTS)
        places = (contents.Place(sequence=0, inode=name, part=part) for part in parts)
        return b"".join(contents.part(place, generation) for place in places)

    def write(self, path: Path, generation: int) -> None:
        """Write or overwrite a file, without a sync."""
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            files.write_all(file.fileno(), self.bytes_of(path, generation))

    def has(self, path: Path, generation: int) -> bool:
        """Return whether a file has these contents. OSError if it cannot be read."""
        return path.read_bytes() == self.bytes_of(path, generation)

    # --- the disk ---

    def remount(self) -> None:
        """Unmount and mount, so that nothing is cached. MountError if it cannot be mounted again."""
        self.unmount()
        self.mount()

    def unmount(self, *, deadline_s: float = mounts.UNMOUNT_DEADLINE_S) -> None:
        mounts.unmount(self.target, [Path(self.device).resolve().name], deadline_s=deadline_s)
        mounts.wait_released(Path(self.device))

    def mount(self) -> None:
        self.tested.mount(self.device, self.target)

    def requests(self, operation: str, work: Callable[[], object]) -> list[Range]:
        """Return the ranges of the disk that ``work`` reads or writes (``operation``), and what they hold."""
        disk_server.ask(self.server, "clear")
        work()
        disk_server.ask(self.server, "sync")
        rows = disk_server.read_log(disk_server.log_of(self.server))
        rows = rows.filter(rows["op"] == operation)
        found = dict.fromkeys(zip(rows["offset"], rows["length"], strict=True))
        return [Range(start=at, end=at + length, data=self._is_data(at)) for at, length in found]

    def _is_data(self, at: int) -> bool:
        with (self.server / disk_server.FILE).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), len(contents.MAGIC), at) == contents.MAGIC

    def arm(self, effect: str, *, where: Range | None = None, **more: Any) -> int:
        """Arm a fault and return its id."""
        bounds = {} if where is None else {"start": where.start, "end": where.end}
        return int(disk_server.ask(self.server, "arm", effect=effect, **bounds, **more)["id"])

    def struck(self, *faults: int) -> bool:
        """Return whether a request met any of these faults."""
        known = disk_server.ask(self.server, "statistics")["faults"]
        return any(each["struck"] for each in known if each["id"] in faults)

    def disarm(self) -> None:
        disk_server.ask(self.server, "disarm")

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Restore the disk's contents at the end of the block. The file system is unmounted before the block and after
        it, and mounted again each time."""
        self.unmount()
        with TemporaryDirectory("faults", self.scratch) as made, Teardown() as undo:
            image = made.path / "image"
            disk_server.ask(self.server, "snapshot", path=str(image))
            undo.callback(self._undo, image)
            self.mount()
            yield

    def _undo(self, image: Path) -> None:
        self.unmount()
        now = image.with_name("now")
        disk_server.ask(self.server, "snapshot", path=str(now))
        _restore(image, (image, now), Path(self.device))
        self.mount()


def check_log(server: Path, directory: Path) -> None:
    """Raise UnsupportedError if the disk keeps no log."""
    if not disk_server.log_of(server).exists():
        raise UnsupportedError(
            "the virtual disk keeps no log",
            where=str(directory),
            hint="medium: {type: virtual, profile: none, size: 320m, log: requests}",
        )


def error_of(work: Callable[[], object]) -> str | None:
    """Return the text of the kernel's error, such as that of EIO; None after success."""
    try:
        work()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return None


def _restore(image: Path, stored: Iterable[Path], device: Path) -> None:
    """Write the image to each range that the image or the current disk (``stored``) has data in.

    Ranges that are empty in the image are written too: no newer record may remain after the end of a journal.
    """
    with image.open("rb", buffering=0) as source, device.open("r+b", buffering=0) as target:
        for each in stored:
            with each.open("rb", buffering=0) as known:
                for at, size in files.data_pieces(known.fileno()):
                    files.write_all(target.fileno(), os.pread(source.fileno(), size, at), at)
        os.fsync(target.fileno())
