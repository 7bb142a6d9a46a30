"""Who kept the CPUs busy: the tool or other programs. Pure. At most one of the two rules gives a warning."""

from fslab.validity.facts import TrialFacts

SATURATED_PERCENT = 97.0
BUSY_PERCENT = 5.0
CONTENDED_PERCENT = 1.0
WAITED_PERCENT = 20.0


def by_tool(facts: TrialFacts) -> bool:
    """Return whether all CPUs were busy while the tool measured, and hardly with other programs."""
    busy, foreign = facts.figure("machine_cpu_busy_measured"), facts.figure("foreign_cpu")
    return busy is not None and busy >= SATURATED_PERCENT and (foreign is None or foreign < BUSY_PERCENT)


def by_others(facts: TrialFacts) -> bool:
    """Return whether other programs used 5 % of all CPUs; or 1 % if tasks also waited for a CPU for 20 % of the time
    (PSI, "some"), although the tool did not keep all CPUs busy. PSI does not show which tasks waited."""
    share, waited = facts.figure("foreign_cpu"), facts.figure("pressure_cpu_some")
    if share is None:
        return False
    contended = share >= CONTENDED_PERCENT and waited is not None and waited >= WAITED_PERCENT
    return share >= BUSY_PERCENT or (contended and not by_tool(facts))
