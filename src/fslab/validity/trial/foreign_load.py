"""Foreign load: other programs used the CPUs while the tool ran. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

BUSY_PERCENT = 5.0
CONTENDED_PERCENT = 1.0
_WAITED_PERCENT = 20.0


class ForeignLoad(TrialRule):
    """Warn from 5 % of all CPUs on, or from 1 % on if tasks also waited for a CPU for 20 % of the time (PSI, "some").

    PSI does not show which tasks waited. So it counts only together with load of other programs.
    """

    summary = "other programs used the CPUs"
    severity = Severity.DOUBT
    needs = ("foreign_cpu",)
    hint = "stop the other programs, then measure again"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Name the programs that used the most CPU time."""
        share, waited = facts.known("foreign_cpu"), facts.figure("pressure_cpu_some")
        contended = share >= CONTENDED_PERCENT and waited is not None and waited >= _WAITED_PERCENT
        if share < BUSY_PERCENT and not contended:
            return
        programs = facts.texts.get("foreign_cpu", ())
        named = f", most of all {', '.join(programs)}" if programs else ""
        yield self.warning(
            f"other programs used {share:.0f} % of the CPUs{named}",
            foreign_percent=share, waited_percent=waited, programs=list(programs),
        )  # fmt: skip
