"""The command line of QEMU, and its accelerator on this host: KVM if a guest really boots with it, otherwise TCG.

The existence of /dev/kvm does not prove it: in a virtual machine, KVM can fail at the first instruction.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from fslab import texts
from fslab.errors import FslabError
from fslab.machine.kinds._initramfs import SELF_TEST
from fslab.system import files, paths, proc, sysfs

PROGRAM = "qemu-system-x86_64"
KVM, TCG = "kvm", "tcg"
SELF_TEST_LIMIT_S = 5.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# For emulation not `max`: it makes copies in memory five to nine times as slow (rep movs).
CPUS = {KVM: "host", TCG: "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt"}
CONSOLE = "console=ttyS0 panic=-1 mitigations=off nokaslr random.trust_cpu=on"


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
        remembered = texts.json_of(_memory().read_text("utf-8"))
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
