"""Promise broken: a power cut lost or damaged data that was promised to persist. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule

_SHOWN = 3


class PromiseBroken(TrialRule):
    """The figures are correct, but the file system, its options or the disk is not reliable."""

    summary = "a power cut broke a promise of POSIX or of the file system"
    severity = Severity.WARNING
    when = "after a simulated power cut, data that was promised to persist is lost or damaged"
    hint = "make the state again and look at its image: fslab crash replay ID"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        for text in facts.work.promises_broken[:_SHOWN]:
            yield self.warning(text)
