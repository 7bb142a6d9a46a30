"""An overlayfs that is mounted at no place: only a descriptor reaches it, so it ends with the process that mounted it,
also if that is killed. Where layers come from is not its business.

A mount namespace would do the same, but would keep the devices of all other mounts of the machine in use meanwhile.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fslab.system import namespaces, syscalls, trees
from fslab.system.files import closed_after, opened
from fslab.system.syscalls import MountAttribute

UPPER, WORK = "upper", "work"
# As container engines mount it. Kernels differ in their defaults; with `index`, layers cannot be used again elsewhere.
_OPTIONS = {"index": "off", "metacopy": "off"}
_ATTRIBUTES = MountAttribute.NOSUID | MountAttribute.NODEV | MountAttribute.NOEXEC
_WHY = {
    errno.ENODEV: "this kernel has no overlayfs (modprobe overlay)",
    errno.ENOSYS: "this kernel is older than Linux 5.2",
    errno.EPERM: "as another user than root it needs Linux 5.11 and user namespaces (sysctl user.max_user_namespaces)",
    errno.EINVAL: "the kernel accepts no layers on this file system (dmesg(1) says why)",
}


@contextmanager
def mounted(directory: Path, lower: Sequence[str], *, container: str | None = None) -> Iterator[Path]:
    """Mount the layers ``lower``, the topmost first, and yield the root of the merged tree. Names are relative to
    ``directory``, and have at most 255 bytes together.

    ``container``: the directory of ``UPPER`` and ``WORK``, which are made if they are missing; without it the tree is
    read-only. Another user than root gets a user namespace for the rest of the process, which must have one thread.
    OSError with the reason.
    """
    options: dict[str, str | None] = {"lowerdir": ":".join(lower), **_OPTIONS}
    if container is not None:
        for option, name in (("upperdir", UPPER), ("workdir", WORK)):
            (directory / container / name).mkdir(parents=True, exist_ok=True)
            options[option] = f"{container}/{name}"
    try:
        if os.geteuid() != 0:
            namespaces.enter_user_namespace()
            options["userxattr"] = None
        with _inside(directory):
            root = syscalls.detached_mount("overlay", options, _ATTRIBUTES)
    except OSError as error:
        why = _WHY.get(error.errno or 0)
        raise OSError(
            error.errno, f"{error.strerror}: {why}" if why else error.strerror, "overlayfs"
        ) from error
    with closed_after(root):
        yield Path(f"/proc/self/fd/{root}")


def attempt(directory: Path) -> None:
    """Try in a new directory, which is removed again, what containers need: deleted files are hidden, changed ones are
    copied up. OSError with the reason if that fails."""
    try:
        for name in ("0", "1"):
            (directory / name).mkdir(parents=True)
        for name in ("kept", "deleted"):
            (directory / "0" / name).write_text("0")
        white_out(directory / "1/deleted")
        with mounted(directory, ("1", "0"), container="container") as merged:
            (merged / "kept").write_text("1")
            listed = [path.name for path in merged.iterdir()]
        if listed != ["kept"]:
            reason = "deleted files are still listed: the file system stores no types of files in directories (d_type)"
            raise OSError(errno.EOPNOTSUPP, reason)
        if (directory / "0/kept").read_text() != "0":
            raise OSError(errno.EIO, "a change of the container changed the image")
    finally:
        trees.remove(directory)


def white_out(path: Path) -> None:
    """Make what hides the file of this name in the layers below: a character device 0:0 (overlayfs.rst)."""
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """Change the working directory: the kernel limits the length of all names together."""
    with opened(".", os.O_PATH) as before:
        os.chdir(directory)
        try:
            yield
        finally:
            os.fchdir(before)
