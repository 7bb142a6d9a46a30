"""Warns where many files are open on the machine: something else is at work. Judges only."""

from __future__ import annotations

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import TrialFacts
from fslab.validity.trial import TrialRule


class ManyOpenFiles(TrialRule):
    """The limit is low, so that the test sees the warning."""

    summary = "other programs have files open"
    severity = Severity.NOTE
    needs = ("open_files",)
    hint = "stop other programs"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        count = facts.known("open_files")
        if count > 1:
            yield self.warning(f"{count:.0f} files are open on this machine", open_files=count)
