"""Disk late: the machine was too slow for the virtual disk that it served. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import Unit, format_value
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

SHARE = 0.03


class DiskLate(TrialRule):
    """The server thread needs a CPU at the right moment to answer at the time that the model gives."""

    summary = "the virtual disk answered later than its model says"
    severity = Severity.WARNING
    when = (
        f"a virtual disk answered late by more than {SHARE:.0%} of its model's mean service time, on average"
    )
    of_host = True
    hint = "measure when the machine is idle, or use a slower profile"
    needs = ("disk_late_mean", "disk_service_mean")

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Use the mean, because rates depend on it."""
        late, service = facts.known("disk_late_mean"), facts.known("disk_service_mean")
        if late > SHARE * service:
            yield self.warning(
                f"the virtual disk's answers were {format_value(late, Unit.NANOSECONDS)} late on average; its model's "
                f"mean service time is {format_value(service, Unit.NANOSECONDS)}",
                late_ns=late, service_ns=service,
            )  # fmt: skip
