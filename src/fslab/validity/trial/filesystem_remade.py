"""File system remade: one that should have lived on was lost with an interrupted run. Judges only."""

from collections.abc import Iterator
from typing import ClassVar

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class FilesystemRemade(TrialRule):
    """Its age starts over."""

    summary = "the file system was lost and made again"
    severity = Severity.NOTE
    hint: ClassVar[str] = "run the study again without interruption if its ageing matters"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        if facts.remade:
            yield self.warning(
                "the file system that earlier trials used was lost when a run was interrupted, and was made again"
            )
