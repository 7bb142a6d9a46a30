"""Validity: the rules that create all warnings about figures, in one file per subject.

Workloads and probes provide facts (``facts.py``). The rules in ``trial_warnings/`` check a trial after it is measured.
Those in ``campaign_warnings.py`` check all trials of a campaign when a report is made. Nothing here reads the machine.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fslab.registry import FunctionEntry
from fslab.trial_record import Severity, ValidityWarning


class Issue:
    """What a rule found: the message of its warning, and the ``data`` on which it is based.

    ``severity`` and ``hint``: instead of those of the rule.
    """

    def __init__(
        self, message: str, *, severity: Severity | None = None, hint: str | None = None, **data: Any
    ) -> None:
        self.message = message
        self.severity = severity
        self.hint = hint
        self.data = data


Issues = Iterator[Issue]


class Rule(FunctionEntry):
    """One reason for a warning: a function that yields issues, usually one or none. Pure.

    Its name is the kind of the stored and displayed warnings, or in a plug-in the name of the entry point. ``severity``
    and ``hint`` are the defaults for its warnings. ``when``: the condition, with its limits, for the list of warnings
    (``study/reference_pages.py``).
    """

    def __init__(
        self,
        find: Callable[..., Any],
        summary: str,
        severity: Severity = Severity.WARNING,
        *,
        when: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(find)
        self._find = find
        self.summary = summary
        self.severity = severity
        self.when = when
        self.hint = hint

    @property
    def kind(self) -> str:
        """The name with underscores: ``too_short`` for ``too-short``."""
        return self.name.replace("-", "_")

    def warning(self, issue: Issue) -> ValidityWarning:
        return ValidityWarning(
            kind=self.kind,
            severity=issue.severity or self.severity,
            message=issue.message,
            hint=issue.hint or self.hint,
            data=issue.data,
        )
