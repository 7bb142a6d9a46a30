"""Validity: every reason to doubt a figure, one small file each, made here and nowhere else.

Workloads and probes hand over facts (``facts.py``); the rules in ``trial/`` judge one trial when it has been
measured, those in ``campaign/`` all trials of a campaign when a report is made. Nothing here reads a machine.
"""

from abc import ABC
from typing import Any, ClassVar

from fslab.record import Severity, ValidityWarning


class Rule(ABC):
    """One reason for doubt. ``name`` is set by the registry from the file's name; with underscores it is the
    kind of the warnings, as they are stored and shown.

    ``severity`` and ``hint`` are those of its warnings where a single one does not say otherwise.
    """

    name: str
    summary: ClassVar[str]
    severity: ClassVar[Severity]
    hint: ClassVar[str | None] = None

    @property
    def kind(self) -> str:
        """``too_short`` of ``too-short``."""
        return self.name.replace("-", "_")

    def warning(
        self, message: str, *, severity: Severity | None = None, hint: str | None = None, **data: Any
    ) -> ValidityWarning:
        """A warning of this rule's kind; ``data`` is what it rests on."""
        return ValidityWarning(
            kind=self.kind,
            severity=severity or self.severity,
            message=message,
            hint=hint or self.hint,
            data=data,
        )
