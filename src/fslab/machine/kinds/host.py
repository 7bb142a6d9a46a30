"""The machine on which fslab runs, with its running kernel."""

import platform

from fslab.cell import MachineSpec
from fslab.errors import UsageError
from fslab.machine import kinds
from fslab.machine.guest import Guest
from fslab.machine.kinds import Boot, Need
from fslab.system import kernel, sysfs
from fslab.system.kernel import Kernel


class Host(kinds.Machine):
    """No guest: trials run in this process."""

    summary = "this machine, with its running kernel"
    guest = False
    least_memory_bytes = 128 << 20

    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:  # noqa: ARG002
        """Return nothing: the host is always available."""
        return ()

    def kernel(self, spec: MachineSpec) -> Kernel | None:  # noqa: ARG002
        """Return what the running kernel has now, and what it has as modules in its modules directory."""
        release = platform.release()
        listed = kernel.read_modules(kernel.MODULES / release)
        return Kernel(
            release=release,
            filesystems=listed.filesystems | kernel.known_filesystems(),
            modules=listed.modules | {path.name for path in (sysfs.SYS / "module").glob("*")},
        )

    def boot(self, boot: Boot) -> Guest:
        raise UsageError("the host cannot be booted as a guest", where=boot.spec.type)

    def plan(self, spec: MachineSpec) -> tuple[str, ...]:  # noqa: ARG002
        return ()
