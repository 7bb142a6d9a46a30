"""CPU time of the whole machine while the tool ran: who used it, and whether there was any left.

Reads the first line of ``/proc/stat`` (proc_stat(5)), in ticks of all CPUs together. Only reads.
"""

from collections.abc import Mapping
from typing import ClassVar

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.record import Value
from fslab.units import Unit

# guest and guest_nice, which follow, are already in user and nice.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Cpu(Probe):
    """Shares of all CPUs, in percent.

    ``machine_cpu_busy_measured`` is of the measured part of the window: that holds the tool's start and end too,
    when it keeps one CPU busy at most, and the idle time of the others then is not held against saturation.
    iowait is unreliable: it is the time of an idle CPU on which a task last waited for I/O.
    """

    summary = "CPU time of the whole machine: user, system, iowait, interrupts, steal"
    moments: ClassVar[tuple[SnapshotMoment, ...]] = (SnapshotMoment.BEFORE, SnapshotMoment.END)

    def snapshot(self, target: Target) -> Snapshot:
        """Ticks by state since the machine started, and the number of CPUs."""
        lines = (target.proc / "stat").read_text().splitlines()
        ticks = [int(number) for number in lines[0].split()[1:]]
        cpus = sum(line.startswith("cpu") for line in lines) - 1
        return {**dict(zip(FIELDS, ticks, strict=False)), "cpus": cpus}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:
        """Shares of the time between the snapshots."""
        before, end = (taken[moment] for moment in self.moments)
        # A state may go back a little (iowait is known for it): that is no time at all.
        spent = {name: max(0, end[name] - before[name]) for name in FIELDS}
        whole = sum(spent.values())
        if not whole:
            return ProbeFinding(values={})
        shares = {
            "machine_cpu_user": spent["user"] + spent["nice"],
            "machine_cpu_system": spent["system"],
            "machine_cpu_irq": spent["irq"] + spent["softirq"],
            "machine_cpu_iowait": spent["iowait"],
            "machine_cpu_steal": spent["steal"],
            "machine_cpu_busy": whole - spent["idle"] - spent["iowait"],
        }
        percent = {name: 100 * ticks / whole for name, ticks in shares.items()}
        busy = _busy_while_measuring(whole, spent["idle"] + spent["iowait"], end["cpus"], work)
        percent["machine_cpu_busy_measured"] = busy
        return ProbeFinding(
            values={name: Value(value=share, unit=Unit.PERCENT) for name, share in percent.items()}
        )


def _busy_while_measuring(whole: float, idle: float, cpus: int, work: Work) -> float:
    """Percent of all CPUs that were busy in the measured part of the window; ``whole`` and ``idle`` in ticks."""
    measured_share = 1.0
    if work.measured_s is not None and 0 < work.measured_s < work.duration_s:
        measured_share = work.measured_s / work.duration_s
    idle_outside = whole * (1 - measured_share) * (cpus - 1) / cpus
    return 100 * (1 - max(0.0, idle - idle_outside) / (whole * measured_share))
