"""CPU time of the whole machine while the tool ran: what used it, and how much was idle.

Reads the first line of ``/proc/stat`` (proc_stat(5)), in ticks of all CPUs together. Only reads.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work, figures
from fslab.units import Unit

# The next fields, guest and guest_nice, are already included in user and nice.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Cpu(Probe):
    """Shares of all CPUs, in percent.

    The window also contains the start and the end of the tool; the share that was busy in its measured part is
    ``machine_cpu_busy_measured``, from the samples during the run (``campaign.run_samples``).
    iowait is unreliable: it is the time of an idle CPU on which a task last waited for I/O.
    """

    of_machine = True
    summary = "CPU time of the whole machine: user, system, iowait, interrupts, steal"

    def snapshot(self, target: Target) -> Snapshot:
        """Return the ticks by state since the machine started, and the number of CPUs."""
        lines = (target.proc / "stat").read_text().splitlines()
        ticks = [int(number) for number in lines[0].split()[1:]]
        cpus = sum(line.startswith("cpu") for line in lines) - 1
        return {**dict(zip(FIELDS, ticks, strict=False)), "cpus": cpus}

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Compute shares of the time between the snapshots."""
        before, end = (taken[moment] for moment in self.moments)
        # A counter may decrease a little (iowait is known for it); this counts as 0.
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
        return ProbeFinding(values=figures(Unit.PERCENT, **percent))
