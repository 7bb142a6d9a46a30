"""Mechanisms of the CPU, and of threads that wait for each other. Pure."""

from collections.abc import Iterator

from fslab.explain.evidence import Certainty, Evidence, EvidenceFigure, Explanation
from fslab.explain.mechanisms import SLIGHT, Mechanism
from fslab.units import Unit, format_value
from fslab.workloads import Switchable


class KernelCpu(Mechanism):
    """CPU time of the tool in the kernel, getrusage(2): system calls, copies, checksums, searches, spinning for locks.

    It does not include kernel threads: see ``KernelThreads``.
    """

    summary = "CPU time in the kernel"
    cause = "CPU time in the kernel"
    writing = False
    general = True
    needs = ("tool_cpu_system_s",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        cpu = evidence.figure("tool_cpu_system_s", "system CPU time of the tool")
        share = evidence.share_of_run("tool_cpu_system_s", evidence.cpus_at_once)
        if text := _in_words("The tool used {} of CPU time in the kernel", cpu, share, evidence.cpus_at_once):
            yield self.explanation(evidence, text, cpu, takes=share)


class KernelThreads(Mechanism):
    """CPU time of kernel threads, proc_pid_stat(5): they write back, compress, encrypt, compute parity, serve loops.

    Others than those of the trial are included, so that it is unknown on a machine that was busy.
    """

    summary = "CPU time of kernel threads"
    cause = "CPU time of kernel threads"
    writing = False
    general = True
    needs = ("kernel_threads_cpu",)

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        cpu = evidence.figure("kernel_threads_cpu", "CPU time of kernel threads")
        share = evidence.share_of_run("kernel_threads_cpu", evidence.cpus)
        said = "Kernel threads, such as those that write back, used {} of CPU time"
        if text := _in_words(said, cpu, share, evidence.cpus):
            yield self.explanation(evidence, text, cpu, takes=share)


def _in_words(said: str, cpu: EvidenceFigure | None, share: float | None, at_once: int) -> str | None:
    """Return the statement of a CPU time and its share of the run; None if it is slight or unknown."""
    if cpu is None or share is None or share < SLIGHT:
        return None
    each = f" of each of {at_once} CPUs" if at_once > 1 else ""
    return f"{said.format(format_value(cpu.value, Unit.SECONDS))}: {100 * share:.0f} % of the run{each}."


class LockContention(Mechanism):
    """Threads that wait for each other: for a lock on a directory, an inode or a log.

    Waiting for locks and waiting for I/O both show as voluntary context switches.
    """

    summary = "threads wait for locks or I/O"
    cause = "parallel threads"
    alters = True
    off_by = Switchable.SERIAL
    needs = ("tool_voluntary_switches", "machine_cpu_busy")

    def applies(self, evidence: Evidence) -> bool:
        return (evidence.traits.parallel or 1) > 1

    def state(self, evidence: Evidence) -> Iterator[Explanation]:
        switches, cpu = evidence.figure("tool_voluntary_switches"), evidence.figure("machine_cpu_busy")
        if switches is not None and cpu is not None and switches.value > 10_000 and cpu.value < 90:
            text = f"The threads waited {switches.value:.0f} times, for locks or I/O, while CPUs were idle."
            yield self.explanation(evidence, text, switches, cpu, weight=0.1, certainty=Certainty.COINCIDES)
