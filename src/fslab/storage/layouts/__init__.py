"""The contract of a layout: how the devices of a medium become one block device. One file per layout.

A layout says in a plan, purely, what it would be called and which commands it takes; ``assemble`` runs them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from fslab.cell import Frozen
from fslab.errors import UnsupportedError
from fslab.registry import Registry
from fslab.storage import StackDevice, Stripe, Workspace
from fslab.system import modules, tools
from fslab.system.tools import Tool

Argv = tuple[str, ...]


class LayoutOptions(Frozen):
    """Base of every layout's options (disks, chunk, …).

    ``without`` are keys that others have and this one does not, each with the reason.
    """

    without: ClassVar[Mapping[str, str]] = {}


O = TypeVar("O", bound=LayoutOptions)  # noqa: E741 - the usual letter for options here


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutPlan:
    """What joining devices means, without touching them.

    ``device`` is what the file system is made on and mounted from, ``members`` are further devices that mkfs
    gets. ``create`` makes it on devices whose content is lost, ``activate`` brings up what was made before;
    ``deactivate`` takes it down and ``remove`` makes the devices blank as well. ``mkfs_options`` and
    ``mount_options`` are the layout's own, before and after the study's.
    """

    device: str
    members: tuple[str, ...] = ()
    stripe: Stripe | None = None
    create: tuple[Argv, ...] = ()
    activate: tuple[Argv, ...] = ()
    deactivate: tuple[Argv, ...] = ()
    remove: tuple[Argv, ...] = ()
    mkfs_options: str = ""
    mount_options: str = ""


class Layout(ABC, Generic[O]):
    """One way to join devices. ``name`` is set by the registry from the file's name.

    ``modules`` are the kernel modules that it takes, all of them. ``filesystems`` None: any works on it.
    ``least_disk_bytes`` is the smallest disk it takes.
    ``undo_kind`` is what its objects are called in a campaign's journal, None if it makes none.
    """

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    filesystems: ClassVar[frozenset[str] | None] = None
    least_disk_bytes: ClassVar[int] = 0
    undo_kind: ClassVar[str | None] = None
    Options: type[O]

    @abstractmethod
    def disks(self, options: O) -> int:
        """How many devices it needs of the medium."""

    @abstractmethod
    def usable_bytes(self, options: O, disk_bytes: int) -> int:
        """About how much of its equal disks a file system gets. Pure."""

    @abstractmethod
    def plan(self, options: O, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """What joining ``devices`` means; its objects carry the campaign's id. Pure."""

    @abstractmethod
    def assemble(
        self,
        options: O,
        devices: Sequence[StackDevice],
        workspace: Workspace,
        undo: ExitStack,
        *,
        make: bool,
        keep: bool,
    ) -> StackDevice:
        """Join the devices; taking them apart again goes on ``undo``.

        ``make`` False: they carry the layout already, from a trial before. ``keep``: a later trial needs it
        again. Else the devices are left without any trace of it.
        """

    def undo(self, target: str) -> None:
        """Take down what a crash left of ``target``, an entry of a journal. Can be called twice."""
        raise NotImplementedError(f"layout {self.name} makes nothing that has to be undone: {target}")

    def check_mkfs_options(self, options: str) -> None:
        """ValueError for an option of the study that the layout decides itself. Pure."""

    def check(self) -> None:
        """ToolMissingError or UnsupportedError if this machine cannot do it. Loads nothing."""
        self.require(load=False)

    def require(self, *, load: bool) -> None:
        """The same; ``load``: kernel modules are loaded."""
        for tool in self.tools:
            tools.require(tool)
        missing = [name for name in self.modules if not modules.available(name, load=load)]
        if missing:
            raise UnsupportedError(
                f"this kernel lacks {', '.join(missing)}", where=f"layout {self.name}",
                hint="use another kernel (fslab run … --on uml), or remove the layout from the study",
            )  # fmt: skip

    def parse_options(self, raw: Mapping[str, Any]) -> O:
        """Validated options; pydantic's ValidationError lists all mistakes."""
        return self.Options.model_validate(dict(raw))


def volume_name(campaign: str) -> str:
    """What a campaign's volume group or array is called: there is one at a time."""
    return f"fslab-{campaign}"


REGISTRY: Registry[Layout[Any]] = Registry("layout", __name__, Layout, group="fslab.layouts")
