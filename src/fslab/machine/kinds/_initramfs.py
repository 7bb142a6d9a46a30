"""The initramfs of a QEMU guest: a static busybox, the modules to mount the host's root, and a script.

It is written directly as a cpio archive ("newc", Documentation/driver-api/early-userspace/buffer-format.rst), without
a tool.
"""

import gzip
import io
import lzma
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

from fslab.errors import UnsupportedError
from fslab.machine.modules import name_of
from fslab.system import proc, sysfs, tools

# Drivers that a guest needs to start and that Debian's and Ubuntu's kernels build as modules.
NEEDED = ("virtio_pci", "9pnet_virtio", "9p", "virtio_blk", "virtio_console", "virtio_rng")
APPLETS = ("sh", "mount", "insmod", "switch_root", "poweroff", "echo")
SELF_TEST = "fslab-self-test-passed"
SCRIPT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
[ -n "$fslab_selftest" ] && echo {passed} >/dev/console && poweroff -f
{insmod}
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro root /host || poweroff -f
mount --move /dev /host/dev
mount --move /proc /host/proc
mount --move /sys /host/sys
exec switch_root /host {init}
"""


def write(path: Path, modules: Path, init: Sequence[str], busybox: Path) -> None:
    """Write the archive that mounts the host's root and runs ``init`` on it.

    UnsupportedError if the kernel lacks a needed driver, as cloud kernels do.
    """
    archive = io.BytesIO()
    files = in_order(modules)
    insmod = "\n".join(f"insmod /m/{number}.ko" for number in range(len(files)))
    script = SCRIPT.format(passed=SELF_TEST, insmod=insmod, init=shlex.join(init))
    for name in ("bin", "dev", "proc", "sys", "m", "host"):
        _entry(archive, name, stat.S_IFDIR | 0o755)
    _entry(archive, "dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    _entry(archive, "bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes())
    for name in APPLETS:
        _entry(archive, f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox")
    for number, file in enumerate(files):
        _entry(archive, f"m/{number}.ko", stat.S_IFREG | 0o644, _unpacked(file, path.parent))
    _entry(archive, "init", stat.S_IFREG | 0o755, script.encode())
    _entry(archive, "TRAILER!!!", 0)
    path.write_bytes(archive.getvalue())


def in_order(modules: Path, wanted: Sequence[str] = NEEDED) -> list[Path]:
    """Return the files of the wanted modules and their dependencies, in the order of loading (modules.dep(5))."""
    listed: dict[str, tuple[Path, list[str]]] = {}
    for line in (sysfs.text(modules / "modules.dep") or "").splitlines():
        file, _, needs = line.partition(":")
        listed[name_of(file)] = (modules / file, [name_of(need) for need in needs.split()])
    builtin = {name_of(line) for line in (sysfs.text(modules / "modules.builtin") or "").splitlines()}
    found: dict[str, Path] = {}

    def add(name: str) -> None:
        if name in builtin or name in found:
            return
        if name not in listed:
            raise UnsupportedError(
                f"this kernel lacks {name}, which a guest needs to read the host's files",
                where=str(modules),
                hint="use a general kernel of a distribution, such as Debian's linux-image-amd64, not a cloud kernel",
            )
        file, needs = listed[name]
        for need in reversed(needs):  # the list has direct dependencies first
            add(need)
        found[name] = file

    for name in wanted:
        add(name)
    return list(found.values())


def static_busybox() -> Path | None:
    """Return the path of a statically linked busybox, or None if there is none."""
    found = tools.find("busybox")
    if found is None or b"/ld-linux" in Path(found).read_bytes()[:4096]:
        return None
    return Path(found)


def _unpacked(file: Path, scratch: Path) -> bytes:
    match file.suffix:
        case ".xz":
            return lzma.decompress(file.read_bytes())
        case ".gz":
            return gzip.decompress(file.read_bytes())
        case ".zst":
            plain = scratch / "module.ko"
            proc.run(["zstd", "-d", "-q", "-f", "-o", str(plain), str(file)])
            return plain.read_bytes()
    return file.read_bytes()


def _entry(
    archive: io.BytesIO, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)
) -> None:
    path = name.encode() + b"\0"
    fields = (archive.tell() + 1, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
    archive.write(b"070701" + "".join(f"{field:08X}" for field in fields).encode() + path)
    for part in (b"", content):
        archive.write(part)
        archive.write(b"\0" * (-archive.tell() % 4))
