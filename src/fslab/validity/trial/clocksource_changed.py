"""Clock source changed: the kernel switched to another clock during the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ClocksourceChanged(TrialRule):
    """The kernel switches the clock source when it finds the TSC unstable.

    Times before the switch are wrong. After it, reading the clock, which happens twice per request, takes longer.
    """

    summary = "the kernel changed its clock source"
    severity = Severity.WARNING
    when = (
        "the name of the clock source differs before and after the run: times before the change can be wrong"
    )
    hint = "search the kernel log for 'clocksource', and measure again"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Compare the names before and after the run."""
        names = facts.texts.get("clocksource", ())
        if len(set(names)) > 1:
            yield self.warning(
                f"the kernel changed its clock source from {names[0]} to {names[-1]}",
                before=names[0], after=names[-1],
            )  # fmt: skip
