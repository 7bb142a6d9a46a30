"""Probe failed: a kernel source could not be read, so its figures are unknown. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ProbeFailed(TrialRule):
    """The figures of the probe are missing; the trial is still valid."""

    summary = "a probe could not read its source"
    severity = Severity.NOTE
    when = (
        "a kernel source could not be read; its figures are missing. No warning for counters that this "
        "kernel or CPU lacks"
    )

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        for failure in facts.probe_failures:
            yield self.warning(
                f"the probe '{failure.probe}' could not read its source: {failure.error}",
                probe=failure.probe, moment=failure.moment,
            )  # fmt: skip
