"""The interface of a layout: how the devices of a medium become one block device. One file per layout.

``plan`` is pure: it returns the names and commands of the joined device. ``assemble`` runs the commands.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, field_validator

from fslab.cell import EntryOptions
from fslab.errors import LayoutError, UnsupportedError
from fslab.registry import Registry
from fslab.storage import StackDevice, Stripe, Workspace
from fslab.system import kernel, tools
from fslab.system.tools import Tool
from fslab.units import Size, format_size, parse_size

Argv = tuple[str, ...]
LONGEST_VOLUME = 26  # characters; mdadm puts "none:" before the name of an array, and stores 31 (super1.c)
LEAST_CHUNK_BYTES = 4 << 10  # a page: the minimum of dm-stripe and md
MOST_DISKS = 64


class LayoutOptions(EntryOptions):
    """Base of every layout's options (disks, chunk, …).

    ``without``: keys that other layouts have and this one does not, each with the reason.
    """

    without: ClassVar[Mapping[str, str]] = {}


O = TypeVar("O", bound=LayoutOptions)  # noqa: E741 - the usual letter for options here


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutPlan:
    """The names and commands for joining devices, without touching the devices.

    ``device``: the device that is formatted and mounted. ``members``: further devices for mkfs. ``create``: the
    commands that create the joined device; the contents of the devices are lost. ``activate``: start a joined device
    that exists already. ``deactivate``: stop it. ``remove``: stop it and make the devices blank. ``before_run``: for
    when the files of a trial are there, directly before its measured run; ``after_run``: undo that. ``journal``: the
    device for an external journal of ``journal_bytes``. ``mkfs_options``, ``mount_options``: the layout's own, before
    those of the study for mkfs and after them for mount.
    """

    device: str
    members: tuple[str, ...] = ()
    stripe: Stripe | None = None
    create: tuple[Argv, ...] = ()
    activate: tuple[Argv, ...] = ()
    deactivate: tuple[Argv, ...] = ()
    remove: tuple[Argv, ...] = ()
    before_run: tuple[Argv, ...] = ()
    after_run: tuple[Argv, ...] = ()
    journal: str | None = None
    journal_bytes: int = 0
    mkfs_options: str = ""
    mount_options: str = ""


_DISK = 1 << 40  # bytes, of a disk for which what a layout needs itself is little


class Layout(ABC, Generic[O]):
    """A way to join devices. The registry sets ``name`` from the file's name.

    ``modules``: the kernel modules that it needs. ``filesystems``: the file systems that work on it, None for all.
    ``least_disk_bytes``: the size of the smallest disk that it accepts. ``undo_kind``: the kind of its objects in a
    campaign's journal, None if it creates none. ``encrypts``: where zeros are written, its disks hold other bytes.
    ``parities``: chunks of parity in each stripe, for which parts of stripes are read when others are written.
    ``turns``: a disk is waited for before the other one is used.
    """

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]] = ()
    modules: ClassVar[tuple[str, ...]] = ()
    filesystems: ClassVar[frozenset[str] | None] = None
    least_disk_bytes: ClassVar[int] = 0
    undo_kind: ClassVar[str | None] = None
    encrypts: ClassVar[bool] = False
    parities: ClassVar[int] = 0
    turns: ClassVar[bool] = False
    Options: type[O]

    def disks(self, options: O) -> int:
        """Return how many devices of the medium it needs: by default the option ``disks``, else 1."""
        return int(getattr(options, "disks", 1))

    def passes_zeros(self, options: O) -> bool:  # noqa: ARG002
        """Return whether the command to write zeros reaches its disks. If not, mkfs writes zeros as data."""
        return not self.encrypts

    def multiplies(self, options: O) -> bool:
        """Return whether its disks receive more than is written to it: copies, parity, or parts of chunks. Pure.

        By default: whether half a disk or more of its disks is no room for files, as with copies and parity.
        """
        return self.usable_bytes(options, _DISK) < self.disks(options) * _DISK - _DISK // 2

    def striping(self, options: O) -> Stripe | None:  # noqa: ARG002
        """Return the stripe, if it does nothing but stripe whole disks: a medium may do that itself. Pure."""
        return None

    @abstractmethod
    def usable_bytes(self, options: O, disk_bytes: int) -> int:
        """Return about how many bytes a file system gets on disks of ``disk_bytes`` each. Pure."""

    @abstractmethod
    def plan(self, options: O, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan to join ``devices``. The names of its objects contain the campaign's id. Pure."""

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
        """Join the devices, and push the commands that separate them onto ``undo``.

        ``make`` False: an earlier trial has already created the layout on them. ``keep``: a later trial uses it again;
        otherwise ``undo`` also makes the devices blank.
        """

    def undo(self, target: str, devices: Sequence[Path]) -> None:
        """Remove what a crash left of ``target``, an entry of a journal. Can be called twice.

        ``devices``: those that it was made on, if they are there and still the same disks. They can be dead.
        """
        raise NotImplementedError(f"layout {self.name} makes nothing that has to be undone: {target}")

    def check_mkfs_options(self, options: str) -> None:
        """Raise ValueError for an option of the study that the layout itself sets. Pure."""

    def check(self) -> None:
        """Raise ToolMissingError or UnsupportedError if it cannot be used on this machine. Loads no module."""
        self.require(load=False)

    def require(self, *, load: bool) -> None:
        """Do the same; ``load``: load the kernel modules."""
        for tool in self.tools:
            tools.require(tool)
        missing = [name for name in self.modules if not kernel.has_module(name, load=load)]
        if missing:
            raise UnsupportedError(
                f"this kernel lacks {', '.join(missing)}",
                where=f"layout {self.name}",
                hint="use a kernel that has it, or remove the layout from the study",
            )

    def parse_options(self, raw: Mapping[str, Any]) -> O:
        """Return the validated options. pydantic's ValidationError lists all mistakes."""
        return self.Options.model_validate(dict(raw))


def volume_name(campaign: str) -> str:
    """Return the name of a campaign's volume group or array. A campaign has only one at a time.

    Ids with an addition (of traced trials, in a fleet) are too long for mdadm: such a name has a digest of the id.
    """
    name = f"fslab-{campaign}"
    if len(name) <= LONGEST_VOLUME:
        return name
    return f"fslab-{hashlib.blake2b(campaign.encode(), digest_size=8).hexdigest()}"


REGISTRY: Registry[Layout[Any]] = Registry(
    "layout", __name__, Layout, group="fslab.layouts",
    otherwise="create any other one yourself and name its device: medium {type: device, path: /dev/mapper/NAME}, or "
    "/dev/md/NAME",
)  # fmt: skip


class Disks(LayoutOptions):
    """The number of disks, all of the same size."""

    disks: int = Field(2, ge=2, le=MOST_DISKS, description="number of disks")


class Chunked(Disks):
    """The number of disks, and the chunk: the bytes on one disk before the next."""

    chunk: Size = Field("64k", description="bytes on one disk before the next, a power of two of at least 4k")

    @field_validator("chunk")
    @classmethod
    def _chunk(cls, value: str) -> str:
        chunk_bytes = parse_size(value)
        if chunk_bytes < LEAST_CHUNK_BYTES or chunk_bytes & (chunk_bytes - 1):
            least = format_size(LEAST_CHUNK_BYTES)
            raise ValueError(f"chunk '{value}' is not a power of two of at least {least}")
        return value

    @property
    def chunk_bytes(self) -> int:
        return parse_size(self.chunk)


class SeveralLayout(Layout[O]):
    """A layout whose devices are all given to mkfs and mount."""

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
        """Prepare the devices; only mkfs joins them. ``undo`` unregisters them in the kernel, because they go away."""
        self.require(load=True)
        plan = self.plan(options, [str(device.path) for device in devices], workspace.campaign)
        for argv in plan.deactivate if keep else plan.remove:
            undo.callback(workspace.run, "detach", argv, check=False)
        for argv in plan.create if make else plan.activate:
            workspace.run("attach", argv, failure=LayoutError)
        first = devices[0]
        facts = {
            **first.facts,
            "layout": self.name,
            **options.model_dump(),
            "parts": [dict(device.facts) for device in devices],
        }
        return StackDevice(
            path=first.path,
            size_bytes=self.usable_bytes(options, min(each.size_bytes for each in devices)),
            discard=all(device.discard for device in devices),
            facts=facts,
        )
