"""CPU throttled: the processor reduced its speed because of heat or power. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class CpuThrottled(TrialRule):
    """Later trials then run on a slower machine than earlier ones."""

    summary = "the CPU throttled itself"
    severity = Severity.WARNING
    when = "the CPU counted throttling events during the run: it was too hot, or drew too much power"
    needs = ("cpu_throttle_events",)
    hint = "cool the machine, or limit its frequency for all trials alike"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        events = facts.known("cpu_throttle_events")
        if events > 0:
            yield self.warning(
                f"the CPU throttled itself {events:.0f} times, being too hot or drawing too much power",
                events=events,
            )
