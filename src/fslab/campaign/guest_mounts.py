"""Mounts what a guest needs before anything else, and makes kernel modules loadable there.

Must not run on the host: it would hide directories of the host.
"""

import ctypes
import os
from pathlib import Path

from fslab.system import kernel, sysfs

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = Path("/run")
PORTS = Path("/sys/class/virtio-ports")
_libc = ctypes.CDLL(None, use_errno=True)


def prepare(directory: Path, modules: Path) -> None:
    """Mount the usual kernel file systems and the directory shared with the host; make modules loadable."""
    os.environ.update({"PATH": PATH, "HOME": "/run/home", "TMPDIR": "/run/tmp", "LC_ALL": "C", "TZ": "UTC"})
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/dev/shm")):  # noqa: S108
        Path(target).mkdir(exist_ok=True)
        if not Path(target).is_mount():
            mount(kind, Path(target))
    for name in ("home", "tmp", "lock", "mnt"):
        (RUN / name).mkdir(exist_ok=True)
    Path("/dev/pts").mkdir(exist_ok=True)
    mount("devpts", Path("/dev/pts"))
    directory.mkdir(parents=True, exist_ok=True)
    if "hostfs" in kernel.known_filesystems():
        mount("hostfs", directory, options=str(directory))
    else:
        mount("9p", directory, source="run", options="trans=virtio,version=9p2000.L,cache=none,msize=262144")
    if modules.is_dir():
        _find_modules(modules)


def mount(kind: str, target: Path, *, source: str = "none", options: str = "") -> None:
    """Call mount(2) directly: mount(8) cannot mount hostfs with the new system calls before Linux 6.12."""
    failed = _libc.mount(source.encode(), os.fsencode(target), kind.encode(), 0, os.fsencode(options))
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind}: {os.strerror(code)}", str(target))


def line(link: str) -> str:
    """Return the node of the line to the host: ``link`` if it is a path, else the virtio port with this name."""
    if link.startswith("/"):
        return link
    for port in PORTS.glob("*"):
        if sysfs.text(port / "name") == link:
            return f"/dev/{port.name}"
    raise FileNotFoundError(f"no virtio port '{link}'")


def _find_modules(modules: Path) -> None:
    """Set the program by which the kernel loads modules: a modprobe that finds them below ``/run/modules``."""
    root = RUN / "modules"
    (root / "lib/modules").mkdir(parents=True)
    (root / "lib/modules" / os.uname().release).symlink_to(modules)
    script = RUN / "modprobe"
    script.write_text(f'#!/bin/sh\nexec /sbin/modprobe -d {root} "$@"\n')
    script.chmod(0o755)
    Path("/proc/sys/kernel/modprobe").write_text(str(script))
    os.environ["PATH"] = f"{RUN}/bin:{PATH}"
    (RUN / "bin").mkdir()
    (RUN / "bin/modprobe").symlink_to(script)
