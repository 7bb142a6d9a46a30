"""Storage stacks: medium, layout, file system and mount, composed in ``stack.py``.

This module defines the values that the parts pass to each other, and the interface of the journal that they write to
before they create anything.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fslab.errors import ToolFailedError
from fslab.system import kernel_log, mounts, proc, process_marks
from fslab.system.warm_memory import WarmMemory
from fslab.trial_record import Command


def do_nothing() -> None:
    """Check nothing: the default."""


def print_nothing(text: str) -> None:
    """Discard a message: the default without a terminal."""


class UndoJournal(Protocol):
    """A record of what must be undone after a crash. An entry is on disk before its object exists."""

    def will_create(self, kind: str, target: str, devices: Sequence[str] = ()) -> str:
        """Record that ``target`` is about to be created, and return the entry's id.

        ``kind``: directory, mount, image, loop, …. ``devices``: the names of existing devices that it is made on.
        """

    def undone(self, entry: str) -> None:
        """Record that the entry's object has been removed."""


def undone_later(
    journal: UndoJournal,
    kind: str,
    target: str | Path,
    undo: ExitStack,
    action: Callable[[], object],
    devices: Sequence[str] = (),
) -> str:
    """Record in the journal what is about to be made, and have ``undo`` undo it by ``action``. If that fails, the entry
    stays. Returns it."""
    entry = journal.will_create(kind, str(target), devices)

    def undone() -> None:
        action()
        journal.undone(entry)

    undo.callback(undone)
    return entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Stripe:
    """Data alternates over ``data_disks`` disks, ``chunk_bytes`` on each. Parity and copies are not counted."""

    chunk_bytes: int
    data_disks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """A sparse image, which takes space in its directory with each write, and the limit that its medium has for it."""

    image: Path
    room_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StackDevice:
    """A block device to make a file system on.

    ``discard``: whether mkfs may discard (never on image media, because discards would punch holes into the image).
    ``buffered``: it uses the page cache of its image although direct I/O was requested. ``facts``: geometry and
    settings, as read from sysfs. ``grows``: its image, if that is sparse and shares its file system with other files.
    ``name``: the stable name by which the user named it; None for a device of fslab's own. ``check``: raises
    UnsafeError unless it is still the device that was provided; called before whatever writes to it.
    """

    path: Path
    size_bytes: int
    discard: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    buffered: bool = False
    name: str | None = None
    grows: Growth | None = None
    check: Callable[[], None] = field(default=do_nothing, compare=False)

    @property
    def kernel_name(self) -> str:
        """The device's name in /sys/class/block: ``loop3``, ``nvme0n1``, ``sda1``."""
        return self.path.resolve().name


WORK = "work"
SCRATCH = "scratch"


def mount_point(runtime: Path, turn: str = "") -> Path:
    """Return where the file system under test is mounted. The workload's own directory on it is ``WORK``.

    ``turn``: as of a ``Workspace``.
    """
    return runtime / f"mnt{turn}"


def tool_scratch(runtime: Path, turn: str = "") -> Path:
    """Return the directory where tools write their report files. ``turn``: as of a ``Workspace``."""
    return runtime / SCRATCH / f"tool{turn}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drive:
    """A disk to plug into a guest. ``image``: a file that fslab created.

    ``socket``, ``serial``: where a server also offers the disk as a virtio disk over vhost-user, and its serial number.
    ``discard``: whether mkfs may discard. ``grows``: as for a ``StackDevice``.
    """

    image: Path
    socket: Path | None = None
    serial: str | None = None
    rotational: bool = False
    discard: bool = False
    grows: Growth | None = None


@dataclass(kw_only=True, slots=True)
class Workspace:
    """The directories of a campaign, its journal, and the commands that it has run so far.

    ``runtime`` contains mount points (a tmpfs on most machines), ``images`` the image files of loop media. ``wipe``:
    the devices that the user named with --wipe. ``exit`` undoes what exists until the end of the campaign. ``media``:
    the state of media between trials. ``made``: the slots that contain a file system. ``lost``: those whose file system
    was to last, had trials, and exists no longer. ``warm_memory``: held between runs. ``attached``: inside a guest, the
    disks that the host plugged in for the trial, by slot, which replace the media; None on the host. ``mark``: in the
    environment of the campaign's processes. ``temporary``: their directory for temporary files, if it is not fslab's.
    ``tell_host`` sends progress messages from a guest to the host. ``tell`` gets a line before long steps. ``turn``:
    what distinguishes the directories of trials whose tools take turns; empty for a trial alone. ``recorded``:
    what ``will_make`` has recorded.
    """

    campaign: str
    runtime: Path
    images: Path
    journal: UndoJournal
    mark: str = ""
    temporary: Path | None = None
    wipe: frozenset[str] = frozenset()
    commands: list[Command] = field(default_factory=list)
    exit: ExitStack = field(default_factory=ExitStack)
    media: dict[str, Any] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    warm_memory: WarmMemory = field(default_factory=WarmMemory)
    attached: Mapping[str, StackDevice] | None = None
    tell_host: Callable[[str], None] = print_nothing
    tell: Callable[[str], None] = print_nothing
    turn: str = ""
    recorded: set[tuple[str, str]] = field(default_factory=set)

    def run(
        self,
        stage: str,
        argv: Sequence[str],
        *,
        timeout_s: float = 600.0,
        cwd: Path | None = None,
        failure: type[ToolFailedError] = ToolFailedError,
        check: bool = True,
        watch: Callable[[proc.Running], None] | None = None,
        accounted: bool = False,
        within: Sequence[str] = (),
    ) -> proc.Completed:
        """Run a command, marked with the campaign, and record it for the provenance.

        Where tools take turns, commands of other stages than ``run`` run before other programs: rounds are short, so
        that they take little from these.

        ``check``: a non-zero exit status raises ``failure`` (or NoSpaceError), with the kernel's messages about it.
        ``accounted``, ``within``: as for ``proc.run``.
        """
        log = kernel_log.KernelMessages()
        done = proc.run(
            argv, timeout_s=timeout_s, check=False, cwd=cwd, env=self.environment(stage), watch=watch,
            accounted=accounted, within=within, urgent=bool(self.turn) and stage != "run",
        )  # fmt: skip
        self.record(stage, done)
        if check and done.returncode != 0:
            raise proc.failed(done, failure, kernel_log.reasons(log.messages(), done))
        return done

    def environment(self, stage: str) -> dict[str, str]:
        """Return what a command has in its environment besides ``proc.environment``: the marks, by which it and what it
        leaves running are found, and its own directory for temporary files."""
        own = {"TMPDIR": str(self.temporary)} if self.temporary else {}
        return {process_marks.MARK: self.mark, process_marks.STAGE: self._stage(stage), **own}

    def _stage(self, stage: str) -> str:
        return f"{self.mark}{self.turn} {stage}"

    def left(self, stage: str) -> list[int]:
        """Return the processes that commands of a stage of this trial started and that still run."""
        return process_marks.marked_processes(self._stage(stage), name=process_marks.STAGE)

    def end_left(self) -> None:
        """End what commands of the workload left running. It would hold the file system, or disturb later trials."""
        for stage in ("prepare", "run", "cleanup"):
            process_marks.end_marked(self._stage(stage), name=process_marks.STAGE)

    def record(self, stage: str, done: proc.Completed) -> None:
        """Record a command that has ended, for the provenance."""
        self.commands.append(
            Command(stage=stage, argv=done.argv, duration_s=done.duration_s, exit_code=done.returncode)
        )

    def will_make(self, kind: str, target: object) -> None:
        """Record in the journal, once, what the trials of a campaign make and remove again and again."""
        if (made := (kind, str(target))) not in self.recorded:
            self.journal.will_create(*made)
            self.recorded.add(made)

    def will_mount(self, target: Path, undo: ExitStack, devices: Sequence[Path] = ()) -> None:
        """Record a mount, from one of the devices, in the journal. ``undo`` unmounts it and removes its mount point."""
        nodes = [each.resolve() for each in devices]

        def unmount() -> None:
            mounts.unmount(target, [node.name for node in nodes])
            if target.exists():
                target.rmdir()

        undone_later(self.journal, "mount", target, undo, unmount, [*map(str, nodes)])
