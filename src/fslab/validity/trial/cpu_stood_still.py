"""CPU stood still: the CPU of a guest did nearly nothing for a part of the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

STANDING_PERCENT = 3.0


class CpuStoodStill(TrialRule):
    """A loop on the guest's CPU took many times as long as usual, or had to wait, for a tenth of a second or more.

    Most runs have no such part, and the others lose up to a third of their time.
    """

    summary = "the guest's CPU stood still for a part of the run"
    severity = Severity.WARNING
    when = (
        f"the CPU of a guest lost {STANDING_PERCENT:g} % or more of the run in parts at less than half of "
        "its median speed"
    )
    of_host = True
    needs = ("cpu_stood_still",)
    hint = "measure when the host is quiet, or on bare metal"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Warn if the run lost 3 % of its time or more."""
        lost = facts.known("cpu_stood_still")
        if lost >= STANDING_PERCENT:
            yield self.warning(
                f"the guest's CPU stood still for {lost:.0f} % of the run, by a loop beside it: other guests of the "
                "host use it",
                lost_percent=lost, limit_percent=STANDING_PERCENT,
            )  # fmt: skip
