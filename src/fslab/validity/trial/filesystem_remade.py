"""File system remade: an interrupted run lost a file system that should have been kept. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class FilesystemRemade(TrialRule):
    """The new file system is not aged."""

    summary = "the file system was lost and made again"
    severity = Severity.NOTE
    when = (
        "`fresh: cell` or `campaign`: the file system was lost with an interrupted run, and is not aged "
        "any more"
    )
    hint = "run the study again without interruption if its ageing matters"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        if facts.remade:
            yield self.warning(
                "the file system that earlier trials used was lost when a run was interrupted, and was made again"
            )
