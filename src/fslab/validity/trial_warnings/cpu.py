"""Rules about the CPUs: what else they did, and how fast they were."""

from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule

SATURATED_PERCENT = 97.0
BUSY_PERCENT = 5.0
CONTENDED_PERCENT = 1.0
WAITED_PERCENT = 20.0


def _busy_with_tool(facts: TrialFacts) -> bool:
    """Return whether all CPUs were busy while the tool measured, and hardly with other programs."""
    busy, foreign = facts.figure("machine_cpu_busy_measured"), facts.figure("foreign_cpu")
    return busy is not None and busy >= SATURATED_PERCENT and (foreign is None or foreign < BUSY_PERCENT)


def _busy_with_others(facts: TrialFacts) -> bool:
    """Return whether other programs used 5 % of all CPUs; or 1 % if tasks also waited for a CPU for 20 % of the time
    (PSI, "some"), although the tool did not keep all CPUs busy. PSI does not show which tasks waited."""
    share, waited = facts.figure("foreign_cpu"), facts.figure("pressure_cpu_some")
    if share is None:
        return False
    contended = share >= CONTENDED_PERCENT and waited is not None and waited >= WAITED_PERCENT
    return share >= BUSY_PERCENT or (contended and not _busy_with_tool(facts))


@rule(
    "CPU-bound: not a storage result",
    when=f"all CPUs were {SATURATED_PERCENT:g} % busy while the tool measured, less than "
    f"{BUSY_PERCENT:g} % with other programs: the result is CPU cost, not storage. Usual on "
    "`ram` media",
    needs=("machine_cpu_busy_measured",),
    hint="use fewer jobs or threads, or measure on a machine with more CPUs",
)
def cpu_saturated(facts: TrialFacts, busy: float) -> Issues:
    """A tool with one thread that saturates its own CPU causes no warning.

    Such a run compares how much work one CPU does, and the kernel's workers (loop, writeback, journal) use the other
    CPUs. If all CPUs are busy, the workers and the tool compete for CPU time. Then the figure depends on the number of
    CPUs as much as on the file system. Load of other programs is ``foreign-load``.
    """
    if _busy_with_tool(facts):
        yield Issue(
            f"all CPUs were busy ({busy:.0f} %): CPU-bound, this compares CPU cost, not storage",
            busy_percent=busy,
            cpus=facts.cpus,
        )


@rule(
    "other programs used the CPUs",
    when=f"other programs used {BUSY_PERCENT:g} % of the CPUs, or {CONTENDED_PERCENT:g} % "
    f"while tasks waited for a CPU for {WAITED_PERCENT:g} % of the time; daemons of the "
    "workload belong to the workload",
    needs=("foreign_cpu",),
    by_others=True,
    hint="stop the other programs, then measure again",
)
def foreign_load(facts: TrialFacts, share: float) -> Issues:
    """With other programs, busy CPUs say nothing about the tool: then this is the only warning about them."""
    if not _busy_with_others(facts):
        return
    programs = facts.texts.get("foreign_cpu", ())
    named = f", most of all {', '.join(programs)}" if programs else ""
    yield Issue(
        f"other programs used {share:.0f} % of the CPUs{named}",
        foreign_percent=share,
        waited_percent=facts.figure("pressure_cpu_some"),
        programs=list(programs),
    )


STOLEN_PERCENT = 5.0


@rule(
    "the hypervisor took CPU time",
    when=f"the hypervisor took {STOLEN_PERCENT:g} % or more of the time of all CPUs",
    needs=("machine_cpu_steal",),
    by_others=True,
    hint="measure when the host is quiet, or on bare metal",
)
def cpu_stolen(_: TrialFacts, stolen: float) -> Issues:
    """The share is of the time of all CPUs, including idle time: only CPU time that a guest needs can be stolen."""
    if stolen >= STOLEN_PERCENT:
        told = f"the hypervisor took {stolen:.0f} % of the CPU time for other guests"
        yield Issue(told, steal_percent=stolen)


STANDING_PERCENT = 3.0


@rule(
    "the guest's CPU stood still for a part of the run",
    when=f"the CPU of a guest lost {STANDING_PERCENT:g} % or more of the run in parts at less than half of "
    "its median speed",
    of_host=True,
    needs=("cpu_stood_still",),
    by_others=True,
    hint="measure when the host is quiet, or on bare metal",
)
def cpu_stood_still(_: TrialFacts, lost: float) -> Issues:
    """A loop on the guest's CPU took many times as long as usual, or had to wait, for a tenth of a second or more.

    Most runs have no such part, and the others lose up to a third of their time.
    """
    if lost >= STANDING_PERCENT:
        yield Issue(
            f"the guest's CPU stood still for {lost:.0f} % of the run, by a loop beside it: other guests of the "
            "host use it",
            lost_percent=lost,
            limit_percent=STANDING_PERCENT,
        )


@rule(
    "the CPU throttled itself",
    when="the CPU counted throttling events during the run: it was too hot, or drew too much power",
    needs=("cpu_throttle_events",),
    by_others=True,
    hint="cool the machine, or limit its frequency for all trials alike",
)
def cpu_throttled(_: TrialFacts, events: float) -> Issues:
    """Later trials then run on a slower machine than earlier ones."""
    if events > 0:
        yield Issue(
            f"the CPU throttled itself {events:.0f} times, being too hot or drawing too much power",
            events=events,
        )


MOVED_PERCENT = 40.0


@rule(
    "the machine's own speed changed during the run",
    when=f"a fixed loop of system calls and copies, before and after the run, differed by {MOVED_PERCENT:g} "
    "% or more: something that no counter of a guest shows takes cache, memory bandwidth or CPU time",
    needs=("reference_moved",),
    by_others=True,
    hint="measure when the host is idle; comparisons by block remove slow changes",
)
def noisy_neighbour(_: TrialFacts, moved: float) -> Issues:
    """A fixed loop in memory ran before and after the run.

    On an idle guest, the worst of 40 loops took 1.5 times as long as the best; the limit follows from this. The warning
    is only a warning, because work that the run left to kernel threads also slows the second loop.
    """
    if moved >= MOVED_PERCENT:
        yield Issue(
            f"the speed of a fixed loop before and after the run differed by {moved:.0f} %: something else uses "
            "cache, memory bandwidth or CPU time",
            moved_percent=moved,
            limit_percent=MOVED_PERCENT,
        )
