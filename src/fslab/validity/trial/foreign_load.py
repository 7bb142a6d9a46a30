"""Foreign load: other programs of the machine used its CPUs while the tool ran. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

BUSY_PERCENT = 5.0
CONTENDED_PERCENT = 1.0
_WAITED_PERCENT = 20.0


class ForeignLoad(TrialRule):
    """From a twentieth of all CPUs on; from a hundredth on where tasks also waited for a CPU for a fifth of the
    time (PSI, "some"): that says that somebody waited, not who, hence it counts only beside others' work."""

    summary = "other programs used the CPUs"
    severity = Severity.DOUBT
    needs: ClassVar[tuple[str, ...]] = ("foreign_cpu",)
    hint: ClassVar[str] = "stop the other programs, then measure again"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """The heaviest are named."""
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
