"""QEMU with a distribution's kernel: needs no root and no build. The host's root directory is shared read-only.

Without KVM, every instruction is emulated. The record names the accelerator.
"""

import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

from fslab.cell import MachineSpec
from fslab.errors import GuestError, UnsupportedError
from fslab.machine import guest, kinds
from fslab.machine.guest import Disk, Guest
from fslab.machine.kinds import Boot, Need, _guests
from fslab.machine.kinds import _qemu as command
from fslab.machine.kinds._qemu import Monitor
from fslab.storage import Drive
from fslab.system import proc, tools
from fslab.system.files import closed_after
from fslab.system.kernel import MODULES, release_key
from fslab.system.tools import Tool

EMULATOR = Tool(program=command.PROGRAM, package="qemu-system-x86")
BUSYBOX = Tool(program="busybox", package="busybox-static")
BOOT_DIRECTORY = Path("/boot")
GET_KERNEL = (
    "apt-get download linux-image-VERSION && dpkg -x linux-image-*.deb kernel && depmod -b kernel VERSION, "
    "then --kernel kernel/boot/vmlinuz-VERSION"
)


@dataclass(kw_only=True)
class QemuGuest(Guest):
    """A QEMU guest. Its disks are virtio disks, plugged and unplugged through QEMU's monitor."""

    monitor: Monitor
    made: int = 0
    nodes: dict[str, str] = field(default_factory=dict)

    def plug(self, drive: Drive) -> Disk:
        """Plug a virtio disk on the image, with direct I/O on the host if the image's file system supports it."""
        image = drive.image
        if drive.socket is not None and not image.exists():
            raise UnsupportedError(
                "QEMU reads a virtual disk's file, which only root can be given",
                where="--on qemu",
                hint="use sudo, or User-Mode Linux (--on uml)",
            )
        self.made += 1
        serial = f"fslab{self.made}"
        direct = self._open_image(serial, image, direct=True) or self._open_image(serial, image, direct=False)
        device = {"driver": "virtio-blk-pci", "drive": serial, "id": serial, "serial": serial}
        self.monitor.ask("device_add", device)
        facts = {"image": str(image), "image_direct_io": direct == "direct"}
        return Disk(serial=serial, rotational=drive.rotational, facts=facts)

    def unplug(self, disk: Disk) -> None:
        """Unplug the disk and wait until the guest's kernel has released it. GuestError at the timeout."""
        self.monitor.ask("device_del", {"id": disk.serial})
        self.monitor.wait_for("DEVICE_DELETED", str(disk.serial))
        self.monitor.ask("blockdev-del", {"node-name": disk.serial})

    def answers(self, within_s: float) -> bool:
        """Return whether QEMU answers. A hung kernel is noticed only when a request times out."""
        try:
            return bool(self.monitor.ask("query-status", timeout_s=within_s)["running"])
        except GuestError:
            return False

    def end(self) -> None:
        """Kill the guest, remove its directory and close the monitor. Can be called twice."""
        super().end()
        self.monitor.close()

    def _open_image(self, node: str, image: Path, *, direct: bool) -> str | None:
        cache = {"direct": direct, "no-flush": False}
        file = {"driver": "file", "filename": str(image), "cache": cache, "discard": "ignore"}
        arguments = {"driver": "raw", "node-name": node, "cache": cache, "discard": "ignore", "file": file}
        try:
            self.monitor.ask("blockdev-add", arguments)
        except GuestError:
            if not direct:
                raise
            return None  # a file system without O_DIRECT, such as tmpfs before Linux 6.6
        return "direct" if direct else "cached"


class Qemu(_guests.GuestKind):
    """Boots a distribution's kernel in a few seconds, as any user."""

    summary = "QEMU: a distribution's kernel in a virtual machine, without root"
    device = "/dev/vdN"
    boot_s = 5.0
    trial_s = 2.0
    emulated_factor = 15.0  # seen: a factor of 5 in loops, and of 17 in the start of a program
    tools = (EMULATOR, BUSYBOX, _guests.MODPROBE)

    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        """Check QEMU, a kernel with its modules, a static busybox and the host's programs that a guest runs."""
        needs = []
        if tools.find(command.PROGRAM) is None:
            needs.append(Need(what=f"{command.PROGRAM} is not installed", remedy=EMULATOR.remedy))
        if _kernel(spec) is None:
            needs.append(_no_kernel(spec))
        elif self.modules(spec) is None:
            what = f"no modules with a modules.dep found for {_kernel(spec)}"
            needs.append(
                Need(
                    what=what,
                    remedy="give their directory with --modules; to create modules.dep: depmod -b ROOT VERSION",
                )
            )
        if command.static_busybox() is None:
            needs.append(Need(what="no static busybox is installed", remedy=BUSYBOX.remedy))
        return (*needs, *self.missing_in_common(spec))

    def emulated(self, spec: MachineSpec) -> bool | None:  # noqa: ARG002
        known = command.known_accelerator(tools.find(command.PROGRAM) or "")
        return None if known is None else known == command.TCG

    def cpus(self, spec: MachineSpec) -> int:
        return command.cpus(command.TCG if self.emulated(spec) is not False else command.KVM)

    def modules(self, spec: MachineSpec) -> Path | None:
        """Return the one in ``spec``, or ROOT/lib/modules/VER for a kernel ROOT/boot/vmlinuz-VER.

        Without such a directory below the kernel's root, use the host's.
        """
        kernel = _kernel(spec)
        if spec.modules is not None:
            return _guests.named_modules(spec)
        if kernel is None:
            return None
        root = kernel.parent.parent
        roots = [root / "lib/modules", root / "usr/lib/modules", MODULES]
        found = [root / _release(kernel) for root in roots]
        return next((path for path in found if (path / "modules.dep").is_file()), None)

    def plan(self, spec: MachineSpec) -> tuple[str, ...]:
        """Return the command line of the guest for a host without KVM."""
        memory = _guests.memory_bytes(spec) >> 20
        argv = command.machine_argv(command.PROGRAM, command.TCG, memory, spec.kernel or "KERNEL", "INITRD")
        return (*argv, "-append", command.CONSOLE, *command.devices_argv("DIRECTORY", "console", "FD", "FD"))

    def boot(self, boot: Boot) -> QemuGuest:
        """Boot a guest with the host's root read-only and ``boot.directory`` shared."""
        spec = boot.spec
        self.check_bootable(spec)
        kernel, directory, busybox = _kernel(spec), self.modules(spec), command.static_busybox()
        if kernel is None or directory is None or busybox is None:
            raise AssertionError("nothing was missing a moment ago")
        program, initrd = str(tools.find(command.PROGRAM)), boot.directory / "initrd"
        command.write_initramfs(initrd, directory, boot.init, busybox)
        accelerator = command.accelerator(program, str(kernel), str(initrd), boot.mark)
        line, lines_end = socket.socketpair()
        monitor, monitors_end = socket.socketpair()
        named = {"fslab_run": boot.directory, "fslab_modules": directory, "fslab_link": "fslab"}
        environment = " ".join(kinds.option(name, value) for name, value in named.items())
        argv = [
            *command.machine_argv(
                program, accelerator, _guests.memory_bytes(spec) >> 20, str(kernel), str(initrd)
            ),
            "-append",
            f"{command.CONSOLE} loglevel=7 {environment}",
            *command.devices_argv(
                str(boot.directory), guest.CONSOLE, str(lines_end.fileno()), str(monitors_end.fileno())
            ),
        ]
        with lines_end, monitors_end, closed_after(guest.open_console(boot.directory)) as console:
            child = proc.start(
                argv, output=console, inherit=(lines_end.fileno(), monitors_end.fileno()), cwd=boot.directory,
                env={boot.mark[0]: boot.mark[1]},
            )  # fmt: skip
        facts = {
            "machine": self.name,
            "accelerator": accelerator,
            "memory": spec.memory or kinds.DEFAULT_MEMORY,
            "emulator": tools.version(EMULATOR),
        }
        return guest.booted(
            QemuGuest(directory=boot.directory, child=child, line=line, facts=facts, monitor=Monitor(monitor))
        )


def _no_kernel(spec: MachineSpec) -> Need:
    if spec.kernel is None:
        return Need(what="no readable kernel with modules in /boot", remedy=GET_KERNEL)
    if Path(spec.kernel).expanduser().exists():
        return Need(
            what=f"{spec.kernel} is not a file that you can read", remedy="chmod +r, or use a copy of it"
        )
    return Need(what=f"{spec.kernel} does not exist", remedy=f"check the path; to get a kernel: {GET_KERNEL}")


def _kernel(spec: MachineSpec) -> Path | None:
    """Return the kernel named in ``spec``, else the newest in /boot that is readable and has modules, else None."""
    if spec.kernel is not None:
        named = Path(spec.kernel).expanduser().resolve()
        return named if named.is_file() and os.access(named, os.R_OK) else None
    found = [path for path in BOOT_DIRECTORY.glob("vmlinuz-*") if os.access(path, os.R_OK)]
    usable = {_release(path): path for path in found if (MODULES / _release(path)).is_dir()}
    return usable[max(usable, key=release_key)] if usable else None


def _release(kernel: Path) -> str:
    return re.sub(r"^(vmlinuz|bzImage|vmlinux)-", "", kernel.name)
