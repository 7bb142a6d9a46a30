"""Runs all probes around one run: snapshots at each moment, findings at the end.

A failed probe loses only its own figures and is recorded. It never fails the trial.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from fslab.campaign import tool_output
from fslab.campaign.run_samples import Ran, RunSamples
from fslab.probes import REGISTRY as PROBES
from fslab.probes import Snapshot, SnapshotMoment, Target, Work
from fslab.storage.filesystems import others_in_log
from fslab.storage.mounted_stack import Stack
from fslab.system import kernel_log, proc
from fslab.tracing import Trace, figures
from fslab.tracing.tracer import Tracer
from fslab.trial_record import RunPart, Value
from fslab.units import Unit
from fslab.validity.facts import ProbeFailure


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """The results of all probes: values and texts by name, what happened in each part of the run, the failed probes."""

    values: dict[str, Value]
    texts: dict[str, tuple[str, ...]]
    failures: tuple[ProbeFailure, ...]
    parts: dict[str, RunPart] = field(default_factory=dict)


@dataclass(slots=True)
class Watch:
    """The probes that watch one stack. ``traced``: also trace the kernel, which costs speed. ``alone``: no other trial
    runs at the same time.

    ``log``: the file, in the directory ``scratch`` (a descriptor), in which the tool logs every operation when traced.
    """

    stack: Stack
    traced: bool = False
    alone: bool = True
    scratch: int | None = None
    log: str | None = None
    taken: dict[str, dict[SnapshotMoment, Snapshot]] = field(default_factory=lambda: defaultdict(dict))
    failures: list[ProbeFailure] = field(default_factory=list)
    tracer: Tracer | None = None
    trace: Trace | None = None
    below: tuple[str, ...] = ()
    others_in_log: tuple[str, ...] = ()
    samples: RunSamples = field(default_factory=RunSamples)

    def __post_init__(self) -> None:
        """Find out what does not change during the trial, so that no snapshot takes time for it."""
        self.below = kernel_log.below(self.stack.devices)
        driver = self.stack.driver
        self.others_in_log = others_in_log(driver.mount_type if driver else self.stack.filesystem)
        self.samples.of_machine = self.alone

    def close(self) -> None:
        """Stop tracing, and leave the kernel as it was. Can be called twice."""
        if self.tracer is not None:
            self.tracer.close()

    def target(self) -> Target:
        stack = self.stack
        volume = stack.device.kernel_name if stack.device else next(iter(stack.watched), None)
        return Target(
            devices=stack.watched, filesystem=None if stack.raw else stack.filesystem,
            directory=stack.work, volume=volume, below=self.below, others_in_log=self.others_in_log,
            empty_bytes=stack.empty_bytes, mark=stack.workspace.mark, thorough=self.traced,
        )  # fmt: skip

    def snapshot(self, moment: SnapshotMoment) -> None:
        """Take the snapshot of every probe that reads at this moment."""
        target = self.target()
        if self.traced and moment is SnapshotMoment.BEFORE:
            ring = f"fslab-{self.stack.workspace.campaign}-trace"
            self.stack.workspace.will_make("trace", ring)
            self.tracer = Tracer(devices=target.devices, volume=target.volume, ring=ring)
            self.tracer.start()
        before = moment is SnapshotMoment.BEFORE
        if moment is SnapshotMoment.END:
            self.samples.end(target)
        for name, probe in sorted(PROBES, key=lambda item: item[1].outermost, reverse=before):
            if moment in probe.moments and (self.alone or not probe.of_machine):
                try:
                    self.taken[name][moment] = probe.snapshot(target)
                except (OSError, ValueError) as error:
                    failure = ProbeFailure(probe=name, moment=moment.value, error=str(error))
                    self.failures.append(failure)
        if before:
            self.samples.begin(target)
        if self.tracer is not None and moment is SnapshotMoment.FLUSHED:
            self.trace = self.tracer.stop()

    def look(self, running: proc.Running) -> None:
        """Take a sample if it is time to. Call it often while the tool runs."""
        self.samples.look(self.target, running)

    def derive(self, work: Work, ran: Ran) -> Findings:
        """Return what the differences between the snapshots, and the samples, mean; ``work``: what the workload did."""
        values: dict[str, Value] = {}
        texts: dict[str, tuple[str, ...]] = {}
        for name, probe in PROBES:
            if set(probe.moments) <= set(self.taken[name]):
                finding = probe.derive(self.taken[name], work)
                values.update(finding.values)
                texts.update(finding.texts)
        if self.trace is not None:
            values |= figures.values(self.trace, self._operations(self.trace))
            texts |= figures.texts(self.trace)
        busy = self.samples.busy_percent(ran.reading)
        if busy is not None:
            values["machine_cpu_busy_measured"] = Value(value=busy, unit=Unit.PERCENT)
        return Findings(
            values=values, texts=texts, failures=tuple(self.failures), parts=self.samples.parts(ran)
        )

    def _operations(self, trace: Trace) -> figures.Operations | None:
        """Return which operations coincide with journal commits. None if nothing was committed or logged."""
        if self.log is None or self.scratch is None or trace.ring is None or not trace.ring.commits_s:
            return None
        operations = tool_output.operations(self.log, self.scratch)
        return None if operations is None else figures.coincidence(trace.ring.commits_s, operations)
