"""Clock source changed: the kernel went over to another clock during the run. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ClocksourceChanged(TrialRule):
    """The kernel does that when it finds the TSC unstable. Times up to then are wrong, and reading the clock,
    which happens twice per request, costs more from then on."""

    summary = "the kernel changed its clock source"
    severity = Severity.DOUBT
    hint: ClassVar[str] = "search the kernel log for 'clocksource', and measure again"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Names before and after."""
        names = facts.texts.get("clocksource", ())
        if len(set(names)) > 1:
            yield self.warning(
                f"the kernel changed its clock source from {names[0]} to {names[-1]}",
                before=names[0], after=names[-1],
            )  # fmt: skip
