"""The machine that is planned for: this one, or another one that a description describes (``description`` of ``fslab
doctor --json``). Only reads.

``here()`` is the only way in which the plan and its checks read a machine. Trials always run on this one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from fslab.cell import Frozen, MachineSpec
from fslab.errors import FslabError, NoSpaceError
from fslab.machine import facts
from fslab.machine.kinds import DEFAULT_MEMORY, REGISTRY, Machine, Need
from fslab.storage import images, overwrite_check
from fslab.system import cgroup, disk_server, distributions, memory, rights, tools, users
from fslab.system.kernel import Kernel
from fslab.system.tools import Tool
from fslab.units import counted, format_size, parse_size


class DescribedKind(Frozen):
    """One kind of machine (host, uml, qemu). ``missing``: why it cannot be used; else all other fields are known.

    ``filesystems``: types of mount. ``modules``: those of layouts, loadable or built in. ``emulated``: every
    instruction is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    missing: tuple[str, ...] = ()
    kernel: str | None = None
    cpus: int | None = Field(None, ge=1)
    emulated: bool = False
    filesystems: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> "DescribedKind":
        if not self.missing and (self.kernel is None or self.cpus is None):
            raise ValueError("has neither 'kernel' and 'cpus' nor 'missing'")
        return self


class MachineDescription(Frozen):
    """A machine. ``kinds``: by name; a kind that is not there cannot be used. ``free_bytes``: of the file system for
    images, and of memory file systems (None: not checked). ``programs_missing``: those that are not installed.
    ``limits_memory``: whether fslab can limit the memory of a tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    memory_bytes: int = Field(ge=1 << 20)
    distribution: str | None = None
    root: bool
    limits_memory: bool = False
    programs_missing: tuple[str, ...]
    images_free_bytes: int | None = Field(None, ge=0)
    memory_files_free_bytes: int | None = Field(None, ge=0)
    kinds: dict[str, DescribedKind]

    @property
    def words(self) -> str:
        """CPUs, memory and kernel in words."""
        host = self.kinds["host"]
        return f"{counted(host.cpus or 1, 'CPU')}, {format_size(self.memory_bytes)}, Linux {host.kernel}"

    @model_validator(mode="after")
    def _has_host(self) -> "MachineDescription":
        if "host" not in self.kinds or self.kinds["host"].missing:
            raise ValueError("'kinds' has no 'host' that can be used")
        return self


class Surroundings:
    """This machine."""

    described = False

    def missing_for_mounts(self) -> str | None:
        """Return what fslab lacks to mount devices, such as ``root``; None if it lacks nothing."""
        return rights.missing_for_mounts()

    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        """Return what is missing to use this kind of machine."""
        return _kind(spec).missing(spec)

    def kernel(self, spec: MachineSpec) -> Kernel | None:
        """Return what the kernel of this kind of machine has; None if that is unknown."""
        return _kind(spec).kernel(spec)

    def emulated(self, spec: MachineSpec) -> bool | None:
        """Return whether every instruction is emulated there; None: that is not known before it is booted."""
        return _kind(spec).emulated(spec)

    def facts(self, spec: MachineSpec) -> dict[str, Any]:
        """Return the facts of the machine (``machine.facts``); for a guest, those that it will have."""
        found = facts.gather()
        if not _kind(spec).guest:
            return found | limit_of(spec)
        kernel = self.kernel(spec)
        return found | {
            "cpus": _kind(spec).cpus(spec),
            "kernel": kernel.release if kernel else None,
            "memory_bytes": _guest_memory(spec),
            "emulated": self.emulated(spec),
        }

    def memory_bytes(self) -> int | None:
        """Return the memory of the host."""
        return memory.total_bytes()

    def limits_memory(self) -> bool:
        """Return whether fslab can limit the memory of a tool on the host."""
        return cgroup.may_limit_memory()

    def has_program(self, name: str) -> bool:
        """Return whether a program is installed."""
        return tools.find(name) is not None

    def version(self, tool: Tool) -> str | None:
        """Return the version of a program; None if it is not known."""
        return tools.version(tool)

    def family(self) -> distributions.Distribution | None:
        """Return the distribution's package manager; None if it is unknown."""
        return distributions.here()

    def serves_disks(self) -> bool:
        """Return whether the host can have virtual disks."""
        try:
            disk_server.check_supported()
        except FslabError:
            return False
        return self.missing_for_mounts() is None

    def check_user(self, name: str) -> None:
        """Raise UnsupportedError if the machine has no user of that name."""
        users.account(name)

    def check_guest(self, spec: MachineSpec) -> None:
        """Raise NoSpaceError if a guest cannot be booted for lack of space."""
        _kind(spec).check_room(spec)

    def filesystem_of(self, place: Path) -> tuple[int, Path]:
        """Return a number that places on one file system share, and the nearest existing directory."""
        existing = next(each for each in (place, *place.parents) if each.exists())
        return existing.stat().st_dev, existing

    def in_memory(self, place: Path) -> bool:
        """Return whether files in ``place`` take memory."""
        return memory.holds(place)

    def check_space(self, place: Path, size_bytes: int) -> None:
        """Raise NoSpaceError if ``place`` does not have this much free space."""
        images.check_room(place, size_bytes)

    def check_place(self, path: str) -> None:
        """Raise UsageError or UnsafeError unless fslab can work in this directory."""
        images.existing_directory(path)

    def check_device(self, path: str) -> None:
        """Raise UnsafeError unless this is a block device."""
        overwrite_check.block_device(path)

    def check_memory(self, size_bytes: int) -> None:
        """Raise NoSpaceError if that exceeds three quarters of the available memory."""
        images.check_memory(size_bytes)

    def check_memory_files(self, size_bytes: int) -> None:
        """Raise NoSpaceError unless memory file systems have this much free space."""
        memory.check_room(size_bytes)


@dataclass(frozen=True, slots=True)
class Described(Surroundings):
    """Another machine. Its users, directories and devices are not known, so that none is missing."""

    machine: MachineDescription
    described = True

    def missing_for_mounts(self) -> str | None:
        return None if self.machine.root else "root"

    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        known = self.machine.kinds.get(spec.type)
        if known is None:
            return (Need(what=f"the machine's description has no '{spec.type}'"),)
        return tuple(Need(what=what) for what in known.missing)

    def kernel(self, spec: MachineSpec) -> Kernel | None:
        known = self._of(spec)
        if known is None or known.kernel is None:
            return None
        return Kernel(
            release=known.kernel, filesystems=frozenset(known.filesystems), modules=frozenset(known.modules)
        )

    def emulated(self, spec: MachineSpec) -> bool | None:
        known = self._of(spec)
        return known is not None and known.emulated

    def facts(self, spec: MachineSpec) -> dict[str, Any]:
        known, guest = self._of(spec), _kind(spec).guest
        return {
            "cpus": known.cpus if known else None,
            "kernel": known.kernel if known else None,
            "memory_bytes": _guest_memory(spec) if guest else self.machine.memory_bytes,
            "distribution": self.machine.distribution,
            "emulated": self.emulated(spec),
        } | ({} if guest else limit_of(spec))

    def memory_bytes(self) -> int | None:
        return self.machine.memory_bytes

    def limits_memory(self) -> bool:
        return self.machine.limits_memory

    def has_program(self, name: str) -> bool:
        return name not in self.machine.programs_missing

    def version(self, tool: Tool) -> str | None:  # noqa: ARG002
        return None

    def family(self) -> distributions.Distribution | None:
        return None

    def serves_disks(self) -> bool:
        return self.machine.root and self.has_program(disk_server.TOOL.program)

    def check_user(self, name: str) -> None:  # noqa: ARG002
        return

    def check_guest(self, spec: MachineSpec) -> None:
        if _kind(spec).memory_file:
            self.check_memory_files(_guest_memory(spec))

    def filesystem_of(self, place: Path) -> tuple[int, Path]:
        return 0, place

    def in_memory(self, place: Path) -> bool:  # noqa: ARG002
        return False

    def check_space(self, place: Path, size_bytes: int) -> None:
        self._check(size_bytes, self.machine.images_free_bytes, str(place))

    def check_place(self, path: str) -> None:  # noqa: ARG002
        return

    def check_device(self, path: str) -> None:  # noqa: ARG002
        return

    def check_memory(self, size_bytes: int) -> None:
        self._check(size_bytes, self.machine.memory_bytes * 3 // 4, "3/4 of its memory")

    def check_memory_files(self, size_bytes: int) -> None:
        self._check(size_bytes, self.machine.memory_files_free_bytes, "its memory file systems")

    def _of(self, spec: MachineSpec) -> DescribedKind | None:
        return self.machine.kinds.get(spec.type)

    @staticmethod
    def _check(size_bytes: int, free_bytes: int | None, where: str) -> None:
        if free_bytes is not None and size_bytes > free_bytes:
            raise NoSpaceError(
                f"needs {format_size(size_bytes)}, and the described machine has {format_size(free_bytes)}",
                where=where,
                hint="choose smaller sizes",
            )


def limit_of(spec: MachineSpec) -> dict[str, Any]:
    """Return the facts of the host that a limit of the tool's memory changes."""
    return {} if spec.memory is None else {"memory_bytes": parse_size(spec.memory)}


def _kind(spec: MachineSpec) -> Machine:
    return REGISTRY.get(spec.type)


def _guest_memory(spec: MachineSpec) -> int:
    return parse_size(spec.memory or DEFAULT_MEMORY)


_DESCRIBED: ContextVar[Described | None] = ContextVar("described", default=None)


def here() -> Surroundings:
    """Return the machine that is planned for."""
    return _DESCRIBED.get() or Surroundings()


@contextmanager
def planned_for(machine: MachineDescription | None) -> Iterator[None]:
    """Plan for a described machine during the block. None: for this one."""
    token = _DESCRIBED.set(None if machine is None else Described(machine))
    try:
        yield
    finally:
        _DESCRIBED.reset(token)
