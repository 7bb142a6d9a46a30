"""The interface of a machine: the place where trials run. One file per kind.

A guest has its own kernel, which may have file systems and layouts that the host's kernel lacks. It needs no root.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fslab.cell import MachineSpec
from fslab.errors import UnsupportedError
from fslab.machine.guest import Guest
from fslab.registry import Registry
from fslab.system.kernel import Kernel
from fslab.system.tools import Tool

DEFAULT_MEMORY = "1g"
# Not kinds. For each stack, the first machine that can build it; for all stacks together, the best one, or guest.
AUTO, BEST, GUEST = "auto", "best", "guest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """Something that is missing, and a command or advice that provides it (None if there is none)."""

    what: str
    remedy: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Boot:
    """The parameters of booting a guest.

    ``directory`` is new and shared with the guest. ``mark`` is set in the environment of the guest's processes on the
    host. ``init`` is the first program that the guest runs, with its arguments.
    """

    spec: MachineSpec
    directory: Path
    mark: tuple[str, str]
    init: Sequence[str]


class Machine(ABC):
    """A kind of machine. The registry sets ``name`` from the file's name.

    ``guest``: it has to be booted. ``device``: the placeholder for its disks in plans. ``tools``: the programs that it
    needs on the host. ``memory_file``: its memory is a file in a memory file system. ``boot_s``, ``trial_s``: about how
    long it takes to boot, and how much longer a trial takes there; ``emulated_factor``: how many times as long both and
    the work take if it is ``emulated``; ``least_memory_bytes``: scaling leaves a guest at least this much memory.
    """

    name: str
    summary: ClassVar[str]
    guest: ClassVar[bool] = True
    memory_file: ClassVar[bool] = False
    device: ClassVar[str] = ""
    tools: ClassVar[tuple[Tool, ...]] = ()
    boot_s: ClassVar[float] = 0.0
    trial_s: ClassVar[float] = 0.0
    emulated_factor: ClassVar[float] = 1.0
    least_memory_bytes: ClassVar[int] = 512 << 20

    @abstractmethod
    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        """Return what is missing to run it on this host. Only checks; boots nothing."""

    def check_room(self, spec: MachineSpec) -> None:  # noqa: ARG002
        """Raise NoSpaceError if there is not enough space to boot it now."""
        return

    def emulated(self, spec: MachineSpec) -> bool | None:  # noqa: ARG002
        """Return whether every instruction is emulated there; None: that is not known before it is booted."""
        return False

    def cpus(self, spec: MachineSpec) -> int:  # noqa: ARG002
        """Return how many CPUs a guest has."""
        return 1

    @abstractmethod
    def kernel(self, spec: MachineSpec) -> Kernel | None:
        """Return what its kernel has, by its module lists; None if that is unknown."""

    @abstractmethod
    def boot(self, boot: Boot) -> Guest:
        """Boot a guest and return it when it accepts requests. GuestError, ToolMissingError, NoSpaceError."""

    @abstractmethod
    def plan(self, spec: MachineSpec) -> tuple[str, ...]:
        """Return the command that boots it, with placeholders in capitals. Pure."""


def option(name: str, value: object) -> str:
    """Return ``NAME=VALUE`` as a word of a kernel's command line, in double quotes if it contains spaces.

    UnsupportedError for a value with a double quote, which cannot be quoted there, or with a newline.
    """
    text = str(value)
    if '"' in text or "\n" in text:
        raise UnsupportedError(
            "a path with a double quote or newline cannot be given to a kernel", where=text
        )
    return f'{name}="{text}"' if any(each.isspace() for each in text) else f"{name}={text}"


REGISTRY: Registry[Machine] = Registry("machine", __name__, Machine, group="fslab.machines")
