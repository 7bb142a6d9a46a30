"""The evidence on one cell: probes of its usable trials, and its traced trial if that passed the checks. Pure.

A statement about a mechanism has a text, figures, the sources of the figures, and what would refute it.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from fslab.analysis.labels import stack_names
from fslab.analysis.table_rows import CHANGED
from fslab.analysis.usable_trials import is_usable
from fslab.analysis.workload_groups import groups, headline_metrics
from fslab.cell import Cell, Frozen
from fslab.errors import FslabError
from fslab.storage.parsed_stack import ParsedStack, parsed_stack
from fslab.trial_record import WHOLE, TrialRecord, ValidityWarning
from fslab.units import Direction, Unit, counted, format_value
from fslab.workloads import Traits, traits_of


class Certainty(StrEnum):
    """The certainty of a statement. Neither shows a cause: an ablation does.

    ``observed``: counted by the kernel. ``coincides``: seen together, which is not proof.
    """

    OBSERVED = "observed"
    COINCIDES = "coincides"


class EvidenceFigure(Frozen):
    """One figure: the median of ``n`` trials, their range from ``low`` to ``high``, and its source (``evidence``).

    ``shared``: it may include activity of others, so that a statement with it only coincides.
    """

    name: str
    value: float
    unit: Unit
    low: float | None = None
    high: float | None = None
    n: int = 1
    evidence: str
    shared: bool = False

    def __str__(self) -> str:
        spread = (
            f" ({format_value(self.low, self.unit)} to {format_value(self.high, self.unit)})"
            if self.low is not None and self.low != self.high
            else ""
        )
        return f"{self.name} {format_value(self.value, self.unit)}{spread} [{self.evidence}]"


class Explanation(Frozen):
    """A statement. ``text`` is for all readers, ``figures`` are for experts on the file system.

    ``refuted_by``: the measurement that would refute it; None if no option turns off what it is about. ``weight``:
    strength of the evidence, from 0, for sorting: ratios of unlike things, up to millions. ``takes``: the share of the
    run that it takes, where that is known. ``moves``: of what it reads or writes, the share of all bytes of the device
    in the run.
    """

    mechanism: str
    workload: str
    stack: str
    text: str
    figures: tuple[EvidenceFigure, ...]
    certainty: Certainty
    refuted_by: str | None = None
    weight: float = 0.0
    takes: float | None = None
    moves: float | None = None


# Figures from the method that split the traffic; the other figures of a trace come from its ring buffer.
OF_SPLIT = frozenset(
    {"traced_written_bytes", "traced_metadata_bytes", "traced_metadata_requests", "traced_off"}
)

# The mount option that has the same effect on files as an attribute of their directory. chattr(1), btrfs(5), ext4(5)
AS_OPTION = {"A": "noatime", "C": "nodatacow", "c": "compress", "j": "data=journal"}

DISTURBED = frozenset({"foreign_load", "cpu_stolen", "cpu_throttled", "suspended"})
OF_MACHINE = frozenset(
    {"kernel_threads_cpu", "machine_cpu_busy", "page_cache_dirtied_bytes", "page_cache_written_bytes"}
)
# Prefixes of figures that are of the whole disk or file system, if others use it, too.
OF_ALL = (
    "btrfs_", "delayed_allocation_", "device_", "fast_commit", "journal_", "read_amplification", "volume_",
    "write_amplification", "xfs_",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence on one cell. ``workload``, ``stack``: their displayed names. ``trials``: the usable ones.
    ``traced``: the newest traced trial."""

    cell: Cell
    workload: str
    stack: str
    trials: Sequence[TrialRecord]
    traced: TrialRecord | None = None

    @property
    def filesystem(self) -> str | None:
        """The file system; also that of an existing directory, as the trials found it."""
        return self.cell.stack.filesystem or self._of_device("filesystem")

    @property
    def mount_options(self) -> frozenset[str]:
        """The mount options in effect, as the kernel shows them, and those that were requested and that it followed."""
        observed = (trial.provenance.observed.get("mount_options") for trial in self.trials)
        shown = next(filter(None, observed), ())
        changed: dict[str, str | None] = {}
        for warning in self._warnings:
            changed |= warning.data.get("options", {}) if warning.kind == CHANGED else {}
        dropped = {option.partition("=")[0] for option, instead in changed.items() if instead is None}
        return frozenset(
            option
            for option in (*shown, *self.cell.stack.mount_options.split(","))
            if option not in changed and option.partition("=")[0] not in dropped
        )

    @property
    def file_options(self) -> frozenset[str]:
        """The mount options that files have the effect of: those in effect, and those that attributes stand for."""
        attributes = {AS_OPTION[each] for each in self.cell.stack.attributes if each in AS_OPTION}
        return self.mount_options | attributes

    @property
    def compresses(self) -> bool:
        """Whether an option or attribute makes the file system compress data. btrfs(5): not without copy-on-write."""
        options = (option.partition("=") for option in self.file_options)
        asked = any(name.startswith("compress") and how not in {"no", "none"} for name, _, how in options)
        return asked and "nodatacow" not in self.file_options

    @property
    def multiplied(self) -> bool:
        """Whether the disks receive more than the file system writes, because of the layout."""
        parsed = self._parsed
        return parsed is not None and bool(parsed.layout.multiplies(parsed.layout_options))

    @property
    def takes_stripe(self) -> bool:
        """Whether the layout has a stripe that mkfs can be told of."""
        parsed = self._parsed
        if parsed is None or parsed.filesystem is None or not parsed.filesystem.stripe_options:
            return False
        return (
            parsed.layout_plan([f"disk{index}" for index in range(parsed.disks)], "CAMPAIGN").stripe
            is not None
        )

    @property
    def stripes_in_use(self) -> bool:
        """Whether the file system aligns its writes to stripes: mkfs was told of them, or read them from the device."""
        return bool(self._of_device("stripes_in_use"))

    @property
    def has_parity(self) -> bool:
        """Whether the layout keeps parity."""
        parsed = self._parsed
        return parsed is not None and parsed.layout.parities > 0

    @cached_property
    def _parsed(self) -> ParsedStack | None:
        """The parts of the stack; None if fslab does not know one, or no longer accepts its options."""
        try:
            return parsed_stack(self.cell.stack)
        except (FslabError, ValueError):
            return None

    @property
    def zeros(self) -> bool:
        """Whether a check found that the workload writes nearly only zeros, and that they were not stored as data."""
        return self.warns("zeros_only")

    @property
    def traits(self) -> Traits:
        """What the workload does, as far as its tool derives it from the parameters."""
        return traits_of(self.cell.workload)

    @property
    def disks(self) -> int:
        """The number of disks, as the trials found them. Counts of devices are sums over them."""
        parts = self._of_device("parts")
        return len(parts) if isinstance(parts, list) else 1

    @property
    def disks_at_once(self) -> int:
        """The number of disks that work at the same time: one if the journal has its own, because a commit flushes the
        disk of the files before it writes its last block (``jbd2_journal_commit_transaction``)."""
        parsed = self._parsed
        return 1 if parsed is not None and parsed.layout.turns else self.disks

    @property
    def cpus(self) -> int:
        """The number of processors, as the trials found them; 1 if it is unknown."""
        return next(filter(None, (trial.provenance.machine.get("cpus") for trial in self.trials)), 1)

    @property
    def cpus_at_once(self) -> int:
        """The number of processors that the tool can use at the same time."""
        return min(self.traits.parallel or 1, self.cpus)

    @property
    def rotates(self) -> bool:
        """Whether the disk is a hard disk, as the kernel has it."""
        return bool(self._of_device("rotational"))

    @property
    def has_slc(self) -> bool:
        """Whether a virtual SSD has an SLC cache."""
        disks = self._of_device("virtual_disks") or ()
        return any(disk.get("figures", {}).get("slc") for disk in disks)

    @property
    def disturbed(self) -> bool:
        """Whether other programs, or another machine on the same hardware, took CPU time from a trial."""
        return self.warns(*DISTURBED)

    @property
    def _warnings(self) -> list[ValidityWarning]:
        return [warning for trial in self.trials for warning in trial.validity]

    def warns(self, *kinds: str) -> bool:
        """Return whether a trial has a warning of one of these kinds."""
        return any(warning.kind in kinds for warning in self._warnings)

    def _of_device(self, name: str) -> Any:
        """Return a fact of the device as the first trial has it that knows it; None without one."""
        return next(filter(None, (trial.provenance.device.get(name) for trial in self.trials)), None)

    def figure(self, name: str, as_named: str | None = None) -> EvidenceFigure | None:
        """Return a probe's figure over the usable trials; None unless every trial has it.

        A figure of the whole machine, or of a file system that others can use, as that of an existing directory, is
        also None if a trial was disturbed.
        """
        of_all = self.cell.stack.medium.type == "directory" and name.startswith(OF_ALL)
        if (of_all or name in OF_MACHINE) and self.disturbed:
            return None
        found = self._figure(name, as_named)
        if found is None or not of_all:
            return found
        whole = "disk" if name.startswith(("device_", "read_", "write_")) else "file system"
        evidence = f"{found.evidence}, of the whole {whole}"
        return found.model_copy(update={"evidence": evidence, "shared": True})

    def _figure(self, name: str, as_named: str | None) -> EvidenceFigure | None:
        values = self._each(lambda trial: _probe(trial, name))
        if not values:
            return None
        return EvidenceFigure(
            name=as_named or name.replace("_", " "), value=statistics.median(values),
            unit=self.trials[0].probes[name].unit, low=min(values), high=max(values), n=len(values),
            evidence=f"probe {name}, {counted(len(values), 'trial')}",
        )  # fmt: skip

    def value(self, name: str) -> float | None:
        found = self.figure(name)
        return None if found is None else found.value

    def of_trace(self, name: str, as_named: str | None = None) -> EvidenceFigure | None:
        """Return a figure of the traced trial; None if it does not exist, or if a check withdrew the trace."""
        record = self.traced
        if record is None or record.provenance.observed.get("trace_withdrawn"):
            return None
        found = record.probes.get(name)
        if found is None or found.value is None:
            return None
        method = (record.provenance.observed.get("trace_method") or ("no trace",))[0]
        source = method if name in OF_SPLIT else "trace ring, read afterwards"
        return EvidenceFigure(
            name=as_named or name.replace("_", " "),
            value=found.value,
            unit=found.unit,
            evidence=f"traced trial, {source if name.startswith('traced_') else f'probe {name}'}",
        )

    @property
    def written_bytes(self) -> float | None:
        """Bytes written by the application: the denominator of the write amplification."""
        found = self._each(_written_bytes)
        return statistics.median(found) if found else None

    def share_of_run(self, name: str, of: int = 1, without: str | None = None) -> float | None:
        """Return the share of the run that a time is, without the time ``without``; None if it is unknown. ``of``: the
        number of devices over which it is a sum, and which work at the same time: it is that of the slowest one, or if
        that is unknown, of each on average."""

        def of_one(trial: TrialRecord, name: str) -> float | None:
            slowest = _probe(trial, f"{name}_longest") if of > 1 else None
            whole = _probe(trial, name)
            return slowest if slowest is not None or whole is None else whole / of

        def share(trial: TrialRecord) -> float | None:
            whole, part = of_one(trial, name), (of_one(trial, without) if without else None) or 0.0
            return None if whole is None else _ratio(max(whole - part, 0.0), _run_s(trial))

        found = self._each(share) if self.figure(name) else []
        return min(statistics.median(found), 1.0) if found else None

    @property
    def run_s(self) -> float | None:
        """The time of which shares of the run are taken."""
        found = self._each(_run_s)
        return statistics.median(found) if found else None

    @property
    def moved_bytes(self) -> float | None:
        """Bytes that the devices read and wrote, with what was flushed after the run."""
        read, written = self.value("device_read_bytes"), self.value("device_written_bytes_flushed")
        return None if read is None or written is None else read + written

    @property
    def share_for_bytes(self) -> float | None:
        """The share of the run in which bytes may have been moved: in which the disks were busy or the tool was in the
        kernel, at most all of it."""
        disks = self.share_of_run("device_busy", self.disks_at_once)
        kernel = self.share_of_run("tool_cpu_system_s", self.cpus_at_once)
        return None if disks is None else min(disks + (kernel or 0.0), 1.0)

    @cached_property
    def times(self) -> tuple[float, ...]:
        """For each trial, a figure in proportion to the time of the same work on every stack: of its metrics in tables,
        of several the geometric mean. Empty if they have no better direction, or if one is unknown."""
        metrics = [
            each for each in headline_metrics(self.cell.workload) if each.better is not Direction.NEITHER
        ]

        def time(trial: TrialRecord) -> float | None:
            figures = [trial.metrics.get(each.name) for each in metrics]
            values = [figure.value for figure in figures if figure is not None and figure.value]
            if not metrics or len(values) < len(metrics) or min(values) <= 0:
                return None
            signs = [-1 if each.better is Direction.HIGHER else 1 for each in metrics]
            return statistics.geometric_mean(value**sign for value, sign in zip(values, signs, strict=True))

        return tuple(self._each(time))

    def syncs(self) -> float | None:
        """Return the number of fsyncs, as far as the parameters determine it."""
        found = self._each(self._syncs)
        return statistics.median(found) if found else None

    def per_sync(self, name: str, as_named: str) -> EvidenceFigure | None:
        """Return a count divided by the number of fsyncs, of each trial: in a set time, each makes another number."""
        figure = self.figure(name)
        values = self._each(lambda trial: _ratio(_probe(trial, name), self._syncs(trial)))
        if figure is None or not values:
            return None
        unit = Unit.BYTES if figure.unit is Unit.BYTES else Unit.RATIO
        scaled = {"value": statistics.median(values), "low": min(values), "high": max(values)}
        return figure.model_copy(update={"name": as_named, "unit": unit, **scaled})

    def _syncs(self, trial: TrialRecord) -> float | None:
        known = self.traits
        if known.syncs is not None:
            return known.syncs
        written = _written_bytes(trial)
        if not known.syncs_per_write or not written or not known.request_bytes:
            return None
        return (
            written / known.request_bytes[-1] * known.syncs_per_write
        )  # of two sizes, that of writes is last

    def _each(self, of: Callable[[TrialRecord], float | None]) -> list[float]:
        """Return a figure of each trial; nothing unless every one has it."""
        found = [of(trial) for trial in self.trials]
        return [] if None in found else [value for value in found if value is not None]


def _probe(trial: TrialRecord, name: str) -> float | None:
    figure = trial.probes.get(name)
    return None if figure is None else figure.value


def _run_s(trial: TrialRecord) -> float | None:
    """Return the time that the tool measured, without its start; of several parts, or if that is unknown, all of the
    run."""
    parts = trial.provenance.parts
    measured_s = _probe(trial, "clock_measured") if len(parts) == 1 else None
    return measured_s or (parts[WHOLE].seconds if WHOLE in parts else None)


def _written_bytes(trial: TrialRecord) -> float | None:
    return _ratio(_probe(trial, "device_written_bytes_flushed"), _probe(trial, "write_amplification"))


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


def evidence_of(
    cells: Sequence[Cell], trials: Sequence[TrialRecord], traced: Sequence[TrialRecord] = ()
) -> list[Evidence]:
    """Return the evidence on each cell with a trial, in the order of the plan. Only usable trials are included."""
    names = stack_names(cells)
    newest = {record.cell.id: record for record in traced if record.error is None}
    return [
        Evidence(
            cell=cell, workload=group.label, stack=names[stack], traced=newest.get(cell.id),
            trials=[trial for trial in group.trials[stack] if is_usable(trial)],
        )
        for group in groups(cells, trials)
        for stack, cell in group.cells.items()
        if group.trials[stack]
    ]  # fmt: skip
