"""Operations failed: the tool skipped files that disappeared or could not be used. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class OperationsFailed(TrialRule):
    """The tool did less work than its rate assumes."""

    summary = "files disappeared or could not be used during the run"
    severity = Severity.INVALID
    when = "the tool skipped files that had disappeared or could not be used"
    hint = "another program changes the directory under test"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        failed = {name: count for name, count in facts.work.errors.items() if count}
        if failed:
            listed = ", ".join(f"{name} {count}" for name, count in failed.items())
            yield self.warning(f"files disappeared or could not be used: {listed}", errors=failed)
