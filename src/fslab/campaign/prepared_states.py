"""Shared states (``fresh: block``): the trials of a block that begin with the same state make it only once.

The first of these trials makes the file system, or the file system and its files, and this is copied. The others begin
with a copy. Must not change what a trial measures: a copy has the same bytes in the same places, every block makes its
own, and without room for a copy, a trial begins as with ``fresh: trial``.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fslab.cell import Cell, TrialKey
from fslab.errors import FslabError, ToolFailedError, UnsafeError
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.plan.model import Shared
from fslab.plan.shared_states import reports_of
from fslab.storage import Workspace
from fslab.storage.media import Copies
from fslab.storage.parsed_stack import parsed_stack
from fslab.trial_record import Command, Status, TrialRecord

KEEP = "prepared"  # message of a guest
DEAREST = 1.0  # copying may take as long as making,
MOST_DEAR = 2  # unless it took longer so often in a row: once can be chance


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What of a trial's state is shared. ``files``: its files, too, and not only the file system.

    ``copied``: the state is there already. Otherwise the trial makes it, and calls ``keep`` when it is complete and not
    mounted. ``reports``: what preparing the files wrote (name → text).
    """

    files: bool
    copied: bool
    reports: Mapping[str, str]
    keep: Callable[[], None]

    @property
    def has_files(self) -> bool:
        """Whether the files need not be prepared."""
        return self.copied and self.files


@dataclass(kw_only=True, slots=True)
class _State:
    """A kept state. ``cell``: its trial made it, in ``made_s``. ``reports``: None until that trial has ended."""

    cell: Cell
    block: int
    reports: dict[str, str] | None = None
    made_s: float = 0.0


@dataclass(kw_only=True, slots=True)
class Turn:
    """One trial with a shared state. ``copy``: the command that copied ``state``; None if the trial makes it."""

    cell: Cell
    block: int
    shared: Shared
    name: str
    started: datetime
    copy: Command | None = None
    state: _State | None = None


@dataclass(kw_only=True)
class PreparedStates:
    """The kept states of a campaign. ``groups``: as ``plan.shared_states`` returns them.

    ``coming``: the ids of the cells whose trials come later in the block; None if that is unknown.
    """

    workspace: Workspace
    groups: Mapping[str, Shared] = field(default_factory=dict)
    coming: frozenset[str] | None = None
    _kept: dict[str, _State] = field(default_factory=dict)
    _useless: set[str] = field(default_factory=set)
    _dear: Counter[str] = field(default_factory=Counter)

    def begin(self, cell: Cell, key: TrialKey, machine: str) -> Turn | None:
        """Copy the state of a trial to its device, if it is kept. Return None for a cell without a group, and for a
        group whose state is made faster than it is copied.

        ``machine``: a guest that boots again gets states of its own.
        """
        for name, kept in list(self._kept.items()):
            useless = self.groups[kept.cell.id].group in self._useless
            if useless or kept.block != key.block or kept.reports is None:  # None: its guest was lost
                self._drop(name)
        shared = self.groups.get(cell.id)
        if shared is None or shared.group in self._useless:
            return None
        turn = Turn(
            cell=cell, block=key.block, shared=shared, name=f"{shared.group}-{key.block}-{machine}",
            started=datetime.now(UTC),
        )  # fmt: skip
        state, copies = self._kept.get(turn.name), self._copies(cell)
        if (
            state is not None and copies is None
        ):  # the server of a virtual disk has ended, and its copies with it
            self._drop(turn.name)
        elif state is not None and copies is not None:
            begun = time.monotonic()
            try:
                argv = copies.load(turn.name)
            except UnsafeError:
                raise
            except (OSError, FslabError):
                self._drop(turn.name)
            else:
                copied_s = time.monotonic() - begun
                turn.state = state
                turn.copy = Command(stage="copy", argv=argv, duration_s=copied_s, exit_code=0)
                self._dear[shared.group] = (
                    self._dear[shared.group] + 1 if copied_s > DEAREST * state.made_s else 0
                )
                if self._dear[shared.group] == MOST_DEAR:
                    self._useless.add(shared.group)
        return turn

    def prepared(self, turn: Turn | None) -> Prepared | None:
        """Return what of the turn's trial is shared; None without a turn."""
        if turn is None:
            return None
        reports = (turn.state.reports if turn.state else None) or {}
        copied = turn.copy is not None
        return Prepared(files=turn.shared.files, copied=copied, reports=reports, keep=lambda: self.keep(turn))

    def keep(self, turn: Turn) -> None:
        """Copy the state that the turn's trial has made, if a later trial needs it and there is room.

        Repeated calls are ignored.
        """
        copies = self._copies(turn.cell)
        if turn.name in self._kept or copies is None or not self._is_needed(turn.shared):
            return
        try:
            copies.save(turn.name)
        except (OSError, FslabError):
            return
        self._kept[turn.name] = _State(cell=turn.cell, block=turn.block)

    def end(self, turn: Turn | None, record: TrialRecord) -> TrialRecord:
        """Return the record with the copy in it. The state of a failed trial is not used again."""
        # Of trials at the same time, another one may have found that their states are not worth a copy.
        state = (turn.state or self._kept.get(turn.name)) if turn else None
        if turn is None or state is None:
            return record
        known = reports_of(turn.cell) if turn.shared.files else ()
        if record.status is Status.FAILED or not set(known) <= set(record.raw):
            self._drop(turn.name)
        if turn.copy is None:
            state.reports = {name: record.raw.get(name, "") for name in known}
            stages = {"mkfs", "prepare"} if turn.shared.files else {"mkfs"}
            made = (each for each in record.provenance.commands if each.stage in stages)
            state.made_s = sum(each.duration_s or 0.0 for each in made)
            return record
        what = "files" if turn.shared.files else "filesystem"
        provenance = record.provenance.model_copy(
            update={
                "commands": (turn.copy, *record.provenance.commands),
                f"{what}_copied_from_cell": state.cell.id,
            }
        )
        return record.model_copy(
            update={
                "started": turn.started,
                "duration_s": record.duration_s + (turn.copy.duration_s or 0.0),
                "provenance": provenance,
            }
        )

    def _is_needed(self, shared: Shared) -> bool:
        """Return whether a later trial of the block begins with the same state. Later blocks have few cells."""
        return self.coming is None or any(self.groups.get(cell) == shared for cell in self.coming)

    def _copies(self, cell: Cell) -> Copies | None:
        parsed = parsed_stack(cell.stack)
        in_guest = MACHINES.get(cell.stack.machine.type).guest
        return parsed.medium.copies(parsed.medium_options, self.workspace, cell.slot, in_guest=in_guest)

    def _drop(self, name: str) -> None:
        state = self._kept.pop(name, None)
        copies = self._copies(state.cell) if state is not None else None
        if copies is not None:
            with suppress(OSError, ToolFailedError):  # the server of a virtual disk may have ended
                copies.forget(name)
