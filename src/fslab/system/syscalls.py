"""System calls and ioctls that Python does not offer: thin, typed functions that raise OSError. Decides nothing.

Numbers are those of the generic ABI (x86-64, arm64, riscv): include/uapi/linux/{fs,fiemap,fscrypt,fsverity,btrfs,
nilfs2_api,stat,falloc,mount,sched}.h.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_longlong]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

AT_FDCWD = -100
PAGE_BYTES = mmap.PAGESIZE

FICLONE = 0x40049409
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FS_IOC_FIEMAP = 0xC020660B
FS_IOC_ENABLE_VERITY = 0x40806685
FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_SET_ENCRYPTION_POLICY = 0xC0506617, 0x800C6613
BTRFS_IOC_SUBVOL_CREATE, BTRFS_IOC_SNAP_CREATE_V2 = 0x5000940E, 0x50009417
BTRFS_IOC_QUOTA_CTL = 0xC0109428
NILFS_IOCTL_CHANGE_CPMODE, NILFS_IOCTL_SYNC = 0x40106E80, 0x80086E8A

COMPRESS_FLAG, CASEFOLD_FLAG = 0x4, 0x40000000
FIEMAP_EXTENT_ENCODED = 0x8
MAP_SHARED_VALIDATE, MAP_SYNC = 0x3, 0x80000
_STATX_TYPE, _STATX_INO, _STATX_DIOALIGN = 0x1, 0x100, 0x2000
_AT_STATX_DONT_SYNC = 0x4000
_KCMP, _KCMP_FILES = {"x86_64": 312, "aarch64": 272, "riscv64": 272}, 2
_KEYCTL, _JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219, "riscv64": 219}, 1
_STATX_BYTES = 256
_NAME_BYTES = 4088
_PR_SET_PDEATHSIG = 1
PROC_SUPER_MAGIC, FUSE_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC = 0x9FA0, 0x65735546, 0x794C7630  # statfs(2)
_STATFS_BYTES = 256
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_BIND = 0x1000
_FSOPEN, _FSCONFIG, _FSMOUNT, _FS_CLOEXEC = 430, 431, 432, 1
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
_MESSAGE_BYTES, _MESSAGES = 1024, 8


class Fallocate(IntFlag):
    """Modes of fallocate(2)."""

    ALLOCATE = 0x0
    KEEP_SIZE = 0x1
    PUNCH_HOLE = 0x2
    COLLAPSE_RANGE = 0x8
    ZERO_RANGE = 0x10
    INSERT_RANGE = 0x20
    UNSHARE_RANGE = 0x40
    WRITE_ZEROES = 0x80


class Rename(IntFlag):
    """Flags of renameat2(2)."""

    NOREPLACE = 0x1
    EXCHANGE = 0x2
    WHITEOUT = 0x4


class MountAttribute(IntFlag):
    """Attributes of fsmount(2)."""

    RDONLY = 0x1
    NOSUID = 0x2
    NODEV = 0x4
    NOEXEC = 0x8


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectAlignment:
    """The alignment that direct I/O needs, in bytes, from statx(2); 0: not possible on this file."""

    memory_bytes: int
    offset_bytes: int


def checked(result: int, what: str | Path | None = None) -> int:
    """Return the result of a function of libc. OSError if it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), None if what is None else str(what))
    return int(result)


def fallocate(descriptor: int, mode: Fallocate, offset: int, length: int) -> None:
    """Call fallocate(2)."""
    arguments = (ctypes.c_longlong(offset), ctypes.c_longlong(length))
    checked(_libc.fallocate(descriptor, int(mode), *arguments), f"fallocate {mode!r}")


def rename(old: Path, new: Path, flags: Rename) -> None:
    """Call renameat2(2)."""
    names = (AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new))
    checked(_libc.renameat2(*names, ctypes.c_uint(flags)), old)


def direct_alignment(path: Path) -> DirectAlignment | None:
    """Return STATX_DIOALIGN of a file (Linux 6.1); None if the kernel or the file system does not support it."""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    checked(_libc.statx(AT_FDCWD, os.fsencode(path), 0, ctypes.c_uint(_STATX_DIOALIGN), buffer), path)
    (mask,) = struct.unpack_from("=I", buffer, 0)
    if not mask & _STATX_DIOALIGN:
        return None
    memory, offset = struct.unpack_from("=II", buffer, 0x98)
    return DirectAlignment(memory_bytes=memory, offset_bytes=offset)


def file_number(path: Path | str) -> str | None:
    """Return ``major:minor`` of the block device that a path leads to, ``cmajor:minor`` of a character device,
    ``fmajor:minor:inode`` of a regular file, None for any other file. As ``device_of``."""
    attributes = _cached_attributes(path)
    (mode,) = struct.unpack_from("=H", attributes, 0x1C)
    if stat.S_ISREG(mode):
        (inode,) = struct.unpack_from("=Q", attributes, 0x20)
        major, minor = struct.unpack_from("=II", attributes, 0x88)
        return f"f{major}:{minor}:{inode}"
    major, minor = struct.unpack_from("=II", attributes, 0x80)
    kinds = {stat.S_IFBLK: "", stat.S_IFCHR: "c"}
    kind = kinds.get(stat.S_IFMT(mode))
    return None if kind is None else f"{kind}{major}:{minor}"


def device_of(path: Path | str) -> int:
    """Return the number of the device of a file, ``st_dev`` of stat(2), without waiting for the server of a network or
    FUSE file system. That holds for the file, such as one that a link of /proc leads to, not for the way to it."""
    return os.makedev(*struct.unpack_from("=II", _cached_attributes(path), 0x88))


def _cached_attributes(path: Path | str) -> ctypes.Array[ctypes.c_char]:
    """Call statx(2) with AT_STATX_DONT_SYNC: a stat(2) of a file whose server does not answer hangs."""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    wanted = ctypes.c_uint(_STATX_TYPE | _STATX_INO)
    checked(_libc.statx(AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, wanted, buffer), path)
    return buffer


def filesystem_type(descriptor: int) -> int:
    """Return the type of the file system that an open file lies on, such as ``FUSE_SUPER_MAGIC``: statfs(2)."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    checked(_libc.fstatfs(descriptor, buffer), "fstatfs")
    (kind,) = struct.unpack_from("=q", buffer, 0)
    return int(kind)


def same_descriptors(one: int, other: int) -> bool:
    """Return whether two threads share their table of open files: kcmp(2). False if unknown."""
    number = _KCMP.get(os.uname().machine)
    return number is not None and _libc.syscall(number, one, other, _KCMP_FILES, 0, 0) == 0


def cached_pages(path: Path) -> int:
    """Return how many of a file's pages are in the page cache: mincore(2) on a mapping that is never accessed."""
    size_bytes = path.stat().st_size
    pages = (ctypes.c_ubyte * -(-size_bytes // PAGE_BYTES))()
    with path.open("rb") as file:
        address = _libc.mmap(None, size_bytes, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == ctypes.c_void_p(-1).value:
        checked(-1, path)
    try:
        checked(_libc.mincore(address, size_bytes, pages), path)
    finally:
        _libc.munmap(address, size_bytes)
    return sum(page & 1 for page in pages)


def map_synchronously(path: Path) -> None:
    """Map a file with MAP_SYNC and unmap it at once: mmap(2). Only files in persistent memory (DAX) allow this."""
    size_bytes = path.stat().st_size
    with path.open("r+b") as file:
        mmap.mmap(file.fileno(), size_bytes, flags=MAP_SHARED_VALIDATE | MAP_SYNC).close()


def syncfs(descriptor: int, what: Path) -> None:
    """Write all dirty data of the file system of the open file ``what`` to its device: syncfs(2)."""
    checked(_libc.syncfs(descriptor), what)


def flags(descriptor: int) -> int:
    """Return the inode flags, as in chattr(1)."""
    (found,) = struct.unpack_from("=I", fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(8)))
    return int(found)


def add_flag(descriptor: int, flag: int) -> None:
    """Set one more inode flag."""
    fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, struct.pack("=Q", flags(descriptor) | flag))


def clone(source: int, target: int) -> None:
    """Make the file ``target`` share all blocks of ``source``: ioctl_ficlone(2)."""
    fcntl.ioctl(target, FICLONE, source)


def extent_flags(descriptor: int) -> list[int]:
    """Return the flags of a file's first extents, after writing the file back
    (Documentation/filesystems/fiemap.rst)."""
    count, sync = 32, 0x1
    # fcntl.ioctl() accepts more than 1024 bytes only in a mutable buffer.
    buffer = bytearray(struct.pack("=QQIIII", 0, (1 << 64) - 1, sync, 0, count, 0) + bytes(56 * count))
    fcntl.ioctl(descriptor, FS_IOC_FIEMAP, buffer)
    (mapped,) = struct.unpack_from("=I", buffer, 20)
    return [struct.unpack_from("=I", buffer, 32 + 56 * index + 40)[0] for index in range(mapped)]


def enable_verity(descriptor: int) -> None:
    """Enable fs-verity with SHA-256: FS_IOC_ENABLE_VERITY, on a descriptor that is open for reading only."""
    version, sha256, block_bytes = 1, 1, 4096
    request = struct.pack("=III", version, sha256, block_bytes).ljust(128, b"\0")
    fcntl.ioctl(descriptor, FS_IOC_ENABLE_VERITY, request)


def encrypt_directory(directory: int, key: bytes) -> None:
    """Give an empty directory the encryption policy AES-256-XTS/CTS with ``key`` (64 bytes): fscrypt.rst, version 2."""
    by_identifier, xts, cts, pad_32 = 2, 1, 4, 3
    request = struct.pack("=II32sII32s", by_identifier, 0, b"", len(key), 0, b"") + key
    answer = fcntl.ioctl(directory, FS_IOC_ADD_ENCRYPTION_KEY, request)
    identifier = answer[8:24]
    policy = struct.pack("=BBBB4s16s", 2, xts, cts, pad_32, b"", identifier)
    fcntl.ioctl(directory, FS_IOC_SET_ENCRYPTION_POLICY, policy)


def create_subvolume(parent: int, name: str) -> None:
    """Create a subvolume in the open directory ``parent``: BTRFS_IOC_SUBVOL_CREATE."""
    request = bytearray(struct.pack(f"=q{_NAME_BYTES}s", 0, os.fsencode(name)))
    fcntl.ioctl(parent, BTRFS_IOC_SUBVOL_CREATE, request)


def snapshot_subvolume(source: int, parent: int, name: str) -> None:
    """Create a snapshot ``name`` of the open subvolume ``source`` in ``parent``: BTRFS_IOC_SNAP_CREATE_V2."""
    request = bytearray(struct.pack("=qQQ32s4040s", source, 0, 0, b"", os.fsencode(name)))
    fcntl.ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, request)


def enable_qgroups(directory: int) -> None:
    """Switch on space accounting per subvolume: BTRFS_IOC_QUOTA_CTL."""
    enable = 1
    fcntl.ioctl(directory, BTRFS_IOC_QUOTA_CTL, struct.pack("=QQ", enable, 0))


def keep_checkpoint(directory: int) -> int:
    """Write a checkpoint of a NILFS2 file system, keep it as a snapshot and return its number."""
    (number,) = struct.unpack("=Q", fcntl.ioctl(directory, NILFS_IOCTL_SYNC, bytes(8)))
    snapshot = 1
    fcntl.ioctl(directory, NILFS_IOCTL_CHANGE_CPMODE, struct.pack("=QII", number, snapshot, 0))
    return int(number)


def used_by_user(device: Path, user: int) -> int:
    """Return the bytes of a user's files by quota accounting: quotactl(2), Q_GETQUOTA. OSError if quotas are off."""
    get_quota, buffer = 0x800007, ctypes.create_string_buffer(72)
    _quotactl(get_quota, device, user, buffer)
    (space,) = struct.unpack_from("=Q", buffer, 16)
    return int(space)


def enable_quotas(device: Path, file: Path) -> None:
    """Have the space of users accounted in a quota file of the format vfsv1: quotactl(2), Q_QUOTAON."""
    quota_on, vfsv1 = 0x800002, 4
    _quotactl(quota_on, device, vfsv1, os.fsencode(file))


def _quotactl(call: int, device: Path, number: int, data: object) -> None:
    of_user = 0
    command = ctypes.c_uint((call << 8) | of_user)
    checked(_libc.quotactl(command, os.fsencode(device), number, data), device)


def die_with(parent: int, signum: int) -> None:
    """Have ``signum`` sent to this process when its parent, process ``parent``, ends (prctl(2)), or now if it has."""
    checked(_libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def unshare(flags: int) -> None:
    """Call unshare(2). A new user namespace needs a process of one thread."""
    checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Call setns(2): move this thread to the namespace of a descriptor."""
    checked(_libc.setns(descriptor, kind), "setns")


def bind(source: Path, target: Path) -> None:
    """Call mount(2): show ``source`` also at ``target``."""
    checked(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(_MS_BIND), None), target
    )


def join_new_session_keyring() -> None:
    """Call keyctl(2): give this thread, and what it starts from now on, an empty session keyring."""
    if (number := _KEYCTL.get(os.uname().machine)) is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "keyctl")
    checked(_libc.syscall(number, _JOIN_SESSION_KEYRING, None), "keyctl")


def detached_mount(filesystem: str, options: Mapping[str, str | None], attributes: MountAttribute) -> int:
    """Mount a file system at no place, and return a descriptor of its root: fsopen(2), fsconfig(2), fsmount(2).

    It is unmounted when nothing uses it any more, at the latest when the processes end that do. ``options``: None for
    an option without a value; a value has at most 255 bytes. OSError, with what the kernel says about it.
    """
    context = checked(_libc.syscall(_FSOPEN, os.fsencode(filesystem), _FS_CLOEXEC), "fsopen")
    try:
        for key, value in options.items():
            command = _SET_FLAG if value is None else _SET_STRING
            _configure(context, command, key, value)
        _configure(context, _CREATE, None, None)
        return checked(_libc.syscall(_FSMOUNT, context, _FS_CLOEXEC, int(attributes)))
    except OSError as error:
        raise OSError(error.errno, ": ".join((str(error.strerror), *_told(context)))) from error
    finally:
        os.close(context)


def _configure(context: int, command: int, key: str | None, value: str | None) -> None:
    texts = (None if text is None else os.fsencode(text) for text in (key, value))
    checked(_libc.syscall(_FSCONFIG, context, command, *texts, 0))


def _told(context: int) -> Iterator[str]:
    """Yield what the kernel says about a mount that failed: lines such as ``e overlay: No changes allowed``."""
    with contextlib.suppress(OSError):  # ENODATA: there are no more
        for _ in range(_MESSAGES):
            yield os.read(context, _MESSAGE_BYTES).decode("utf-8", "replace").strip()[2:]
