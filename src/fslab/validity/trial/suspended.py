"""Suspended: the machine was suspended during the run. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

# No suspend is shorter, because it freezes tasks and stops and restarts devices. A smaller difference is a delay
# between reading the two clocks (for example, the hypervisor took the guest's processor away).
_SHORTEST_S = 0.1


class Suspended(TrialRule):
    """During a suspend, devices lose their caches and their speed, and requests in flight wait."""

    summary = "the machine was suspended during the run"
    severity = Severity.INVALID
    when = f"the machine slept during the run, for {_SHORTEST_S:g} s or longer"
    needs = ("suspended",)
    hint = "keep the machine awake while it measures (systemd-inhibit)"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Use the difference of two clocks: CLOCK_BOOTTIME counts suspended time, CLOCK_MONOTONIC does not."""
        seconds = facts.known("suspended")
        if seconds >= _SHORTEST_S:
            yield self.warning(f"the machine was suspended for {seconds:.3g} s", suspended_s=seconds)
