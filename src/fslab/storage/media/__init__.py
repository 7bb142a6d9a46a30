"""The interface of a medium: what the data lies on. One file per medium.

A medium provides block devices (or, for ``directory``, a directory) and removes what it created. It must not overwrite
data that fslab did not create, except on devices that the user named with --wipe.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from fslab.cell import EntryOptions
from fslab.errors import UnsupportedError
from fslab.registry import Registry
from fslab.scaling import Changes
from fslab.storage import Drive, StackDevice, Stripe, Workspace
from fslab.system.tools import Tool


class MediumOptions(EntryOptions):
    """Base of every medium's options. Descriptions of fields become the documentation of the study file."""


O = TypeVar("O", bound=MediumOptions)  # noqa: E741 - the usual letter for options here


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumPlan:
    """What a medium uses and runs, without touching it.

    ``device``: the path, or a placeholder such as ``/dev/loopN``, in printed commands. ``space`` maps a place (a
    directory, or ``memory``) to the bytes needed there. ``wipes``: devices whose content is lost, in the order in which
    a layout uses them. ``holds_bytes``: how much can be written to it, if less than its size; ``holds_key``: the option
    that sets this.
    """

    device: str
    size_bytes: int | None
    holds_bytes: int | None = None
    holds_key: str = "room"
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    space: Mapping[str, int]
    wipes: tuple[str, ...] = ()


class Copies(Protocol):
    """Copies of what is on a slot's device, at a cost that depends only on what is written to it.

    They exist on the host until they are forgotten, or until the campaign ends. ``save`` and ``load`` are called while
    nothing uses the device. FslabError (NoSpaceError without room for a copy) or OSError if they fail.
    """

    def save(self, name: str) -> None:
        """Keep what is on the device as ``name``."""

    def load(self, name: str) -> tuple[str, ...]:
        """Make the device like a new one with what was kept as ``name``. Return the command for the record.

        What is on the device is undefined after an error.
        """

    def forget(self, name: str) -> None:
        """Remove the copy ``name``, if there is one."""


class Medium(ABC, Generic[O]):
    """A kind of medium. The registry sets ``name`` from the file's name.

    ``image``: it is a file that fslab created, which can be plugged into a guest. ``formatted``: a file system is made
    on it. ``tools``: the programs that it runs. ``profiles``: the disks that it can model, each with its figures and
    their source. ``bytes_per_s``: about how fast files are read and written on it; None if unknown.
    """

    name: str
    summary: ClassVar[str]
    needs_root: ClassVar[bool] = True
    image: ClassVar[bool] = False
    tools: ClassVar[tuple[Tool, ...]] = ()
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    bytes_per_s: ClassVar[float | None] = None
    formatted: ClassVar[bool] = True
    Options: type[O]

    def seek_s(self, options: O) -> float:  # noqa: ARG002
        """Return about how long a request at a random place waits for the device; 0 if unknown. Pure."""
        return 0.0

    @abstractmethod
    def plan(self, options: O, site_images: Path) -> MediumPlan:
        """Return what the medium would use and run. Pure: does not access the machine."""

    @abstractmethod
    def check(self, options: O, workspace: Workspace, *, disks: int) -> None:
        """Raise an error (UnsafeError, NoSpaceError, NeedsRootError, …) if it cannot be used now. Changes nothing."""

    def each(self, options: O, disks: int) -> Sequence[O]:
        """Return the options of each of its ``disks`` disks: by default, all equal. Pure."""
        return [options] * disks

    def striped(self, options: O, stripe: Stripe) -> O | None:  # noqa: ARG002
        """Return the options of one device that is such a stripe over its disks; None if it cannot make one. Pure."""
        return None

    @abstractmethod
    def provide(self, options: O, workspace: Workspace, slot: str, undo: ExitStack) -> StackDevice | Path:
        """Return the device (or directory) for one trial.

        ``slot`` names the image: the same slot gets the same contents again. What has to be undone after the trial is
        pushed onto ``undo``, what exists until the end of the campaign onto ``workspace.exit``.
        """

    def recheck(self, options: Sequence[O], workspace: Workspace) -> None:  # noqa: ARG002
        """Raise an error if the devices of a stack may no longer be overwritten. Called directly before that, with the
        options of each."""
        return

    def made(self, options: O, workspace: Workspace) -> None:  # noqa: ARG002
        """Take note that a file system was made directly on the device of a slot."""
        return

    def host_only(self, options: O) -> str | None:  # noqa: ARG002
        """Return why no guest can have it with these options; None if one can. Pure."""
        return None if self.image else f"a '{self.name}' medium is measured on the host only"

    def check_image(self, options: O, workspace: Workspace, *, disks: int) -> None:  # noqa: ARG002
        """Raise an error if ``drive`` cannot succeed now. Needs no root. Changes nothing."""
        return

    def drive(self, options: O, workspace: Workspace, slot: str) -> Drive:  # noqa: ARG002
        """Return the slot's image as a disk for a guest. It exists until the end of the campaign."""
        raise UnsupportedError(
            self.host_only(options) or f"a '{self.name}' medium has no image file", where=slot
        )

    def renew(self, options: O, workspace: Workspace, slot: str, *, in_guest: bool) -> None:  # noqa: ARG002
        """Reset the slot's device to the state of a new one, before a file system is made on it.

        ``in_guest``: the one plugged into a guest, which can be another one than on the host.
        """
        return

    def copyable(self, options: O) -> bool:  # noqa: ARG002
        """Return whether what is on the device of a slot can be kept as a copy: see ``copies``."""
        return False

    def lasts(self, options: O, workspace: Workspace, slot: str) -> bool:  # noqa: ARG002
        """Return whether the slot's device still has what earlier trials left on it."""
        return True

    def copies(self, options: O, workspace: Workspace, slot: str, *, in_guest: bool) -> Copies | None:  # noqa: ARG002
        """Return the copies of what is on the slot's device. None if it is not copyable, or does not exist yet.

        ``in_guest``: as for ``renew``.
        """
        return None

    def takes_memory(self, options: O, *, in_guest: bool) -> bool:  # noqa: ARG002
        """Return whether writes to it take free memory of this machine, as fast as memory is.

        ``in_guest``: whether it is plugged into a guest.
        """
        return False

    def running(self, options: O, workspace: Workspace, slot: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Activate the model's times and faults for the measured run, until all data has been flushed."""
        return nullcontext()

    def halt(self, options: O, workspace: Workspace, slot: str, *, halted: bool) -> None:  # noqa: ARG002
        """Stop the device's own time while others have their turns (``campaign.time_slices``), or let it go on.

        By default nothing: a real device has no time of its own.
        """
        return

    def request_log(self, options: O, workspace: Workspace, slot: str) -> Path | None:  # noqa: ARG002
        """Return the log of all requests since the run began (``system.disk_server``); None if it keeps none."""
        return None

    def profile(self, options: O) -> str | None:  # noqa: ARG002
        """Return the one of its ``profiles`` that it models; None without a model."""
        return None

    def speed(self, options: O) -> float:  # noqa: ARG002
        """Return the factor by which it runs faster than the modelled disk."""
        return 1.0

    def about(self, options: O, workspace: Workspace, slot: str) -> dict[str, Any]:  # noqa: ARG002
        """Return further facts of the slot's device for the record. Raises the error that made the device fail.

        Runs on the host, even if the device was plugged into a guest.
        """
        return {}

    def discards(self, options: O) -> bool:  # noqa: ARG002
        """Return whether mkfs may discard. Not on a fully written image, which would get holes."""
        return False

    def is_used(self, options: O) -> bool:  # noqa: ARG002
        """Return whether it begins as a disk that was used. mkfs then does not discard, which would make it as new."""
        return False

    def scaled(self, options: O, factor: float, *, least_bytes: int) -> Changes:  # noqa: ARG002
        """Return the keys that change for a medium ``factor`` times as large, at least ``least_bytes``. Pure."""
        return {}

    def parse_options(self, raw: Mapping[str, Any]) -> O:
        """Return the validated options. pydantic's ValidationError lists all mistakes."""
        return self.Options.model_validate(dict(raw))


REGISTRY: Registry[Medium[Any]] = Registry("medium", __name__, Medium, group="fslab.media")
