"""The command line and the monitor (QMP) of QEMU, its accelerator, and the initramfs of its guests.

The accelerator is KVM if a guest boots with it, otherwise TCG. The existence of /dev/kvm does not prove it: in a
virtual machine, KVM can fail at the first instruction. The initramfs has a static busybox, the modules to mount the
host's root, and a script. It is written directly as a cpio archive ("newc", Documentation/driver-api/early-userspace/
buffer-format.rst), without a tool.
"""

import contextlib
import gzip
import io
import json
import lzma
import os
import shlex
import socket
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fslab import untrusted_text
from fslab.errors import FslabError, GuestError, UnsupportedError
from fslab.system import files, paths, proc, sysfs, tools
from fslab.system.kernel import module_name

PROGRAM = "qemu-system-x86_64"
KVM, TCG = "kvm", "tcg"
SELF_TEST_LIMIT_S = 5.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# For emulation not `max`: it makes copies in memory five to nine times as slow (rep movs).
CPUS = {KVM: "host", TCG: "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt"}
CONSOLE = "console=ttyS0 panic=-1 mitigations=off nokaslr random.trust_cpu=on"
TIMEOUT_S = 60.0


class Monitor:
    """The monitor of a running QEMU."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self._greeted = False
        self._sent = 0

    def ask(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """Run a command and return QEMU's reply. GuestError if QEMU reports an error or does not answer."""
        deadline = time.monotonic() + timeout_s
        if not self._greeted:
            self._next("QMP", command, deadline)
            self._greeted = True
            self.ask("qmp_capabilities", timeout_s=timeout_s)
        self._sent += 1
        request = {"execute": command, "id": self._sent}
        self._send({**request, **({"arguments": dict(arguments)} if arguments else {})}, command)
        return self._next("return", command, deadline)

    def close(self) -> None:
        """Close the socket. Can be called twice."""
        self._line.close()

    def wait_for(self, event: str, device: str) -> None:
        """Wait for an event of a device. GuestError at the timeout."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for seen in self._events:
                if seen["event"] == event and seen.get("data", {}).get("device") == device:
                    self._events.remove(seen)
                    return
            message = self._read(event, deadline)
            if "event" in message:
                self._events.append(message)

    def _next(self, key: str, command: str, deadline: float) -> Any:
        while True:
            message = self._read(command, deadline)
            if message.get("id", self._sent) != self._sent:
                continue  # the reply to a command whose time was over
            if "error" in message:
                raise GuestError(f"QEMU reports an error: {message['error'].get('desc')}", where=command)
            if "event" in message:
                self._events.append(message)
            if key in message:
                return message[key]

    def _send(self, message: Mapping[str, Any], command: str) -> None:
        try:
            self._line.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise GuestError(f"QEMU does not answer: {error}", where=command) from error

    def _read(self, command: str, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._rest:
            try:
                self._line.settimeout(max(0.01, deadline - time.monotonic()))
                data = self._line.recv(65536)
            except OSError as error:
                raise GuestError(f"QEMU does not answer: {error}", where=command) from error
            if not data:
                raise GuestError("QEMU has ended", where=command)
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\n")
        try:
            message: dict[str, Any] = untrusted_text.json_of(text)
        except ValueError as error:
            raise GuestError(f"cannot read QEMU's reply: {error}", where=command) from error
        return message


def cpus(accelerator: str) -> int:
    """Return the CPUs of a guest: with KVM, as many as this process may use. Emulation has no use for more than one."""
    return len(os.sched_getaffinity(0)) if accelerator == KVM else 1


def machine_argv(program: str, accelerator: str, memory_mib: int, kernel: str, initrd: str) -> list[str]:
    """Return the options of the machine itself: i440fx, because its ACPI can hot-plug disks on the existing bus."""
    return [
        program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "pc",
        "-accel", accelerator, "-cpu", CPUS[accelerator], "-smp", str(cpus(accelerator)), "-m", str(memory_mib),
        "-kernel", kernel, "-initrd", initrd,
    ]  # fmt: skip


def devices_argv(directory: str, console: str, line: str, monitor: str) -> list[str]:
    """Return the options of console, root, shared directory, line and monitor; the last two are descriptors."""
    shared = "security_model=none,multidevs=remap"
    return [
        "-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console",
        "-fsdev", f"local,id=root,path=/,readonly=on,{shared}",
        "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
        "-fsdev", f"local,id=run,path={directory.replace(',', ',,')},{shared}",
        "-device", "virtio-9p-pci,fsdev=run,mount_tag=run",
        "-device", "virtio-serial-pci", "-chardev", f"socket,id=line,fd={line}",
        "-device", "virtserialport,chardev=line,name=fslab",
        "-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control",
        "-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
    ]  # fmt: skip


def accelerator(program: str, kernel: str, initrd: str, mark: tuple[str, str]) -> str:
    """Return ``kvm`` if a guest boots with it within seconds, otherwise ``tcg``. Tested once per boot of the host.

    ``mark``: in the environment of that guest, by which it is ended if fslab is killed.
    """
    if (known := known_accelerator(program)) is not None:
        return known
    found = KVM if _boots(machine_argv(program, KVM, 256, kernel, initrd), mark) else TCG
    with contextlib.suppress(OSError):  # without the file, the next guest tests again
        files.make_directories(_memory().parent, 0o700)
        _memory().write_text(json.dumps({**_key(program), "accelerator": found}), "utf-8")
    return found


def known_accelerator(program: str) -> str | None:
    """Return what ``accelerator`` returns, as far as it is known without booting a guest."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return TCG
    key = _key(program)
    try:
        remembered = untrusted_text.json_of(_memory().read_text("utf-8"))
        if {name: remembered[name] for name in key} == key and remembered["accelerator"] in {KVM, TCG}:
            return str(remembered["accelerator"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not tested yet, or the file is from another version
    return None


def _memory() -> Path:
    return paths.cache() / "kvm.json"


def _key(program: str) -> dict[str, str | None]:
    return {"boot_id": sysfs.text(BOOT_ID), "program": str(Path(program).resolve())}


def _boots(argv: Sequence[str], mark: tuple[str, str]) -> bool:
    words = [*argv, "-append", f"{CONSOLE} quiet fslab_selftest=1", "-chardev", "stdio,id=console", "-serial"]
    try:
        done = proc.run(
            [*words, "chardev:console"], timeout_s=SELF_TEST_LIMIT_S, check=False, env={mark[0]: mark[1]}
        )
    except FslabError:
        return False
    return SELF_TEST in done.stdout


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


def write_initramfs(path: Path, modules: Path, init: Sequence[str], busybox: Path) -> None:
    """Write the archive that mounts the host's root and runs ``init`` on it.

    UnsupportedError if the kernel lacks a needed driver, as cloud kernels do.
    """
    archive = io.BytesIO()
    files = modules_in_order(modules)
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


def modules_in_order(modules: Path, wanted: Sequence[str] = NEEDED) -> list[Path]:
    """Return the files of the wanted modules and their dependencies, in the order of loading (modules.dep(5))."""
    listed: dict[str, tuple[Path, list[str]]] = {}
    for line in (sysfs.text(modules / "modules.dep") or "").splitlines():
        file, _, needs = line.partition(":")
        listed[module_name(file)] = (modules / file, [module_name(need) for need in needs.split()])
    builtin = {module_name(line) for line in (sysfs.text(modules / "modules.builtin") or "").splitlines()}
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
