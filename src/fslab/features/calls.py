"""Features of system calls."""

import errno
import os
from pathlib import Path

from fslab import features
from fslab.features import NOT_SUPPORTED, FeatureFinding, FeatureGroup, TestPlace, _direct, feature, worked
from fslab.system import mounts, syscalls, sysfs
from fslab.system.files import closed_after, opened
from fslab.system.syscalls import Fallocate, Rename


@feature("DAX", "files in persistent memory, mapped without the page cache", FeatureGroup.CALLS)
def dax(place: TestPlace) -> FeatureFinding:
    """Maps a file with MAP_SYNC, which works only with DAX. Unknown on a device that is not persistent memory. See
    Documentation/filesystems/dax.rst.
    """
    queue = sysfs.queue_directory(sysfs.block_directory(place.device))
    if sysfs.number(queue / "dax") != 1:
        return features.unknown("the device is not persistent memory")
    file = place.directory / "file"
    file.write_bytes(b"x" * syscalls.PAGE_BYTES)
    with features.refusable():
        syscalls.map_synchronously(file)
    return features.yes()


STEPS = (512, 1024, 2048, 4096, 8192, 16384, 65536)


@feature(
    "direct I/O, step",
    "O_DIRECT: smallest request, and whether it bypasses the page cache",
    FeatureGroup.CALLS,
)
def direct_io(place: TestPlace) -> FeatureFinding:
    """Reads and writes with each request size of ``STEPS``, and tests whether pages become dirty or cached. Return the
    smallest request size that worked; the detail contains the values from statx(2).
    """
    file = place.directory / "file"
    file.write_bytes(os.urandom(_direct.BYTES))
    place.remount()
    with features.refusable():
        descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
    with closed_after(descriptor):
        cached = _direct.reads_are_cached(
            descriptor, file
        )  # before any write: a read of pages that a write left dirty comes from the cache
        taken = [size for size in STEPS if _direct.works(descriptor, size)]
        step = _direct.first_clean(descriptor, taken, os.fstatvfs(descriptor).f_bsize)
    if not taken:
        return features.no(f"open(2) succeeds, but requests of up to {STEPS[-1]} bytes fail")
    if step is None and cached:
        return features.no("open(2) succeeds, but reads and writes go through the page cache")
    if step is None:
        return features.value("reads only", detail="writes go through the page cache")
    if cached:
        return features.value("writes only", detail="reads go through the page cache")
    return features.value(step, "B", detail=_said(file))


def _said(file: Path) -> str | None:
    said = syscalls.direct_alignment(file)
    if said is None:
        return None
    return f"statx: memory {said.memory_bytes}, offset {said.offset_bytes}"


STEP = 64 << 10
FALLOCATE_BYTES = 16 * STEP
MODES = {
    "allocate": Fallocate.ALLOCATE,
    "keep-size": Fallocate.KEEP_SIZE,
    "punch-hole": Fallocate.PUNCH_HOLE | Fallocate.KEEP_SIZE,
    "zero": Fallocate.ZERO_RANGE,
    "collapse": Fallocate.COLLAPSE_RANGE,
    "insert": Fallocate.INSERT_RANGE,
    "unshare": Fallocate.UNSHARE_RANGE,
    "write-zeroes": Fallocate.WRITE_ZEROES,
}
FALLOCATE_NOT = NOT_SUPPORTED | {errno.ENODEV}


@feature("fallocate modes", f"modes of fallocate(2) that work: {', '.join(MODES)}", FeatureGroup.CALLS)
def fallocate(place: TestPlace) -> FeatureFinding:
    """Calls fallocate with each mode, each on a new file. Return how many modes work; the detail lists them."""
    able = [name for name, mode in MODES.items() if _works(place, name, mode)]
    if not able:
        return features.no()
    return features.value(f"{len(able)} of {len(MODES)}", detail=", ".join(able))


def _works(place: TestPlace, name: str, mode: Fallocate) -> bool:
    file = place.directory / name
    file.write_bytes(b"x" * FALLOCATE_BYTES)
    beyond = FALLOCATE_BYTES if mode in {Fallocate.ALLOCATE, Fallocate.KEEP_SIZE} else STEP
    with opened(file, os.O_RDWR) as descriptor:
        return worked(FALLOCATE_NOT, syscalls.fallocate, descriptor, mode, beyond, STEP)


HOLES_BYTES = 16 << 20
DATA = 64 << 10
NOT_SPARSE = "unwritten parts take space"


@feature("holes, SEEK_HOLE", "sparse files, and SEEK_HOLE finds their holes", FeatureGroup.CALLS)
def holes(place: TestPlace) -> FeatureFinding:
    """Writes both ends of a file, and looks for a hole between them. Yes: the unwritten range takes no space, and
    SEEK_HOLE finds it. See lseek(2).
    """
    with opened(place.directory / "file", os.O_RDWR | os.O_CREAT) as descriptor:
        os.pwrite(descriptor, b"x" * DATA, 0)
        os.pwrite(descriptor, b"x" * DATA, HOLES_BYTES - DATA)
        mounts.flush(place.directory)
        sparse = os.fstat(descriptor).st_blocks * 512 < HOLES_BYTES // 2
        try:
            hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP, errno.ENXIO}:
                raise
            hole = HOLES_BYTES
    if not sparse:
        return features.no(NOT_SPARSE)
    return features.yes() if hole < HOLES_BYTES - DATA else features.no("sparse, but SEEK_HOLE finds no hole")


@feature(
    "atomic rename", "flags of renameat2(2) that work: exchange, noreplace, whiteout", FeatureGroup.CALLS
)
def rename(place: TestPlace) -> FeatureFinding:
    """Renames files with each flag, and checks the contents of the files afterwards. See renameat2(2)."""
    able = [name for name, works in TRIES.items() if works(place)]
    if len(able) == len(TRIES):
        return features.yes(", ".join(able))
    if not able:
        return features.no()
    return features.value(f"{len(able)} of {len(TRIES)}", detail=", ".join(able))


def _pair(place: TestPlace, name: str, flag: Rename) -> tuple[bool, bytes, bytes]:
    old, new = place.directory / f"{name}-old", place.directory / f"{name}-new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    try:
        syscalls.rename(old, new, flag)
    except OSError as error:
        if error.errno in NOT_SUPPORTED:
            return False, b"", b""
        if error.errno != errno.EEXIST:
            raise
    return True, old.read_bytes() if old.is_file() else b"", new.read_bytes()


def _whiteout(place: TestPlace) -> bool:
    done, _, new = _pair(place, "whiteout", Rename.WHITEOUT)
    return done and new == b"old" and (place.directory / "whiteout-old").is_char_device()


TRIES = {
    "exchange": lambda place: _pair(place, "exchange", Rename.EXCHANGE) == (True, b"new", b"old"),
    "noreplace": lambda place: _pair(place, "noreplace", Rename.NOREPLACE) == (True, b"old", b"new"),
    "whiteout": _whiteout,
}
