"""Copies of prepared file systems (``fresh: block``): the trials of a block that begin with the same files share them.

The first of these trials makes the file system and its files, and its image is copied before the measured run. The
others begin with a copy. Must not change what a trial measures: a copy has the same bytes in the same places, every
block makes its own, and without room for a copy, a trial prepares its files as with ``fresh: trial``.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fslab.cell import Cell, TrialKey
from fslab.errors import FslabError, NoSpaceError
from fslab.plan.shared_files import reports_of
from fslab.record import Command, Status, TrialRecord
from fslab.storage import Workspace, images
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import memory

KEEP = "prepared"  # message of a guest
MOST_SHARE = 2  # all copies together take at most half of the memory,
LEFT_SHARE = 3  # and only while a third of it stays available
DEAREST = 1.0  # copying may take as long as making


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """How a trial gets its files. ``reports``: its image has them already, and these are the reports (name → text) that
    preparing them wrote. None: it prepares them, and calls ``keep`` once the file system is unmounted again."""

    reports: Mapping[str, str] | None
    keep: Callable[[], None]


@dataclass(kw_only=True, slots=True)
class _State:
    """A kept state. ``cell``: whose trial made it, in ``made_s``. ``reports``: None until that trial has ended."""

    image: Path
    block: int
    cell: str
    reports: dict[str, str] | None = None
    made_s: float = 0.0


@dataclass(kw_only=True, slots=True)
class Turn:
    """One trial with a shared state. ``copied_s``: how long copying took; None: the trial prepares its files."""

    cell: Cell
    block: int
    group: str
    name: str
    started: datetime
    copied_s: float | None = None


@dataclass(kw_only=True)
class PreparedStates:
    """The kept states of a campaign. ``groups``: as ``plan.shared_files`` returns them."""

    workspace: Workspace
    groups: Mapping[str, str] = field(default_factory=dict)
    _kept: dict[str, _State] = field(default_factory=dict)
    _unused: list[Path] = field(default_factory=list)
    _useless: set[str] = field(default_factory=set)

    def begin(self, cell: Cell, key: TrialKey, machine: str) -> Turn | None:
        """Copy the files of a trial into its image, if they are kept. Return None for a cell without a group, and for
        a group whose files are made faster than they are copied.

        ``machine``: a guest that boots again gets states of its own.
        """
        group = self.groups.get(cell.id)
        if group is None or group in self._useless:
            return None
        for name, kept in list(self._kept.items()):
            if kept.block != key.block or kept.reports is None:  # None: its guest was lost
                self._drop(name)
        turn = Turn(
            cell=cell, block=key.block, group=group, name=f"{group}-{key.block}-{machine}",
            started=datetime.now(UTC),
        )  # fmt: skip
        state, image = self._kept.get(turn.name), self._image(cell)
        if state is not None and state.reports is not None and image is not None:
            begun = time.monotonic()
            try:
                images.copy(state.image, image, self.workspace)
            except OSError:
                self._drop(turn.name)
            else:
                turn.copied_s = time.monotonic() - begun
                if turn.copied_s > DEAREST * state.made_s:
                    self._useless.add(group)
        return turn

    def prepared(self, turn: Turn | None) -> Prepared | None:
        """Return how the turn's trial gets its files; None without a turn."""
        if turn is None:
            return None
        reports = None if turn.copied_s is None else self._kept[turn.name].reports
        return Prepared(reports=reports, keep=lambda: self.keep(turn))

    def keep(self, turn: Turn) -> None:
        """Copy the image of the prepared and unmounted file system, if there is room. Repeated calls are ignored."""
        image = self._image(turn.cell)
        if turn.name in self._kept or image is None:
            return
        try:
            copied = self._new(image)
            self._kept[turn.name] = _State(image=copied, block=turn.block, cell=turn.cell.id)
            images.copy(image, copied, self.workspace)
        except (OSError, FslabError):
            self._drop(turn.name)

    def end(self, turn: Turn | None, record: TrialRecord) -> TrialRecord:
        """Return the record with the copy in it. The state of a failed trial is not used again."""
        state = self._kept.get(turn.name) if turn else None
        if turn is None or state is None:
            return record
        known = reports_of(turn.cell)
        if record.status is Status.FAILED or not set(known) <= set(record.raw):
            self._drop(turn.name)
        if turn.copied_s is None:
            state.reports = {name: record.raw.get(name, "") for name in known}
            made = (each for each in record.provenance.commands if each.stage in {"mkfs", "prepare"})
            state.made_s = sum(each.duration_s or 0.0 for each in made)
            return record
        argv = ("cp", "--sparse=always", str(state.image), str(self._image(turn.cell)))
        copied = Command(stage="copy", argv=argv, duration_s=turn.copied_s, exit_code=0)
        provenance = record.provenance.model_copy(
            update={
                "commands": (copied, *record.provenance.commands),
                "device": {**record.provenance.device, "files_copied_from_cell": state.cell},
            }
        )
        return record.model_copy(
            update={
                "started": turn.started,
                "duration_s": record.duration_s + turn.copied_s,
                "provenance": provenance,
            }
        )

    def _image(self, cell: Cell) -> Path | None:
        return parsed_stack(cell.stack).medium.image_of(self.workspace, cell.slot)

    def _new(self, image: Path) -> Path:
        """Return an empty image for a copy: in memory if ``image`` is in memory, else beside it.

        NoSpaceError if there is not enough room.
        """
        size_bytes = image.stat().st_blocks * 512
        directory = image.parent
        if memory.holds(directory):
            _check_memory(
                size_bytes, sum(state.image.stat().st_blocks * 512 for state in self._kept.values())
            )
            directory = memory.directory(size_bytes, executable=False)
        images.check_room(directory, size_bytes)
        free = next((path for path in self._unused if path.parent == directory), None)
        if free is not None:
            self._unused.remove(free)
            return free
        number = len(self._kept) + len(self._unused)
        # No slot begins with an underscore, and cleaning up removes only what begins with fslab-CAMPAIGN-.
        path = directory / f"fslab-{self.workspace.campaign}-_copy-{number}.img"
        self.workspace.media[str(path)] = images.create(path, 0, self.workspace, sparse=True)
        return path

    def _drop(self, name: str) -> None:
        state = self._kept.pop(name, None)
        if state is not None:
            images.empty(state.image, self.workspace)
            self._unused.append(state.image)


def _check_memory(size_bytes: int, held_bytes: int) -> None:
    total, available = memory.total_bytes(), memory.available_bytes()
    if total is None or available is None:
        return
    if held_bytes + size_bytes > total // MOST_SHARE or available - size_bytes < total // LEFT_SHARE:
        raise NoSpaceError("not enough memory for another copy", where=images.MEMORY)
