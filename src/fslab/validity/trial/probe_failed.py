"""Probe failed: a source of the kernel's could not be read, and its figures are unknown. Judges only."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ProbeFailed(TrialRule):
    """It costs the figures, not the trial."""

    summary = "a probe could not read its source"
    severity = Severity.NOTE

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        for failure in facts.probe_failures:
            yield self.warning(
                f"the probe '{failure.probe}' could not read its source: {failure.error}",
                probe=failure.probe, moment=failure.moment,
            )  # fmt: skip
