"""Disk too fast: a virtual disk's fastest request takes less time than the round trip to it. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.units import Unit, format_value
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

TOO_FAST = "too-fast"


class DiskTooFast(TrialRule):
    """The round trip to the disk's server is measured before each trial."""

    summary = "the virtual disk is faster than this machine can serve"
    severity = Severity.WARNING
    when = (
        "the round trip to a virtual disk, measured before the trial, takes longer than its model's "
        "fastest request"
    )
    of_host = True
    hint = "use a slower profile, or a lower 'speed'"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Name both times."""
        for fidelity in facts.disk_fidelities:
            if fidelity.get("verdict") == TOO_FAST:
                trip, fastest = fidelity["round_trip_ns"]["p50"], fidelity["fastest_request_ns"]
                yield self.warning(
                    f"the round trip to the virtual disk takes {format_value(trip, Unit.NANOSECONDS)}, but the fastest "
                    f"request of its model only {format_value(fastest, Unit.NANOSECONDS)}",
                    round_trip_ns=trip, fastest_request_ns=fastest,
                )  # fmt: skip
                return
