"""User-Mode Linux: a Linux kernel that runs as a process of any user. Disks are image files or virtual disks.

The process is pinned to one CPU: each system call of the guest switches between two processes, and across CPUs such a
switch costs three to four times as much.

Before 6.13, such a kernel passes 2696 bytes of registers to the host. The host accepts only a complete state
(xstateregs_set in arch/x86/kernel/fpu/regset.c), 11008 bytes with AMX. A small preloaded library completes it.
"""

import hashlib
import os
import shutil
import socket
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path

from fslab.cell import MachineSpec
from fslab.errors import GuestError, ToolFailedError, UnsupportedError
from fslab.machine import guest, kinds
from fslab.machine.guest import Disk, Guest
from fslab.machine.kinds import Boot, Need, _guests
from fslab.storage import Drive
from fslab.system import files, memory, paths, proc, sysfs, tools, trees
from fslab.system.files import closed_after, opened
from fslab.system.kernel import newest_modules
from fslab.system.tools import Tool

PROGRAM = "linux.uml"
KERNEL = Tool(program=PROGRAM, package="user-mode-linux")
TASKSET = Tool(program="taskset", package="util-linux")
UML_MODULES = "lib/uml/modules"
UMID = "uml"
# The kernel reserves ubda for a root file system on a disk. A hostfs root does not need it.
LETTERS = "bcdefghijklmnop"
# Devices for virtual disks, created at boot. When the guest binds the driver, it connects to the server's socket
# (arch/um/drivers/virtio_uml.c).
SOCKETS = 8
SOCKET, VIRTIO, VIRTIO_BLOCK = "virtio-", "virtio-uml", 2
_HEADER = struct.Struct("=III")
_MAGIC, _VERSION, _MOST_BYTES = 0xCAFEBABE, 2, 512
_CONSOLE_LIMIT_S = 20.0
XSTATE_SOURCE = Path(__file__).parent / "xstate.c"
XSTATE_LIBRARY = "xstate.so"
COMPILER = Tool(program="cc", package="gcc")
FOREIGN_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(kw_only=True)
class UmlGuest(Guest):
    """A guest in User-Mode Linux.

    An image file is a ubd device, plugged and unplugged through the management console. A virtual disk is a virtio
    device whose driver the guest binds: it passes on requests unchanged, many at once, and flushes.
    """

    plugged: dict[str, Path] = field(default_factory=dict)

    def plug(self, drive: Drive) -> Disk:
        """Plug the first free device, on the image or the server's socket. UnsupportedError if none is free."""
        return (
            self._plug_image(drive.image) if drive.socket is None else self._plug_socket(drive, drive.socket)
        )

    def _plug_socket(self, drive: Drive, socket: Path) -> Disk:
        free = (
            number for number in range(SOCKETS) if not (self.directory / f"{SOCKET}{number}").is_symlink()
        )
        number = next(free, None)
        if number is None:
            raise UnsupportedError(f"User-Mode Linux has at most {SOCKETS} virtual disks", hint="use fewer")
        with self.changing_files():
            (self.directory / f"{SOCKET}{number}").symlink_to(socket)
        return Disk(
            serial=drive.serial, bind=f"{VIRTIO}.{number}", rotational=drive.rotational, discard=drive.discard,
            facts={"vhost_user": True},
        )  # fmt: skip

    def _plug_image(self, image: Path) -> Disk:
        if any(character in str(image) for character in ",:"):
            raise UnsupportedError(
                "User-Mode Linux cannot use an image with a comma or colon in its path", where=str(image)
            )
        letter = next((each for each in LETTERS if each not in self.plugged), None)
        if letter is None:
            raise UnsupportedError(f"User-Mode Linux has at most {len(LETTERS)} disks")
        self._command(f"config ubd{_index(letter)}={image}")
        self.plugged[letter] = image
        # A flush ends at the image file; it does not reach the host's disk (arch/um/drivers/ubd_kern.c).
        facts = {"image": str(image), "flush": "ends in the image file's page cache on the host"}
        return Disk(device=f"/dev/ubd{letter}", facts=facts)

    def unplug(self, disk: Disk) -> None:
        """Unplug the disk. GuestError if it is still in use; such a guest must be ended."""
        if disk.bind is not None:  # the guest has unbound it
            with self.changing_files():
                trees.remove(self.directory / f"{SOCKET}{disk.bind.rpartition('.')[2]}")
            return
        letter = str(disk.device)[-1]
        self._command(f"remove ubd{_index(letter)}")
        self.plugged.pop(letter, None)

    def answers(self, within_s: float) -> bool:
        """Return whether the management console answers. Its interrupt handler runs even while all programs wait."""
        try:
            ask_console(self.directory / UMID / "mconsole", "version", timeout_s=within_s)
        except GuestError:
            return False
        return True

    def _command(self, text: str) -> None:
        ask_console(self.directory / UMID / "mconsole", text)


class Uml(_guests.GuestKind):
    """Boots in about a second, as any user."""

    memory_file = True
    summary = "User-Mode Linux: a kernel in a process, without root"
    device = "/dev/ubdN"
    boot_s = 2.0
    least_memory_bytes = 192 << 20
    trial_s = 1.0
    tools = (KERNEL, TASKSET, _guests.MODPROBE)

    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        """Check the CPU architecture, the kernel, its modules and the programs that it needs."""
        needs = []
        if os.uname().machine != "x86_64":
            needs.append(Need(what="User-Mode Linux needs an x86-64 machine"))
        if _program(spec) is None:
            needs.append(_no_program(spec))
        elif spec.modules is not None and self.modules(spec) is None:
            needs.append(
                Need(
                    what=f"{spec.modules} is not a modules directory",
                    remedy="give a directory that contains modules.dep, or whose subdirectory does",
                )
            )
        needs += self.missing_in_common(spec)
        if tools.find(TASKSET.program) is None:
            needs.append(Need(what="taskset is not installed", remedy=TASKSET.remedy))
        if xstate_needed() and not xstate_available():
            needs.append(Need(what="on this CPU, the first boot needs a C compiler", remedy=COMPILER.remedy))
        return tuple(needs)

    def check_room(self, spec: MachineSpec) -> None:
        """Raise NoSpaceError if no memory file system has space for the file with the guest's memory."""
        memory.directory(_guests.memory_bytes(spec))

    def modules(self, spec: MachineSpec) -> Path | None:
        """Return the one in ``spec``, or that of the installed kernel.

        None for a user's own kernel without one: it may need no modules.
        """
        if spec.modules is not None:
            return _guests.named_modules(spec)
        program = _program(spec)
        return newest_modules(Path(program).resolve().parent.parent / UML_MODULES) if program else None

    def plan(self, spec: MachineSpec) -> tuple[str, ...]:
        return (*_argv(spec, program=spec.kernel or PROGRAM, cpu="CPU"), "fslab_run=DIRECTORY")

    def boot(self, boot: Boot) -> UmlGuest:
        """Boot a guest with the host's root read-only and ``boot.directory`` shared."""
        spec = boot.spec
        self.check_bootable(spec)
        environment = {
            boot.mark[0]: boot.mark[1],
            **variables(boot.directory, _guests.memory_bytes(spec)),
        }
        cpu = max(os.sched_getaffinity(0))
        ours, theirs = socket.socketpair()
        with theirs, closed_after(guest.open_console(boot.directory)) as console:
            argv = [
                *_argv(spec, program=str(_program(spec)), cpu=str(cpu)),
                f"con0=null,fd:{console}", f"con1=fd:{theirs.fileno()},fd:{theirs.fileno()}",
                kinds.option("init", boot.init[0]), kinds.option("fslab_run", boot.directory),
                kinds.option("fslab_modules", self.modules(spec) or "none"),
                "fslab_link=/dev/tty1", "--", *boot.init[1:],
            ]  # fmt: skip
            child = proc.start(
                argv, output=console, inherit=(console, theirs.fileno()), cwd=boot.directory, env=environment
            )
        facts = {"machine": self.name, "memory": spec.memory or kinds.DEFAULT_MEMORY, "cpu_pinned": cpu}
        return guest.booted(UmlGuest(directory=boot.directory, child=child, line=ours, facts=facts))


def variables(directory: Path, memory_bytes: int) -> dict[str, str]:
    """Return the environment of a kernel that is started in ``directory``: where its memory is, and what this CPU
    needs."""
    preload = {"LD_PRELOAD": install_xstate(directory)} if xstate_needed() else {}
    return {"TMPDIR": str(memory.directory(memory_bytes)), **preload}


def _argv(spec: MachineSpec, *, program: str, cpu: str) -> list[str]:
    # panic=-1 noreboot: a panic ends the process. loglevel=7: the kernel log is the record of what happened.
    return [
        "taskset", "--cpu-list", cpu, program, f"mem={spec.memory or kinds.DEFAULT_MEMORY}", f"umid={UMID}",
        "uml_dir=.", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "con=null",
        "panic=-1", "noreboot", "loglevel=7",
        *(f"virtio_uml.device={SOCKET}{number}:{VIRTIO_BLOCK}" for number in range(SOCKETS)),
    ]  # fmt: skip


def _index(letter: str) -> int:
    return ord(letter) - ord("a")


def _no_program(spec: MachineSpec) -> Need:
    if spec.kernel is None:
        return Need(what=f"{PROGRAM} is not installed", remedy=KERNEL.remedy)
    if Path(spec.kernel).expanduser().is_file():
        return Need(
            what=f"{spec.kernel} cannot be executed", remedy="use a kernel built with ARCH=um, and chmod +x"
        )
    return Need(
        what=f"{spec.kernel} does not exist",
        remedy="check the path; without --kernel, the installed kernel of User-Mode Linux is used",
    )


def _program(spec: MachineSpec) -> str | None:
    if spec.kernel is None:
        return tools.find(PROGRAM)
    return shutil.which(str(Path(spec.kernel).expanduser().resolve()))


def ask_console(path: Path, command: str, *, timeout_s: float = _CONSOLE_LIMIT_S) -> str:
    """Return the console's reply to a command. GuestError if it reports an error or does not answer."""
    data = command.encode()
    if len(data) >= _MOST_BYTES:
        raise GuestError(f"a console command has at most {_MOST_BYTES - 1} bytes", where=command)
    try:
        with (
            opened(path.parent, os.O_PATH | os.O_DIRECTORY) as directory,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client,
        ):
            client.settimeout(timeout_s)
            # Through the descriptor, because a socket's path has at most 107 bytes.
            client.connect(f"/proc/self/fd/{directory}/{path.name}")
            # An abstract name, for the reply. Any user can send to it; what is connected gets only what its peer sends.
            client.bind("")
            client.send(_HEADER.pack(_MAGIC, _VERSION, len(data)) + data.ljust(_MOST_BYTES, b"\0"))
            return _reply(client, command)
    except OSError as error:
        raise GuestError(f"the guest's management console does not answer: {error}", where=command) from error


def _reply(client: socket.socket, command: str) -> str:
    said, more = b"", 1
    while more:
        answer = client.recv(4096)
        failed, more, length = _HEADER.unpack_from(answer)
        said += answer[_HEADER.size : _HEADER.size + length].rstrip(b"\0")
        if failed:
            text = said.decode("utf-8", "replace").strip()
            raise GuestError(f"the guest's management console reports an error: {text}", where=command)
    return said.decode("utf-8", "replace")


def xstate_needed(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether this CPU has registers that older versions of User-Mode Linux do not support (AMX, APX)."""
    return bool({"amx_tile", "apx"} & set((sysfs.field(cpuinfo, "flags") or "").split()))


def xstate_available() -> bool:
    """Return whether the library is in the cache, or a C compiler can build it. Only checks."""
    return _is_ours(_kept_xstate()) or tools.find(COMPILER.program) is not None


def install_xstate(directory: Path) -> str:
    """Put the library into ``directory`` and return its name relative to it. It is built at most once per user.

    An absolute path can contain a space, which ends a name in LD_PRELOAD (ld.so(8)). ToolMissingError without a
    compiler; ToolFailedError, with the package to install, if the compiler is incomplete.
    """
    library, kept = directory / XSTATE_LIBRARY, _kept_xstate()
    if _is_ours(kept):
        shutil.copyfile(kept, library)
        return f"./{XSTATE_LIBRARY}"
    try:
        proc.run(
            [COMPILER.program, "-O2", "-shared", "-fPIC", "-nostdlib", "-o", str(library), str(XSTATE_SOURCE)]
        )
    except ToolFailedError as error:
        raise ToolFailedError(
            error.what,
            where=error.where,
            hint=f"check that {COMPILER.program!r} is a complete C compiler: " + COMPILER.remedy,
        ) from error
    _keep_xstate(library, kept)
    return f"./{XSTATE_LIBRARY}"


def _kept_xstate() -> Path:
    return paths.cache() / f"xstate-{hashlib.sha256(XSTATE_SOURCE.read_bytes()).hexdigest()[:16]}.so"


def _is_ours(library: Path) -> bool:
    """Return whether only this user can have written the library, which a process will load.

    Under sudo, the cache may belong to another user.
    """
    try:
        found, directory = library.lstat(), library.parent.stat()
    except OSError:
        return False
    alone = all(
        each.st_uid == os.geteuid() and not each.st_mode & FOREIGN_WRITE for each in (found, directory)
    )
    return alone and stat.S_ISREG(found.st_mode)


def _keep_xstate(library: Path, kept: Path) -> None:
    """Copy the library into the cache atomically. If that fails, the next boot compiles it again."""
    unfinished = kept.with_suffix(f".{os.getpid()}")
    try:
        files.make_directories(kept.parent, 0o700)
        if kept.parent.stat().st_uid != os.geteuid():
            return
        shutil.copyfile(library, unfinished)
        unfinished.chmod(0o600)
        unfinished.rename(kept)
    except OSError:
        unfinished.unlink(missing_ok=True)
