"""One trial while it runs: what its parts get, what has come of it so far, and the record that it becomes."""

import errno
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fslab.campaign import disks
from fslab.campaign.prepared_states import Prepared
from fslab.campaign.probing import Findings
from fslab.cell import Cache, Cell, TrialKey
from fslab.errors import (
    FULL_DISK,
    LARGER_MEDIUM,
    BusyError,
    FailureClass,
    FslabError,
    NeedsRootError,
    NoSpaceError,
    ToolFailedError,
    UnsafeError,
)
from fslab.feasibility import plugins_of, programs_of
from fslab.storage import Workspace, options_in_effect
from fslab.storage.filesystems import COMMANDS
from fslab.storage.mounted_stack import Stack
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import priority, process_marks, sysfs, tools, waiting
from fslab.system.kernel_log import KernelMessages, about
from fslab.system.signals import Teardown
from fslab.trial_record import (
    Provenance,
    RunPart,
    Severity,
    Slices,
    Status,
    TrialRecord,
    ValidityWarning,
    Value,
)  # fmt: skip
from fslab.validity.facts import TrialFacts
from fslab.workloads import Job, Reading, parsed

ABORT = (UnsafeError, BusyError, NeedsRootError)
BROKEN = frozenset({errno.EIO, errno.EROFS, errno.EUCLEAN})
BY_FAULTS = frozenset(
    {FailureClass.CRASHED, FailureClass.TIMED_OUT, FailureClass.OUTPUT, FailureClass.MOUNT}
)  # failures that ``faults`` of a disk can cause
KEPT_LINES = 100
ENDING_S = 2.0  # for processes that end a little later than the command


@dataclass(kw_only=True, slots=True)
class RunningTrial:
    """A trial and its results so far, which are stored even if it fails.

    ``machine``: the facts stored with it. ``traced``: the kernel is traced meanwhile. ``prepared``: how it shares its
    files with other trials; None: it does not. ``turns``: of how many trials at the same time it is one. ``longer``:
    as in a ``Job``. ``work``: the workload's directory, when there is one. ``undo``: undoes, when it ends, what the
    trial has made.
    """

    cell: Cell
    key: TrialKey
    workspace: Workspace
    machine: Mapping[str, Any]
    traced: bool = False
    prepared: Prepared | None = None
    turns: int = 1
    longer: int = 1
    work: Path | None = None
    undo: Teardown = field(default_factory=Teardown)
    failure: FslabError | None = None
    metrics: dict[str, Value] = field(default_factory=dict)
    probes: dict[str, Value] = field(default_factory=dict)
    warnings: list[ValidityWarning] = field(default_factory=list)
    remade: bool = False
    caches_dropped: bool = True
    observed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parts: dict[str, RunPart] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    slices: Slices | None = None
    memory_held_bytes: int = 0
    _started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.workspace.commands.clear()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Make an error of the block this trial's failure, except what must end the campaign.

        What the kernel logged meanwhile about the devices that the trial's commands name is kept.
        """
        log = KernelMessages()
        try:
            yield
        except ABORT:
            raise
        except (FslabError, OSError) as error:
            if not (runtime := self.workspace.runtime).is_dir():
                what, hint = "was removed while a campaign used it", "resume the campaign"
                raise UnsafeError(what, where=str(runtime), hint=hint) from error
            words = {word for command in self.workspace.commands for word in command.argv}
            texts = [message.text for message in about(log.messages(), words)]
            self.observed.setdefault("kernel_log", tuple(texts[-KEPT_LINES:]))
            if self.failure is None:
                self.failure = error if isinstance(error, FslabError) else self._from_os_error(error)
                self._explain(self.failure, priority.killed_for_memory(texts))

    def _from_os_error(self, error: OSError) -> FslabError:
        """Return the error for an OSError of a broken or full file system under test, or of a workload that removed its
        own directory. Re-raise others: they are bugs."""
        if error.errno in FULL_DISK:
            return NoSpaceError(f"no space left: {error}", hint=LARGER_MEDIUM)
        if error.errno in BROKEN:
            return FslabError(f"the file system failed: {error}", hint="look at the kernel log (dmesg)")
        if self.work is not None and error.filename == str(self.work) and not self.work.is_dir():
            return ToolFailedError(
                "the workload has removed its directory", where=str(self.work), hint="let it stay"
            )
        raise error

    def check_ended(self) -> None:
        """Raise ToolFailedError if processes that the measured command started still run: its figures are then not of
        all its work. Those that ``prepare`` started are ended."""
        ended = waiting.until(lambda: not self.workspace.left("run"), ENDING_S, 0.05)
        if not ended and (left := self.workspace.left("run")):
            raise ToolFailedError(
                f"the command ended, but not what it had started: {process_marks.named(left)}",
                hint="let it wait for them, or end them; start servers in 'prepare', with cache: warm",
            )
        self.workspace.end_left()

    def keeper(self, *, files: bool) -> Callable[[], None] | None:
        """Return what to call when the file system is made, or has its files: None if nothing of it is kept then."""
        if self.prepared is None or self.prepared.copied or self.prepared.files != files:
            return None
        return self.prepared.keep

    def versions(self) -> dict[str, str | None]:
        """Return the version of each program that it runs."""
        return {tool.program: tools.version(tool) for tool in programs_of(self.cell)}

    def facts(self, up: Stack, reading: Reading, findings: Findings) -> TrialFacts:
        """Return the facts for the rules of validity."""
        machine, stack = self.machine, parsed_stack(self.cell.stack)
        changed_options, ignored_options = self._note_options(up, findings)
        traits = parsed(self.cell.workload).traits()
        kind = machine.get("machine", "host")
        return TrialFacts(
            work=reading,
            cold=self.cell.cache is Cache.COLD,
            figures=findings.values,
            texts=findings.texts,
            devices=up.devices,
            cpus=machine.get("cpus"),
            memory_bytes=machine.get("memory_bytes"),
            memory_limited=self.cell.stack.machine.limits_tool,
            caches_dropped=self.caches_dropped,
            remade=self.remade,
            changed_options=changed_options,
            ignored_options=ignored_options,
            filesystem=up.filesystem,
            # In a guest, the images of its disks are not seen.
            image_filesystem=disks.image_filesystem(self.cell, self.workspace) if kind == "host" else None,
            medium_buffered=up.buffered,
            volume_bytes=up.device.size_bytes if up.device else None,
            fair_volume_bytes=up.driver.fair_size_bytes if up.driver else None,
            probe_failures=findings.failures,
            machine=kind,
            accelerator=machine.get("accelerator"),
            disk_speed=stack.medium.speed(stack.medium_options),
            disk_faults=bool(self.cell.stack.medium.options.get("faults")),
            disk_fidelities=disks.fidelities(self.device),
            syncs=reading.counts.get("fsync", traits.syncs),
            threads=reading.threads or traits.parallel or 1,
            caches_writes=any(map(sysfs.flushed, up.watched)),
        )

    def record(self) -> TrialRecord:
        """Return the record of what came of it, with its share of the time of all trials at the same time."""
        failure = self.failure
        return TrialRecord(
            key=self.key,
            cell=self.cell,
            status=self._status(),
            failure=failure.failure.value if failure else None,
            error=str(failure) if failure else None,
            started=self._started,
            duration_s=(time.monotonic() - self._started_s) / self.turns,
            metrics=self.metrics,
            probes=self.probes,
            validity=tuple(self.warnings),
            provenance=Provenance(
                commands=tuple(self.workspace.commands),
                tools=self.versions(),
                machine=dict(self.machine),
                device=self.device,
                observed=self.observed,
                parts=self.parts,
                plugins=plugins_of(self.cell),
                slices=self.slices,
                memory_held_bytes=self.memory_held_bytes,
            ),
            raw=self.raw,
        )

    def _explain(self, failure: FslabError, killed: str | None) -> None:
        """Add to a failure what the failed program cannot know: that the kernel killed a process for lack of memory,
        that the medium has less room than its size, or that the study makes the disk fail."""
        faults = self.cell.stack.medium.options.get("faults")
        if killed:
            failure.what += f"; the kernel logged: {killed}"
            machine = self.cell.stack.machine
            more = (
                "raise 'guest_memory'" if machine.memory or machine.type != "host" else "end other programs"
            )
            failure.hint = f"{more}, or let the workload use less memory"
        elif failure.hint and failure.hint.startswith(LARGER_MEDIUM):
            planned = parsed_stack(self.cell.stack).medium_plan(self.workspace.images)
            if (planned.holds_bytes or 0) < (planned.size_bytes or 0):
                more = f"more '{planned.holds_key}' or a larger size"
                failure.hint = failure.hint.replace("a larger size", more, 1)
            if self.cell.stack.fill:
                failure.hint += ", or lower 'fill'"
        elif faults and failure.failure in BY_FAULTS:
            failure.hint = f"the study makes this disk fail ('faults: {faults}'): that can be the cause"

    def _status(self) -> Status:
        if self.failure is not None:
            return status_of(self.failure)
        if self.traced:
            return Status.TRACED
        invalid = any(warning.severity is Severity.INVALID for warning in self.warnings)
        return Status.INVALID if invalid else Status.OK

    def _has_commands(self) -> bool:
        """Return whether the study runs commands of its own."""
        own = parsed(self.cell.workload).own_commands(Job(directory=Path(), scratch=Path(), seed=0))
        return bool(own or self.cell.stack.after_mount)

    def _note_options(self, up: Stack, findings: Findings) -> tuple[dict[str, str | None], dict[str, str]]:
        """Return the mount options that are not in effect, and the reasons, by name, for those that the kernel ignores.

        Keep what stacks with the same effect have in common.
        """
        listed = findings.texts.get("mount_options", ())
        if up.driver is None or not listed:
            return {}, {}
        spec, features = self.cell.stack, up.facts.get("features") or ()
        asked = spec.mount_options
        others = up.abilities | ({COMMANDS} if self._has_commands() else set())
        ignored = options_in_effect.ignored(up.driver, listed, features, others)
        effect = options_in_effect.signature(up.driver, asked, listed, ignored)
        if effect is not None:
            self.observed |= {"options_in_effect": effect}
        changed = options_in_effect.changed(up.driver, asked, listed, ignored)
        return changed | options_in_effect.changed_features(up.driver, spec.mkfs_options, features), ignored


def status_of(failure: FslabError) -> Status:
    """Return the status of a trial that ended with this error."""
    return Status.UNSUPPORTED if failure.failure is FailureClass.UNSUPPORTED else Status.FAILED
