"""Features of the data of files."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from fslab import features
from fslab.features import NOT_SUPPORTED, FeatureFinding, FeatureGroup, TestPlace, Volume, feature
from fslab.system import mountinfo, mounts, syscalls
from fslab.system.files import opened

CHECKSUM_BYTES = 256 << 10
LATER_BYTES = 24 << 20
MARK = 128 << 10
NEEDLE_BYTES = 64
WINDOW = 8 << 20


@feature(
    "flipped data detected",
    "whether reading data that was changed on the device returns an error",
    FeatureGroup.DATA,
    Volume.OWN,
)
def checksums(place: TestPlace) -> FeatureFinding:
    """Writes random bytes, unmounts, finds them on the device, flips one in every copy, mounts and reads. Yes: the read
    fails with an I/O error. No: it returns other bytes than those written.
    """
    file, content = place.directory / "file", os.urandom(CHECKSUM_BYTES)
    file.write_bytes(content)
    mounts.flush(place.directory)
    # The last segment of a log is checked when it is replayed. The test is about older data.
    (place.directory / "later").write_bytes(os.urandom(LATER_BYTES))
    mounts.flush(place.directory)
    place.unmount()
    copies = flip(place.device, content[MARK : MARK + NEEDLE_BYTES])
    place.mount()
    if not copies:
        return features.unknown("the written data was not found on the device")
    try:
        found = file.read_bytes()
    except OSError as error:
        if error.errno in {errno.EIO, errno.EUCLEAN, errno.EILSEQ}:
            return features.yes(f"read returns '{error.strerror}'")
        raise
    if found == content:
        return features.unknown("the changed block was not read")
    return features.no("read returns the wrong data without an error")


def flip(device: Path, needle: bytes) -> int:
    """Flip the bits of the first byte of every occurrence of ``needle`` on a device. Returns their number."""
    with opened(device, os.O_RDWR) as descriptor:
        found = list(places(descriptor, needle))
        for place in found:
            os.pwrite(descriptor, bytes([needle[0] ^ 0xFF]), place)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # the next read comes from the device
    return len(found)


def places(descriptor: int, needle: bytes) -> Iterator[int]:
    """Yield the offset of every occurrence, also of those that overlap."""
    overlap = len(needle) - 1
    offset, tail = 0, b""
    while block := os.pread(descriptor, WINDOW, offset):
        window, start = tail + block, offset - len(tail)
        at = window.find(needle)
        while at >= 0:
            yield start + at
            at = window.find(needle, at + 1)
        tail, offset = window[-overlap:], offset + len(block)


COMPRESSION_BYTES = 8 << 20
BLOCK = b"the same line again and again, which any compressor can shorten\n" * 1024


@feature("compression", "transparent compression of files", FeatureGroup.DATA, Volume.OWN)
def compression(place: TestPlace) -> FeatureFinding:
    """Writes repetitive text to a file with the compression flag, and measures the space that it takes. Yes: the file
    has compressed extents, or takes less than half of the space. See chattr(1), +c.
    """
    errors = NOT_SUPPORTED | {errno.EPERM}
    with features.refusable("chattr +c", errors=errors), opened(place.directory, os.O_DIRECTORY) as directory:
        syscalls.add_flag(directory, syscalls.COMPRESS_FLAG)
    mounts.flush(place.directory)
    before = place.free_bytes
    file = place.directory / "file"
    with file.open("wb") as out:
        for _ in range(COMPRESSION_BYTES // len(BLOCK)):
            out.write(BLOCK)
        out.flush()
        os.fsync(out.fileno())
    mounts.flush(place.directory)
    taken = before - place.free_bytes
    with file.open("rb") as found:
        encoded = _encoded(found.fileno())
    if encoded and taken >= COMPRESSION_BYTES // 2:
        return features.yes("chattr +c: compressed, but the saved space is not freed")
    if taken < COMPRESSION_BYTES // 2:
        return features.yes(f"chattr +c: {COMPRESSION_BYTES} bytes of text take {max(taken, 0)}")
    return features.no(f"chattr +c has no effect: {COMPRESSION_BYTES} bytes of text take {taken}")


def _encoded(descriptor: int) -> bool:
    try:
        return any(flag & syscalls.FIEMAP_EXTENT_ENCODED for flag in syscalls.extent_flags(descriptor))
    except OSError:
        return False


KEY_BYTES = 64
ENCRYPTION_BYTES = 1 << 20


@feature("encryption", "encryption by directory (fscrypt)", FeatureGroup.DATA, Volume.OWN)
def encryption(place: TestPlace) -> FeatureFinding:
    """Sets a key for a directory, writes a file in it, and searches the device for the written data. Yes: the device
    does not contain the plain data. See Documentation/filesystems/fscrypt.rst.
    """
    directory = place.directory / "secret"
    directory.mkdir()
    with features.refusable(), opened(directory, os.O_DIRECTORY) as descriptor:
        syscalls.encrypt_directory(descriptor, os.urandom(KEY_BYTES))
    needle = os.urandom(64)
    (directory / "file").write_bytes(needle * (ENCRYPTION_BYTES // len(needle)))
    mounts.flush(place.directory)
    if (directory / "file").read_bytes()[:64] != needle:
        return features.no("read returns other data than was written")
    place.unmount()
    with opened(place.device) as device:
        found = any(True for _ in places(device, needle))
    place.mount()
    return features.no("the text is on the device unencrypted") if found else features.yes()


REFLINK_BYTES = 8 << 20


@feature("reflink", "copies that share blocks until one is changed (FICLONE)", FeatureGroup.DATA, Volume.OWN)
def reflink(place: TestPlace) -> FeatureFinding:
    """Clones a file. Checks that the clone takes no space, and that a change of the clone leaves the original as is.
    The free space before and after distinguishes a clone from a copy. See ioctl_ficlone(2).
    """
    original, copy = place.directory / "original", place.directory / "copy"
    content = os.urandom(REFLINK_BYTES)
    original.write_bytes(content)
    mounts.flush(place.directory)
    before = place.free_bytes
    refusable = features.refusable(errors=NOT_SUPPORTED | {errno.EXDEV})
    with original.open("rb") as source, copy.open("wb") as target, refusable:
        syscalls.clone(source.fileno(), target.fileno())
    mounts.flush(place.directory)
    taken = before - place.free_bytes
    with copy.open("r+b") as file:
        file.write(b"changed")
    if copy.read_bytes()[7:] != content[7:] or original.read_bytes() != content:
        return features.no("a change of the clone changed the original")
    if taken > REFLINK_BYTES // 2:
        return features.no(f"the clone took {taken} bytes")
    return features.yes()


OLD, NEW = b"as it was", b"as it is now"


@feature("snapshots", "an earlier state of all files, kept and readable", FeatureGroup.DATA, Volume.OWN)
def snapshots(place: TestPlace) -> FeatureFinding:
    """Tested with the two kernel interfaces that need no tool: subvolumes of btrfs and checkpoints of NILFS2. Writes a
    file, takes a snapshot, changes the file, and reads it in both. Use the first interface that the kernel supports on
    this file system.
    """
    with opened(place.directory, os.O_DIRECTORY) as descriptor:
        for mechanism in (_subvolume, _checkpoint):
            try:
                return mechanism(place, descriptor)
            except OSError as error:
                if error.errno not in NOT_SUPPORTED:
                    raise
    return features.no("neither subvolumes (btrfs) nor checkpoints (NILFS2)")


def _subvolume(place: TestPlace, directory: int) -> FeatureFinding:
    syscalls.create_subvolume(directory, "volume")
    file = place.directory / "volume" / "file"
    file.write_bytes(OLD)
    with opened(file.parent, os.O_DIRECTORY) as source:
        syscalls.snapshot_subvolume(source, directory, "snapshot")
    file.write_bytes(NEW)
    kept = (place.directory / "snapshot" / "file").read_bytes() == OLD and file.read_bytes() == NEW
    return features.yes("subvolumes, writable") if kept else features.no("the snapshot changed as well")


def _checkpoint(place: TestPlace, directory: int) -> FeatureFinding:
    file = place.directory / "file"
    file.write_bytes(OLD)
    mounts.flush(place.directory)
    number = syscalls.keep_checkpoint(directory)
    file.write_bytes(NEW)
    mounts.flush(place.directory)
    with place.also_mounted(f"ro,cp={number}") as root:
        found = root / file.relative_to(mountinfo.containing(file).target)
        kept = found.read_bytes() == OLD and file.read_bytes() == NEW
    return features.yes("checkpoints, read-only") if kept else features.no("the checkpoint changed as well")


@feature(
    "fs-verity",
    "read-only files checked against a hash (Documentation/filesystems/fsverity.rst)",
    FeatureGroup.DATA,
)
def verity(place: TestPlace) -> FeatureFinding:
    """Enables fs-verity for a file, which then must not open for writing. Yes: the file can no longer be opened for
    writing, and can still be read.
    """
    file = place.directory / "file"
    file.write_bytes(b"x" * 100_000)
    with features.refusable(), opened(file) as descriptor:
        syscalls.enable_verity(descriptor)
    try:
        file.open("r+b").close()
    except PermissionError:
        return features.yes() if len(file.read_bytes()) == 100_000 else features.no("read returns wrong data")
    return features.no("the file can still be written")
