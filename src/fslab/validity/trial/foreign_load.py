"""Foreign load: other programs used the CPUs while the tool ran. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule, _cpu_use


class ForeignLoad(TrialRule):
    """With other programs, busy CPUs say nothing about the tool: then this is the only warning about them."""

    summary = "other programs used the CPUs"
    severity = Severity.WARNING
    when = (
        f"other programs used {_cpu_use.BUSY_PERCENT:g} % of the CPUs, or {_cpu_use.CONTENDED_PERCENT:g} % "
        f"while tasks waited for a CPU for {_cpu_use.WAITED_PERCENT:g} % of the time; daemons of the "
        "workload belong to the workload"
    )
    needs = ("foreign_cpu",)
    hint = "stop the other programs, then measure again"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Name the programs that used the most CPU time."""
        share, waited = facts.known("foreign_cpu"), facts.figure("pressure_cpu_some")
        if not _cpu_use.by_others(facts):
            return
        programs = facts.texts.get("foreign_cpu", ())
        named = f", most of all {', '.join(programs)}" if programs else ""
        yield self.warning(
            f"other programs used {share:.0f} % of the CPUs{named}",
            foreign_percent=share, waited_percent=waited, programs=list(programs),
        )  # fmt: skip
