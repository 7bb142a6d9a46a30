"""Wrong answer: the tool found other data on the file system than was written. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class WrongAnswer(TrialRule):
    """The time of an operation with a wrong answer is not a result."""

    summary = "an operation returned a wrong answer"
    severity = Severity.INVALID
    when = "an operation of the engine returned an answer that differs from the ground-truth manifest"
    hint = (
        "the file system lost or changed data, another program changes the directory, or the engine has a bug"
    )

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Report all wrong keys of the answer in one warning."""
        wrong = facts.work.wrong
        if wrong:
            listed = "; ".join(
                f"{key}: found {found}, correct is {truth}" for key, (found, truth) in wrong.items()
            )
            data = {key: {"found": found, "truth": truth} for key, (found, truth) in wrong.items()}
            yield self.warning(f"the operation's answer is wrong: {listed}", answers=data)
