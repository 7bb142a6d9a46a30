"""What all guests have in common: a kernel that a study or a user names, or that is installed, and the host's programs.

Whatever the kernel, the root file system is the host's, read-only. Root boots no kernel or module that another user can
change: a kernel of User-Mode Linux runs in a process of the host, and QEMU shows the host's files to its guest.
"""

import os
import sys
from abc import abstractmethod
from itertools import chain
from pathlib import Path

from fslab.cell import MachineSpec
from fslab.errors import UnsupportedError
from fslab.machine.kinds import DEFAULT_MEMORY, Machine, Need
from fslab.system import kernel, path_owners, tools
from fslab.system.kernel import Kernel
from fslab.system.tools import Tool
from fslab.units import parse_size

# Loads kernel modules in the guest. Containers and small virtual machines often lack it.
MODPROBE = Tool(program="modprobe", package="kmod")
_closed: set[tuple[MachineSpec, Path | None]] = set()


class GuestKind(Machine):
    """A kind of guest. ``tools``: its own programs, with those of the host that every guest runs."""

    @abstractmethod
    def modules(self, spec: MachineSpec) -> Path | None:
        """Return the modules directory; None if there is none."""

    def kernel(self, spec: MachineSpec) -> Kernel | None:
        directory = self.modules(spec)
        return kernel.read_modules(directory) if directory else None

    def check_bootable(self, spec: MachineSpec) -> None:
        """Raise UnsupportedError if anything is missing, or if another user can change what would be booted."""
        if needs := (*self.missing(spec), *changeable(spec, self.modules(spec))):
            raise UnsupportedError(needs[0].what, where=f"--on {self.name}", hint=needs[0].remedy)

    def missing_in_common(self, spec: MachineSpec) -> tuple[Need, ...]:
        """Return what is missing for any guest: a kernel that no other user can change, and the programs that it runs,
        which are tested with access(2) as in hostfs. What passed once is not checked again, because many stacks of a
        plan have one kernel."""
        needs: tuple[Need, ...] = ()
        named = (spec, self.modules(spec))
        if named not in _closed and not (needs := changeable(*named)):
            _closed.add(named)
        if not os.access(sys.executable, os.X_OK):
            needs += (Need(what=f"this user may not execute {sys.executable}, which the guest runs"),)
        if tools.find(MODPROBE.program) is None:
            what = "modprobe is not installed, which the guest loads its modules with"
            needs += (Need(what=what, remedy=MODPROBE.remedy),)
        return needs


def memory_bytes(spec: MachineSpec) -> int:
    """Return the memory of a guest."""
    return parse_size(spec.memory or DEFAULT_MEMORY)


def named_modules(spec: MachineSpec) -> Path | None:
    """Return the modules directory that ``spec`` names, or the newest below it; None if it has none."""
    directory = Path(spec.modules or "").expanduser().resolve()
    return directory if (directory / "modules.dep").is_file() else kernel.newest_modules(directory)


def changeable(spec: MachineSpec, directory: Path | None) -> tuple[Need, ...]:
    """Return a need if a user other than root can change the named kernel or one of its modules, otherwise nothing.

    ``directory``: of the modules, None if there are none. Checked only when fslab runs as root.
    """
    named = [Path(each).expanduser() for each in (spec.kernel, spec.modules) if each is not None]
    if not named or os.geteuid() != 0:
        return ()
    files = chain(named, kernel.module_files(directory) if directory else ())
    try:
        found = path_owners.stranger_in(files, groups=path_owners.Groups.WITHOUT_OTHERS)
        why = found and found[1]
    except OSError as error:
        why = f"it is not known who can write to {error.filename} ({error.strerror})"
    remedy = "use a copy where only root can write, or chown, chmod go-w, setfacl -b"
    return (Need(what=f"root does not boot what others can change: {why}", remedy=remedy),) if why else ()
