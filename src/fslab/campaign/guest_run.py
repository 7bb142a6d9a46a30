"""The host's part of a trial that runs in a guest: activates its media during the run, and reads their counters."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from fslab.campaign import cache_state, disks
from fslab.campaign.guest_cpu_standstill import STOOD_STILL, RunSpeed
from fslab.campaign.prepared_states import KEEP, Prepared
from fslab.cell import Cell
from fslab.probes.virtual_disk import figures
from fslab.storage import Workspace
from fslab.trial_record import TrialRecord, Value
from fslab.validity.facts import TrialFacts, WorkFacts
from fslab.validity.trial_warnings import trial_warnings


@dataclass(kw_only=True)
class GuestRun:
    """The host's part of one trial. A context manager: leaving it deactivates the media if they are still active.

    ``cpu``: the CPU that the guest and its disks are pinned to; None if they may use several.
    """

    cell: Cell
    workspace: Workspace
    speed: RunSpeed
    cpu: int | None = None
    prepared: Prepared | None = None
    taken: list[list[dict[str, Any]]] = field(default_factory=list)
    requested: dict[str, Value] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    began: datetime = field(init=False)
    holding_s: float = field(init=False)
    released_bytes: int = 0
    undo: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.began, clock = datetime.now(UTC), time.monotonic()
        # Here the disks are new, or copied: what they gave back is taken before the host gets it.
        cache_state.needed(self.cell, in_guest=True).hold(self.workspace.warm_memory)
        self.holding_s = time.monotonic() - clock
        self.undo.enter_context(self.speed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.undo.close()

    def told(self, what: str) -> None:
        """Handle a message: the files are prepared, the run begins, or it has ended and all is flushed; the tool itself
        begins or ends.

        Repeated messages are ignored.
        """
        self.speed.told(what)
        if what == KEEP and self.prepared is not None and not self.taken:
            self.prepared.keep()
            return
        if (what, len(self.taken)) == (disks.BEGINS, 0):
            self.undo.enter_context(disks.running(self.cell, self.workspace))
            self.released_bytes = self.workspace.warm_memory.release(self.cpu)
        elif (what, len(self.taken)) != (disks.ENDS, 1):
            return
        self.taken.append(disks.statistics(disks.facts(self.cell, self.workspace)))
        if what == disks.ENDS:
            self.requested, self.raw = disks.requests(self.cell, self.workspace)
            self.undo.close()

    def completed(self, record: TrialRecord) -> TrialRecord:
        """Return the record with the counters of its disks, the warnings that follow from them, and the CPU's speed."""
        device = {**record.provenance.device, **disks.facts(self.cell, self.workspace)}
        held_bytes = self.released_bytes or record.provenance.memory_held_bytes
        changes: dict[str, Any] = {
            "provenance": record.provenance.model_copy(
                update={"device": device, "memory_held_bytes": held_bytes}
            ),
            "raw": {**record.raw, **self.raw},
        }
        if self.released_bytes:
            changes |= {"started": self.began, "duration_s": record.duration_s + self.holding_s}
        record = self.speed.completed(record.model_copy(update=changes))
        counted = {name: value for name, value in record.probes.items() if name == STOOD_STILL}
        if len(self.taken) == 2 and all(self.taken):
            before, after = self.taken
            counted |= {**figures(before, after, after), **self.requested}
        facts = TrialFacts(
            work=WorkFacts(), cold=False, figures=counted, disk_fidelities=disks.fidelities(device)
        )
        warnings = trial_warnings(facts, self.cell.known_limits, of_host=True)
        return record.model_copy(
            update={"probes": {**record.probes, **counted}, "validity": (*record.validity, *warnings)}
        )
