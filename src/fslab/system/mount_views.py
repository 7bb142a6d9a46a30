"""Mounts that show other owners than what lies below them: FUSE, overlayfs, idmapped mounts, images. Only reads.

Judges nothing: ``path_owners`` does.
"""

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from fslab.system import mountinfo, rights, syscalls, sysfs

_IDMAPPED, _LOOP = b",idmapped", b" /dev/loop"
_LOOP_DEVICE = re.compile(r"/dev/(loop\d+)(?:p\d+)?")
_MOUNTED_BY = re.compile(rb"\buser_id=(\d+)")
# Documentation/filesystems/overlayfs.rst: lowerdir is a list. In it and in upperdir, a backslash is before a character
# that has a meaning, such as the colon between two.
_LAYER, _MEANT = re.compile(rb"(?:\\.|[^:\\])+"), re.compile(rb"\\(.)")
_AS_WRITTEN = frozenset({b"lowerdir+", b"datadir+"})


@dataclass(frozen=True, kw_only=True, slots=True)
class MountView:
    """A mount of such a kind. ``fuse_user``: the user that mounted a FUSE file system. ``layers``: of an overlayfs,
    those that are seen in this namespace. ``image``: the file that a loop device lies on."""

    mount: mountinfo.Mount
    idmapped: bool
    fuse_user: int | None
    layers: tuple[Path, ...]
    image: Path | None

    def layers_of(self, place: Path) -> list[Path]:
        """Return where ``place`` is in each layer, whether it exists there or not."""
        if not self.layers:  # the root of others need not be a path: "net:[4026531840]" of nsfs
            return []
        below = self.mount.root.relative_to("/") / place.relative_to(self.mount.target)
        return [layer / below for layer in self.layers]


def mounts() -> bytes:
    """Return the mounts of this namespace, for ``of``. A user can mount FUSE meanwhile: what ``of`` does not find in
    them is not known."""
    return mountinfo.OWN.read_bytes()


def of(descriptor: int, mounts: bytes) -> MountView | None:
    """Return the mount of a descriptor; None if it shows what lies below. OSError if it is not known."""
    kind = syscalls.filesystem_type(descriptor)
    layered, served = kind == syscalls.OVERLAYFS_SUPER_MAGIC, kind == syscalls.FUSE_SUPER_MAGIC
    if not layered and not served and _IDMAPPED not in mounts and _LOOP not in mounts:
        return None
    about = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").split()
    number = int(about[about.index("mnt_id:") + 1])
    line = mountinfo.line_of(number, mounts)
    if line is None:
        if not served:  # seen from below its mount point (chroot(2)), where its layers are not
            return None
        raise OSError(errno.EXDEV, "mounted in another namespace", f"mount {number}")
    mount = mountinfo.Mount.of(line)
    by = _MOUNTED_BY.search(mount.super_options) if served else None
    return MountView(
        mount=mount,
        idmapped="idmapped" in mount.mount_options.split(",") and not rights.in_user_namespace(),
        fuse_user=int(by[1]) if by else None,
        layers=_layers(mount.super_options) if layered else (),
        image=_image(mount.source),
    )


def _image(source: str) -> Path | None:
    device = _LOOP_DEVICE.fullmatch(source)
    file = device and sysfs.text(sysfs.SYS / "class/block" / device[1] / "loop/backing_file")
    return Path(file) if file else None


def _layers(options: bytes) -> tuple[Path, ...]:
    found: list[bytes] = []
    for option in options.split(b","):
        name, _, shown = option.partition(b"=")
        value = mountinfo.unescaped(shown)
        if name in _AS_WRITTEN:
            found.append(value)
        elif name in {b"lowerdir", b"upperdir"}:
            parts = _LAYER.findall(value) if name == b"lowerdir" else [value]
            found += [_MEANT.sub(rb"\1", part) for part in parts]
    paths = (Path(os.fsdecode(each)) for each in found)
    return tuple(path for path in paths if path.is_absolute() and os.path.lexists(path))
