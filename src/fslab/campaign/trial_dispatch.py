"""Runs each trial on its machine: in this process, or in a guest, which boots when it is first needed.

A guest serves many trials. Each trial has its own disks plugged in. A broken guest is ended, and the next trial boots
a new one. ``trial`` defines what a trial does.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab.campaign import disks, guest_recordings, watchdog
from fslab.campaign.guest_run import GuestRun, RunSpeed
from fslab.campaign.prepared_states import PreparedStates
from fslab.campaign.running_trial import status_of
from fslab.campaign.sliced_rounds import SlicedRounds
from fslab.campaign.trial import run_trial
from fslab.cell import Cell, Frozen, MachineSpec, StackSpec, TrialKey
from fslab.errors import FailureClass, FslabError, GuestError, InterruptedBySignal
from fslab.machine import facts
from fslab.machine.guest import Disk, Guest, make_share, remove_share
from fslab.machine.kinds import REGISTRY, Boot
from fslab.plan.model import Shared
from fslab.storage import Drive, Workspace
from fslab.storage.parsed_stack import disk_slots, parsed_stack
from fslab.system import process_marks
from fslab.system.cpu_speed import CpuSpeed
from fslab.system.signals import Teardown
from fslab.trial_record import Provenance, Status, TrialRecord
from fslab.workloads import REGISTRY as WORKLOADS

INIT = (sys.executable, "-P", "-B", "-m", "fslab.campaign.guest_main")
SLACK_S = 300.0
COMMANDS = 4
# A kernel that hangs costs BOOT_LIMIT_S per attempt, and a hundred cells may use it.
BOOT_TRIES = 2
ERROR_LIMIT = 4096  # characters, of a traceback from its end


@dataclass(kw_only=True)
class TrialMachines:
    """The machines of one campaign: the host, and a guest for each machine and kernel. ``groups``: see
    ``prepared_states``. ``told``: gets a line for the user. ``round_s``: see ``sliced_rounds``."""

    workspace: Workspace
    groups: Mapping[str, Shared] = field(default_factory=dict)
    told: Callable[[str], object] = lambda _: None
    round_s: float = 0.0
    states: PreparedStates = field(init=False)
    rounds: SlicedRounds = field(init=False)
    _running: dict[MachineSpec, Guest] = field(default_factory=dict)
    _watchdog: watchdog.Watchdog | None = None
    _booted: int = 0
    _unbootable: dict[MachineSpec, int] = field(default_factory=dict)
    _watched: dict[int, CpuSpeed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = PreparedStates(workspace=self.workspace, groups=self.groups)
        self.rounds = SlicedRounds(
            workspace=self.workspace, machine=lambda: self.machine, states=self.states, whole=self._run_here,
            told=self.told, round_s=self.round_s,
        )  # fmt: skip

    @cached_property
    def machine(self) -> dict[str, Any]:
        """The facts stored with trials. Read in the first one's turn: before, a trial of another campaign can tune
        settings."""
        return facts.gather()

    @property
    def running(self) -> list[Guest]:
        return list(self._running.values())

    def run(self, cell: Cell, key: TrialKey, coming: frozenset[str] | None = None) -> TrialRecord:
        """Run one trial on the machine of its stack. Raises what ``run_trial`` raises.

        ``coming``: the ids of the cells whose trials come later in the block; None if that is unknown.
        """
        self.states.coming = coming
        if REGISTRY.get(cell.stack.machine.type).guest:
            return self._run_in_guest(cell, key)
        return self._run_here(cell, key)

    def run_together(self, cells: Sequence[Cell], key: TrialKey, coming: frozenset[str]) -> list[TrialRecord]:
        """Run one trial of each of these cells, which have one workload, in slices on this machine.

        ``coming``: as for ``run``.
        """
        self.states.coming = coming
        return self.rounds.run(cells, key)

    def _run_here(self, cell: Cell, key: TrialKey) -> TrialRecord:
        turn = self.states.begin(cell, key, "host")
        prepared = self.states.prepared(turn)
        record = run_trial(cell, key, self.workspace, machine=self.machine, prepared=prepared)
        return self.states.end(turn, record)

    def _run_in_guest(self, cell: Cell, key: TrialKey) -> TrialRecord:
        """Run the trial in its guest. An error, other than an interruption, becomes a failed record."""
        started, clock = datetime.now(UTC), time.monotonic()
        try:
            return self._run_inside(cell, key)
        except InterruptedBySignal:
            self.end()
            raise
        except FslabError as error:
            guest = self._running.get(cell.stack.machine)
            log = {"guest_kernel_log": guest.log_text()} if guest else {}
            self._drop_broken()
            if cell.slot in self.workspace.made:  # the file system of a dead guest may be damaged
                self.workspace.made.discard(cell.slot)
                self.workspace.lost.add(cell.slot)
            return TrialRecord(
                key=key, cell=cell, status=status_of(error), failure=error.failure.value, error=str(error),
                started=started, duration_s=time.monotonic() - clock, raw=log,
                provenance=Provenance(machine={"machine": cell.stack.machine.type, "host": dict(self.machine)}),
            )  # fmt: skip

    def ask(
        self,
        spec: StackSpec,
        slot: str,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        disks: int = 1,
        told: Callable[[str], object] = lambda _: None,
    ) -> Any:
        """Send a request to the stack's guest, with images of its medium plugged in, and return the reply's value."""
        guest = self._guest(spec.machine)
        with Teardown() as undo:
            plugged = self._plug(guest, spec, disk_slots(slot, disks), undo)
            asked = {
                **request,
                "campaign": self.workspace.campaign,
                "disks": {name: disk.as_json() for name, disk in plugged.items()},
                "made": sorted(self.workspace.made),
                "lost": sorted(self.workspace.lost),
                "facts": {**guest.facts, "host": dict(self.machine)},
            }
            reply = guest.ask(asked, timeout_s=timeout_s, told=told)
        if "bug" in reply:  # the guest's state is unknown
            guest.broken = True
        return _value(reply)

    def shared(self, machine: MachineSpec) -> Path:
        """Return the directory that the host shares with the guest of this machine."""
        return self._guest(machine).directory

    def end(self) -> None:
        """End all guests. Can be called twice."""
        while self._running:
            _, guest = self._running.popitem()
            guest.end()
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None

    def _run_inside(self, cell: Cell, key: TrialKey) -> TrialRecord:
        guest = self._guest(cell.stack.machine)
        since = guest.console_end()
        own = WORKLOADS.get(cell.workload.tool).drives_disk
        request: dict[str, Any] = {
            "do": "trial", "cell": cell.model_dump(mode="json"), "key": key.model_dump(mode="json"), "own_media": own,
        }  # fmt: skip
        limit_s = COMMANDS * cell.time_limit_s + SLACK_S
        turn = self.states.begin(cell, key, f"guest-{self._booted}")
        prepared = self.states.prepared(turn)
        if prepared is not None:
            told = {"files": prepared.files, "copied": prepared.copied, "reports": dict(prepared.reports)}
            request["prepared"] = told
        disks.note_lost(cell, self.workspace)
        made = cell.fresh.lasts and cell.slot in self.workspace.made
        if not made and (prepared is None or not prepared.copied):
            disks.renew(cell, self.workspace, in_guest=True)
        speed = RunSpeed(speed=self._speed_of(guest))
        cpu = guest.facts.get("cpu_pinned")
        with GuestRun(cell=cell, workspace=self.workspace, speed=speed, cpu=cpu, prepared=prepared) as run:
            value = self.ask(
                cell.stack, cell.slot, request, timeout_s=limit_s,
                disks=0 if own else parsed_stack(cell.stack).disks,
                told=run.told,
            )  # fmt: skip
        self._drop_broken()
        reply = _checked_reply(guest, value, cell, key)
        kernel = str(reply.record.provenance.machine.get("kernel"))
        with guest.changing_files():
            guest_recordings.take_over(guest.directory, cell.stack.machine, kernel)
        if reply.record.status is Status.FAILED:
            guest.check_growth()  # the guest itself sees only I/O errors
        self.workspace.made |= reply.made & {cell.slot}  # of other slots it knows nothing
        raw = {**reply.record.raw, "guest_kernel_log": guest.log_text(since)}
        record = run.completed(reply.record.model_copy(update={"raw": raw}))
        return self.states.end(turn, record)

    def _plug(self, guest: Guest, spec: StackSpec, slots: list[str], undo: ExitStack) -> dict[str, Disk]:
        parsed = parsed_stack(spec)
        plugged, growths = {}, []
        for name, each in zip(slots, parsed.each_medium_options(), strict=False):
            drive = parsed.medium.drive(each, self.workspace, name)
            disk = _plugged(guest, drive)
            undo.callback(_unplug, guest, disk)
            plugged[name] = disk
            growths += [drive.grows] if drive.grows else []
        guest.growths = growths
        return plugged

    def _guest(self, spec: MachineSpec) -> Guest:
        if self._unbootable.get(spec, 0) >= BOOT_TRIES:
            raise GuestError(
                f"the guest did not boot {BOOT_TRIES} times in a row: not tried again",
                where=f"--on {spec.type}",
                hint="see why the first trials failed (fslab results --notes), and: fslab doctor",
            )
        if spec not in self._running:
            if self._watchdog is None:
                self._watchdog = watchdog.start(self.workspace.campaign)
            self._booted += 1
            directory = self.workspace.runtime / f"guest-{self._booted}"
            make_share(directory, self.workspace)
            self.workspace.exit.callback(self.end)
            boot = Boot(
                spec=spec, directory=directory, mark=(process_marks.MARK, self.workspace.mark), init=INIT
            )
            try:
                self._running[spec] = REGISTRY.get(spec.type).boot(boot)
                self._unbootable.pop(spec, None)
            except BaseException as error:  # also an interruption: no guest exists that removes it
                remove_share(directory)
                if isinstance(error, GuestError):
                    self._unbootable[spec] = self._unbootable.get(spec, 0) + 1
                raise
        return self._running[spec]

    def _speed_of(self, guest: Guest) -> CpuSpeed | None:
        """Return what watches the CPU that the guest is pinned to; None for a guest that may use several."""
        cpu = guest.facts.get("cpu_pinned")
        if cpu is None:
            return None
        known = self._watched.get(cpu)
        if known is None or not known.is_alive():
            if known is not None:
                known.end()
            speed = CpuSpeed(cpu=cpu, mark=(process_marks.MARK, self.workspace.mark))
            self._watched[cpu] = self.workspace.exit.enter_context(speed)
        return self._watched[cpu]

    def _drop_broken(self) -> None:
        for spec, guest in list(self._running.items()):
            if guest.broken:
                guest.end()
                del self._running[spec]


def _plugged(guest: Guest, drive: Drive) -> Disk:
    """Plug in a disk. If the guest does not accept it, mark the guest as broken."""
    try:
        return guest.plug(drive)
    except GuestError:
        guest.broken = True
        raise


def _unplug(guest: Guest, disk: Disk) -> None:
    """Unplug a disk, unless the guest is broken: a broken guest is ended soon, together with its disks."""
    if not guest.broken:
        try:
            guest.unplug(disk)
        except GuestError:
            guest.broken = True


class _Reply(Frozen):
    """A trial's reply: its record, and the slots that contain a file system now."""

    record: TrialRecord
    made: frozenset[str]


def _checked_reply(guest: Guest, value: Any, cell: Cell, key: TrialKey) -> _Reply:
    """Return the reply if it belongs to the requested trial; else mark the guest as broken and raise GuestError."""
    try:
        reply = _Reply.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    else:
        if (reply.record.key, reply.record.cell) == (key, cell):
            return reply
        why = "it belongs to another trial"
    guest.broken = True
    raise GuestError(f"invalid record from the guest: {why[:ERROR_LIMIT]}")


def _value(reply: Mapping[str, Any]) -> Any:
    match reply:
        case {"value": value}:
            return value
        case {"error": {"what": str(what), "where": where, "hint": hint, "failure": str(failure)}}:
            told = {"where": where and str(where)[:ERROR_LIMIT], "hint": hint and str(hint)[:ERROR_LIMIT]}
            error = FslabError(what[:ERROR_LIMIT], **told)
            if failure in set(FailureClass):
                error.failure = FailureClass(failure)
            raise error
        case {"bug": str(traceback)}:
            # Root in a guest can forge this reply, so it must fail only the trial, not the campaign.
            raise GuestError(f"fslab failed in the guest: {traceback[-ERROR_LIMIT:]}")
    raise GuestError("invalid reply from the guest")
