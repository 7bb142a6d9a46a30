"""Storage stacks: medium, layout, file system and mount, composed in ``stack.py``.

This module holds the values that the parts pass to each other, and the journal that they write to first.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fslab.errors import ToolFailedError
from fslab.record import Command
from fslab.system import proc


def print_nothing(text: str) -> None:
    """Where there is no terminal."""


class UndoJournal(Protocol):
    """What must be undone after a crash. An entry is on disk before its object exists."""

    def will_create(self, kind: str, target: str) -> str:
        """Record that we are about to create ``target`` (``kind``: directory, mount, image, loop, …)."""

    def undone(self, entry: str) -> None:
        """Record that the entry's object is gone again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stripe:
    """``chunk_bytes`` on each of ``data_disks`` disks in turn, parity and mirrors not counted."""

    chunk_bytes: int
    data_disks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StackDevice:
    """One block device to make a file system on.

    ``discard``: whether mkfs may discard (never on image media: it would punch the image full of holes).
    ``buffered``: it goes through a page cache where direct I/O was possible and asked for.
    ``facts``: geometry and settings as read from sysfs.
    """

    path: Path
    size_bytes: int
    discard: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    buffered: bool = False

    @property
    def kernel_name(self) -> str:
        """``loop3``, ``nvme0n1``: the name under /sys/block (or its parent, for a partition)."""
        return self.path.resolve().name


WORK = "work"
SCRATCH = "scratch"


def mount_point(runtime: Path) -> Path:
    """Where the file system under test is mounted; the workload's own directory on it is ``WORK``."""
    return runtime / "mnt"


def tool_scratch(runtime: Path) -> Path:
    """Where tools write their report files."""
    return runtime / SCRATCH / "tool"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drive:
    """What a guest is given as a disk: ``image``, a file of ours. Where a server also offers it as a virtio disk, over
    vhost-user: its ``socket``, and its ``serial`` number. ``discard``: whether mkfs may discard."""

    image: Path
    socket: Path | None = None
    serial: str | None = None
    rotational: bool = False
    discard: bool = False


@dataclass(kw_only=True, slots=True)
class Workspace:
    """Where a campaign builds: its own directories, its journal, and the commands it ran so far.

    ``runtime`` holds mount points (a tmpfs on most machines), ``images`` the image files of loop media.
    ``wipe`` are the devices that the user named with --wipe. ``exit`` undoes what lives as long as the
    campaign; ``media`` is what media remember between trials; ``made`` are the slots that carry a file system.
    ``attached``, inside a guest, are the disks that the machine plugged in for the trial, by slot: they are the
    media there. None on the host; ``tell_host`` says to it what begins. ``tell`` gets a line before long steps.
    """

    campaign: str
    runtime: Path
    images: Path
    journal: UndoJournal
    wipe: frozenset[str] = frozenset()
    commands: list[Command] = field(default_factory=list)
    exit: ExitStack = field(default_factory=ExitStack)
    media: dict[str, Any] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    attached: Mapping[str, StackDevice] | None = None
    tell_host: Callable[[str], None] = print_nothing
    tell: Callable[[str], None] = print_nothing

    def run(
        self,
        stage: str,
        argv: Sequence[str],
        *,
        timeout_s: float = 600.0,
        cwd: Path | None = None,
        failure: type[ToolFailedError] = ToolFailedError,
        check: bool = True,
        watch: Callable[[], None] | None = None,
    ) -> proc.Completed:
        """Run one command of ours, marked with the campaign, and keep it for the provenance.

        ``check``: a non-zero exit raises ``failure`` (or NoSpaceError).
        """
        done = proc.run(
            argv, timeout_s=timeout_s, check=False, cwd=cwd, env={proc.MARK: self.campaign}, watch=watch
        )
        self.commands.append(
            Command(stage=stage, argv=tuple(argv), duration_s=done.duration_s, exit_code=done.returncode)
        )
        if check and done.returncode != 0:
            raise proc.failed(done, failure)
        return done
