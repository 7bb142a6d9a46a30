"""The contract of a medium: what the data lies on. One file per medium.

A medium provides block devices (or, for ``directory``, a directory), removes what it created, and refuses
to overwrite data of others.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from fslab.cell import Frozen
from fslab.errors import UnsupportedError
from fslab.registry import Registry
from fslab.scaling import Changes
from fslab.storage import Drive, StackDevice, Workspace
from fslab.system.throttle import Limit
from fslab.system.tools import Tool


class MediumOptions(Frozen):
    """Base of every medium's options; field descriptions become the documentation of the study file."""


O = TypeVar("O", bound=MediumOptions)  # noqa: E741 - the usual letter for options here


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumPlan:
    """What using a medium would mean, without touching it.

    ``device``: the path, or a stand-in such as ``/dev/loopN``, used in printed commands. ``space`` maps a
    place (a directory, or ``memory``) to the bytes needed there. ``wipes``: devices whose content is lost, in
    the order in which a layout takes them. ``holds_bytes``: less than its size may be written to it.
    """

    device: str
    size_bytes: int | None
    holds_bytes: int | None = None
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    space: Mapping[str, int]
    wipes: tuple[str, ...] = ()


class Medium(ABC, Generic[O]):
    """One kind of medium. ``name`` is set by the registry from the file's name.

    ``image``: it is a file of ours, which a guest can be given. ``formatted``: a file system is made on it.
    ``tools`` are programs that it runs, ``profiles`` what it can stand for, each with its figures and their source.
    """

    name: str
    summary: ClassVar[str]
    needs_root: ClassVar[bool] = True
    image: ClassVar[bool] = False
    tools: ClassVar[tuple[Tool, ...]] = ()
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    formatted: ClassVar[bool] = True
    Options: type[O]

    @abstractmethod
    def plan(self, options: O, site_images: Path) -> MediumPlan:
        """What would be used and run. Pure: looks at nothing."""

    @abstractmethod
    def check(self, options: O, workspace: Workspace, *, disks: int) -> None:
        """Raise (UnsafeError, NoSpaceError, NeedsRootError, …) if it cannot be used now. Changes nothing."""

    def each(self, options: O, disks: int) -> Sequence[O]:
        """The options of each of its ``disks`` disks: all alike, where the medium makes them. Pure."""
        return [options] * disks

    @abstractmethod
    def provide(self, options: O, workspace: Workspace, slot: str, undo: ExitStack) -> StackDevice | Path:
        """The device (or directory) for one trial.

        ``slot`` names the image: the same slot gets the same bytes again. What must be undone when the
        trial ends goes on ``undo``; what lives as long as the campaign goes on ``workspace.exit``.
        """

    def check_image(self, options: O, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Raise if ``drive`` could not be made now, by any user. Changes nothing."""
        raise UnsupportedError(
            f"a '{self.name}' medium works on the host only", where="on",
            hint="use a 'ram' or 'loop' medium in a guest, or remove --on",
        )  # fmt: skip

    def drive(self, options: O, workspace: Workspace, slot: str) -> Drive:
        """The image of this slot, for a guest to be given as a disk; it lives as long as the campaign."""
        self.check_image(options, workspace, disks=1)
        raise NotImplementedError(slot)

    def renew(self, options: O, workspace: Workspace, slot: str) -> None:  # noqa: ARG002
        """Give the slot's device the state of a new one: a file system is made on it next."""
        return

    def running(self, options: O, workspace: Workspace, slot: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Active during the measured run, until everything has been flushed: limits, model times, faults."""
        return nullcontext()

    def profile(self, options: O) -> str | None:  # noqa: ARG002
        """The one of its ``profiles`` that it stands for."""
        return None

    def speed(self, options: O) -> float:  # noqa: ARG002
        """How many times faster than what it stands for it runs."""
        return 1.0

    def about(self, options: O, workspace: Workspace, slot: str) -> dict[str, Any]:  # noqa: ARG002
        """What else the record says of the slot's device; on the host, also where a guest had it. Raises what made it
        fail."""
        return {}

    def discards(self, options: O) -> bool:  # noqa: ARG002
        """Whether mkfs may discard; an image that was written fully would get holes."""
        return False

    def limit(self, options: O) -> Limit | None:  # noqa: ARG002
        """What a guest's kernel limits the disk to during the run; None: nothing."""
        return None

    def emulation(self, options: O) -> dict[str, Any]:  # noqa: ARG002
        """What the record says of that."""
        return {}

    def scaled(self, options: O, factor: float, *, least_bytes: int) -> Changes:  # noqa: ARG002
        """The keys that change when it is to be ``factor`` times as large, but no less than ``least_bytes``. Pure."""
        return {}

    def parse_options(self, raw: Mapping[str, Any]) -> O:
        """Validated options; pydantic's ValidationError lists all mistakes."""
        return self.Options.model_validate(dict(raw))


REGISTRY: Registry[Medium[Any]] = Registry("medium", __name__, Medium, group="fslab.media")
