"""The contract of a machine: where trials can run. One file per kind.

A guest has its own kernel, with file systems and layouts that the host's kernel may lack, and needs no root.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fslab.cell import MachineSpec
from fslab.errors import UnsupportedError
from fslab.machine.guest import Guest
from fslab.machine.modules import Kernel
from fslab.registry import Registry
from fslab.system.tools import Tool

DEFAULT_MEMORY = "1g"
# Not a machine but a wish: the first one that can build the stack.
AUTO = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """Something that is missing, and the command that gets it (None where there is none)."""

    what: str
    remedy: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Boot:
    """What a guest is booted with.

    ``directory`` is new and shared with the guest; ``mark`` is set in the environment of its processes;
    ``init`` is the program that the guest runs as its first, with its arguments.
    """

    spec: MachineSpec
    directory: Path
    mark: tuple[str, str]
    init: Sequence[str]


class Machine(ABC):
    """One kind of machine. ``name`` is set by the registry from the file's name.

    ``guest``: it is booted. ``device`` stands in plans for the disks that it is given. ``tools`` are the
    programs that it needs on the host. ``memory_file``: its memory is a file in a memory file system.
    """

    name: str
    summary: ClassVar[str]
    guest: ClassVar[bool] = True
    memory_file: ClassVar[bool] = False
    device: ClassVar[str] = ""
    tools: ClassVar[tuple[Tool, ...]] = ()

    @abstractmethod
    def missing(self, spec: MachineSpec) -> tuple[Need, ...]:
        """What keeps it from running here; looks only, boots nothing."""

    def check_room(self, spec: MachineSpec) -> None:  # noqa: ARG002
        """NoSpaceError if there is no room to boot it now."""
        return

    @abstractmethod
    def kernel(self, spec: MachineSpec) -> Kernel | None:
        """What its kernel brings, by its module lists; None if that cannot be told."""

    @abstractmethod
    def boot(self, boot: Boot) -> Guest:
        """A guest that is up and listens. GuestError, ToolMissingError, NoSpaceError."""

    def own_commands(self, spec: MachineSpec) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        """Programs named by the study that run on the host, as the user and not confined. Pure."""
        return ()

    @abstractmethod
    def plan(self, spec: MachineSpec) -> tuple[str, ...]:
        """The command that boots it, with stand-ins in capitals. Pure."""


def option(name: str, value: object) -> str:
    """``NAME=VALUE`` as a word of a kernel's command line, which has double quotes but no way to quote one.

    UnsupportedError for a value that has one itself.
    """
    text = str(value)
    if '"' in text or "\n" in text:
        raise UnsupportedError(
            "a path with a double quote or newline cannot be given to a kernel", where=text
        )
    return f'{name}="{text}"' if any(each.isspace() for each in text) else f"{name}={text}"


REGISTRY: Registry[Machine] = Registry("machine", __name__, Machine, group="fslab.machines")
