"""Inside a guest: mounts what it needs before anything else, makes kernel modules loadable, and attaches the disks."""

import ctypes
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fslab.errors import GuestError
from fslab.storage import StackDevice
from fslab.system import kernel, proc, signals, sysfs

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

RUN = Path("/run")

PORTS = Path("/sys/class/virtio-ports")

_libc = ctypes.CDLL(None, use_errno=True)

NODE_LIMIT_S = 20.0

DRIVER = sysfs.SYS / "bus/platform/drivers/virtio-uml"


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


@contextmanager
def attached(plugged: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, StackDevice]]:
    """Yield the plugged-in disks as devices, by slot. They are released when the block ends."""
    with signals.Teardown() as undo:
        yield {slot: _attached(disk, undo) for slot, disk in plugged.items()}


def _attached(disk: Mapping[str, Any], undo: ExitStack) -> StackDevice:
    if disk["bind"] is not None:
        _bind(disk["bind"], undo)
    path = _node(disk)
    queue = sysfs.block_directory(path) / "queue"
    # virtio reports every disk as rotational, and file systems and schedulers adapt to that.
    (queue / "rotational").write_text("1" if disk["rotational"] else "0")
    if not disk["discard"]:  # discards would punch holes into the image
        (queue / "discard_max_bytes").write_text("0")
    geometry = sysfs.geometry(path)
    size = geometry["size_bytes"]
    if not size:
        raise GuestError("the disk has no size", where=str(path))
    return StackDevice(
        path=path, size_bytes=size, discard=disk["discard"], facts={**geometry, **disk["facts"]}
    )


def _bind(name: str, undo: ExitStack) -> None:
    """Bind the driver, so that it connects to the disk's server. The kernel found no server at boot."""
    if not DRIVER.is_dir():
        raise GuestError(
            "this kernel has no virtio disks",
            where=name,
            hint="use a kernel with CONFIG_VIRTIO_UML and CONFIG_VIRTIO_BLK",
        )
    proc.run(["modprobe", "virtio_blk"], check=False)  # some kernels have it built in
    try:
        (DRIVER / "bind").write_text(name)
    except OSError as error:
        raise GuestError(f"cannot connect to the disk's server: {error.strerror}", where=name) from error
    undo.callback((DRIVER / "unbind").write_text, name)


def _node(disk: Mapping[str, Any]) -> Path:
    """Wait until the kernel has created the disk's node, and return its path."""
    deadline = time.monotonic() + NODE_LIMIT_S
    while time.monotonic() < deadline:
        if disk["device"] is not None and Path(disk["device"]).is_block_device():
            return Path(disk["device"])
        for entry in sysfs.SYS.glob("block/*/serial") if disk["serial"] else ():
            if sysfs.text(entry) == disk["serial"]:
                return Path("/dev") / entry.parent.name
        time.sleep(0.01)
    raise GuestError("the disk did not appear", where=str(disk["device"] or disk["serial"]))
