"""Warns where many files are open on the machine: something else is at work."""

from __future__ import annotations

from fslab.trial_record import Severity
from fslab.validity import Issue, Issues
from fslab.validity.facts import TrialFacts
from fslab.validity.trial_warnings import rule


@rule("other programs have files open", Severity.NOTE, needs=("open_files",), hint="stop other programs")
def many_open_files(_: TrialFacts, count: float) -> Issues:
    """The limit is low, so that the test sees the warning."""
    if count > 1:
        yield Issue(f"{count:.0f} files are open on this machine", open_files=count)
