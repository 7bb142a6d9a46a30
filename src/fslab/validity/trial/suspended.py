"""Suspended: the machine slept during the run. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

# Tasks are frozen and devices stopped and started again: no suspend is shorter. Less is two clocks read one after the
# other, with something in between (a guest's processor was taken away).
_SHORTEST_S = 0.1


class Suspended(TrialRule):
    """Devices lose their caches and their speed, requests in flight wait."""

    summary = "the machine was suspended during the run"
    severity = Severity.INVALID
    needs: ClassVar[tuple[str, ...]] = ("suspended",)
    hint: ClassVar[str] = "keep the machine awake while it measures (systemd-inhibit)"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """CLOCK_BOOTTIME counts suspended time, CLOCK_MONOTONIC does not."""
        seconds = facts.known("suspended")
        if seconds >= _SHORTEST_S:
            yield self.warning(f"the machine was suspended for {seconds:.3g} s", suspended_s=seconds)
