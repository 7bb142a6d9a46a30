"""The lines of /proc/PID/mountinfo: Documentation/filesystems/proc.rst, 3.5. Only reads.

And mounts that show other owners than what lies below them: FUSE, overlayfs, idmapped mounts, images. Judges nothing:
``path_owners`` does.
"""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fslab.system import rights, syscalls, sysfs

OWN = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-7]{3})")
_IDMAPPED = b",idmapped"
_ON_FILES = re.compile(rb" /dev/(?:loop|mapper/|dm-|md)")  # devices that lie on files, also below others
_MOUNTED_BY = re.compile(rb"\buser_id=(\d+)")
_DELETED = " (deleted)"  # of a path that the kernel tells
# Documentation/filesystems/overlayfs.rst: lowerdir is a list. In it and in upperdir, a backslash is before a character
# that has a meaning, such as the colon between two.
_LAYER, _MEANT = re.compile(rb"(?:\\.|[^:\\])+"), re.compile(rb"\\(.)")
_AS_WRITTEN = frozenset({b"lowerdir+", b"datadir+"})
# Types that ordinary users can mount (fusermount3(1); FS_USERNS_MOUNT in the kernel), from a source that is any text.
_OF_USERS = frozenset({
    "binfmt_misc", "bpf", "cgroup", "cgroup2", "devpts", "fuse", "mqueue", "overlay", "proc", "ramfs", "sysfs", "tmpfs",
})  # fmt: skip

# Types whose files a server has. Not fuseblk, which is on a disk.
_SERVED = frozenset({
    "9p", "afs", "autofs", "ceph", "cifs", "fuse", "lustre", "nfs", "nfs4", "smb3", "virtiofs",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """One line. ``number``: the mount's id. ``device``: ``major:minor``. ``root``: the directory of the file system
    that is mounted on ``target``. ``propagation``: the optional fields, such as ``shared:2``. ``super_options``: of the
    file system, as written (with octal escapes)."""

    number: int
    device: str
    root: Path
    target: Path
    mount_options: str
    propagation: tuple[str, ...]
    filesystem: str
    source: str
    super_options: bytes

    @classmethod
    def of(cls, line: bytes) -> Self:
        """Return the mount of a line without its newline."""
        before, _, after = line.partition(b" - ")
        number, _, device, root, target, mount_options, *propagation = before.split(b" ")
        # The last field, whatever is in the name of the source: users choose that.
        filesystem, source, *_, super_options = after.split(b" ")
        return cls(
            number=int(number), device=device.decode(), root=_path(root), target=_path(target),
            mount_options=os.fsdecode(mount_options), propagation=tuple(map(os.fsdecode, propagation)),
            filesystem=os.fsdecode(filesystem), source=os.fsdecode(unescaped(source)), super_options=super_options,
        )  # fmt: skip

    @property
    def node(self) -> str | None:
        """The source, if it can be the node of a device. What users name is not looked at: it can lie on a FUSE file
        system whose server does not answer."""
        return None if self.filesystem.partition(".")[0] in _OF_USERS else self.source

    @property
    def is_served(self) -> bool:
        """Whether a server has its files, which need not answer."""
        return self.filesystem.partition(".")[0] in _SERVED

    @property
    def options(self) -> str:
        """Those of the mount, then those of the file system; comma-separated."""
        return f"{self.mount_options},{os.fsdecode(self.super_options)}"


def parse(text: bytes) -> list[Mount]:
    """Return all mounts in the text of a mountinfo file, in its order."""
    # Not splitlines(): names may contain form feeds and the like; the kernel escapes only blanks and newlines.
    return [Mount.of(line) for line in text.split(b"\n") if line]


def mounted(path: Path = OWN) -> list[Mount]:
    return parse(path.read_bytes())


def containing(path: Path) -> Mount:
    """Return the mount that ``path`` lies on."""
    real = path.resolve()
    inside = [mount for mount in mounted() if real.is_relative_to(mount.target)]
    return max(reversed(inside), key=lambda mount: len(mount.target.parts))


def line_of(number: int, text: bytes) -> bytes | None:
    """Return the line of the mount with this id; None if there is none."""
    return next((line for line in text.split(b"\n") if line.startswith(b"%d " % number)), None)


def target_of(line: bytes) -> bytes | None:
    """Return the mount point of a line; None for an empty one."""
    return unescaped(line.split(b" ", 5)[4]) if line else None


def unescaped(text: bytes) -> bytes:
    """Decode space, tab, newline, backslash and other characters that the kernel writes as octal numbers."""
    return _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), text) if b"\\" in text else text


def _path(written: bytes) -> Path:
    return Path(os.fsdecode(unescaped(written)))


@dataclass(frozen=True, kw_only=True, slots=True)
class MountView:
    """A mount of such a kind. ``fuse_user``: the user that mounted a FUSE file system. ``layers``: of an overlayfs,
    those that are seen in this namespace. ``images``: the files that its loop devices lie on; none for the root file
    system: whoever can change that one can change every program."""

    mount: Mount
    idmapped: bool
    fuse_user: int | None
    layers: tuple[Path, ...]
    images: tuple[Path, ...]

    def layers_of(self, place: Path) -> list[Path]:
        """Return where ``place`` is in each layer, whether it exists there or not."""
        if not self.layers:  # the root of others need not be a path: "net:[4026531840]" of nsfs
            return []
        below = self.mount.root.relative_to("/") / place.relative_to(self.mount.target)
        return [layer / below for layer in self.layers]


def view_of(descriptor: int, mounts: bytes) -> MountView | None:
    """Return the mount of a descriptor; None if it shows what lies below. OSError if it is not known.

    ``mounts``: of this namespace, as read from ``OWN``. A user can mount FUSE meanwhile: what is not found in them is
    not known.
    """
    kind = syscalls.filesystem_type(descriptor)
    layered, served = kind == syscalls.OVERLAYFS_SUPER_MAGIC, kind == syscalls.FUSE_SUPER_MAGIC
    if not layered and not served and _IDMAPPED not in mounts and not _ON_FILES.search(mounts):
        return None
    about = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").split()
    number = int(about[about.index("mnt_id:") + 1])
    line = line_of(number, mounts)
    if line is None:
        if not served:  # seen from below its mount point (chroot(2)), where its layers are not
            return None
        raise OSError(errno.EXDEV, "mounted in another namespace", f"mount {number}")
    mount = Mount.of(line)
    by = _MOUNTED_BY.search(mount.super_options) if served else None
    return MountView(
        mount=mount,
        idmapped="idmapped" in mount.mount_options.split(",") and not rights.in_user_namespace(),
        fuse_user=int(by[1]) if by else None,
        layers=_layers(mount.super_options) if layered else (),
        images=() if served or mount.target == Path("/") else tuple(_images(_device(mount))),
    )


def is_gone(image: Path) -> bool:
    """Return whether a file was deleted after a loop device was attached to it: then nothing is known of it."""
    return image.name.endswith(_DELETED) and not os.path.lexists(image)


def _device(mount: Mount) -> Path | None:
    """Return the directory in sysfs of the device of a mount. A file system with a number of its own, as btrfs, has it
    only by the name of its source."""
    if not mount.device.startswith("0:"):
        return sysfs.SYS / "dev/block" / mount.device
    node = mount.node or ""
    name = os.path.realpath(node) if node.startswith("/dev/") else ""
    return sysfs.SYS / "class/block" / name.removeprefix("/dev/") if name.startswith("/dev/") else None


def _images(device: Path | None) -> Iterator[Path]:
    """Yield the files of the loop devices that a device is or lies on: also a part of one, an array or a volume."""
    if device is None or not device.exists():
        return
    whole = sysfs.disk(device.resolve())
    if file := sysfs.text(whole / "loop/backing_file"):
        yield Path(file)
    for below in sysfs.slaves(whole):
        yield from _images(below)


def _layers(options: bytes) -> tuple[Path, ...]:
    found: list[bytes] = []
    for option in options.split(b","):
        name, _, shown = option.partition(b"=")
        value = unescaped(shown)
        if name in _AS_WRITTEN:
            found.append(value)
        elif name in {b"lowerdir", b"upperdir"}:
            parts = _LAYER.findall(value) if name == b"lowerdir" else [value]
            found += [_MEANT.sub(rb"\1", part) for part in parts]
    paths = (Path(os.fsdecode(each)) for each in found)
    return tuple(path for path in paths if path.is_absolute() and os.path.lexists(path))
