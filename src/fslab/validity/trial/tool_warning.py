"""Tool warning: passes on the tool's own warnings. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ToolWarning(TrialRule):
    """The tool has more information about its own work than fslab."""

    summary = "the tool itself warns"
    severity = Severity.WARNING
    when = "what the tool itself warns of"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        for message in facts.work.messages:
            yield self.warning(message)
