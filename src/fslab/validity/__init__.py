"""Validity: the rules that create all warnings about figures, one file per rule.

Workloads and probes provide facts (``facts.py``). The rules in ``trial/`` check one trial after it is measured. The
rules in ``campaign/`` check all trials of a campaign when a report is made. Nothing in this package reads the machine.
"""

from abc import ABC
from typing import Any, ClassVar

from fslab.record import Severity, ValidityWarning


class Rule(ABC):
    """One reason for a warning.

    The registry sets ``name`` from the name of the file. With underscores, it is the kind of the stored and displayed
    warnings. ``severity`` and ``hint`` are the defaults for its warnings. ``when``: the condition, with its limits, for
    the list of warnings (``study/document.py``).
    """

    name: str
    summary: ClassVar[str]
    when: ClassVar[str] = ""
    severity: ClassVar[Severity]
    hint: ClassVar[str | None] = None

    @property
    def kind(self) -> str:
        """The name with underscores: ``too_short`` for ``too-short``."""
        return self.name.replace("-", "_")

    def warning(
        self, message: str, *, severity: Severity | None = None, hint: str | None = None, **data: Any
    ) -> ValidityWarning:
        """Return a warning of this rule's kind; ``data`` holds the values on which it is based."""
        return ValidityWarning(
            kind=self.kind,
            severity=severity or self.severity,
            message=message,
            hint=hint or self.hint,
            data=data,
        )
