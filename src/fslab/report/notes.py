"""Collects why trials are in doubt, left out or missing: one numbered note per reason, with where and how often.

Warnings of one kind share a note, whichever workload and stack they befell; failures share one per stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.soundness import is_failed, is_invalid
from fslab.record import Severity, TrialRecord
from fslab.report.model import Note, Place


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reason:
    """``key`` is what makes two reasons the same note; the message shown is that of the first."""

    key: tuple[str, ...]
    severity: str
    kind: str
    message: str
    hint: str | None = None


@dataclass(kw_only=True, slots=True)
class _Entry:
    reason: _Reason
    places: dict[tuple[str, str], Place] = field(default_factory=dict)


class NoteBook:
    """The notes of one report, numbered in the order in which they first come up."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """``labels`` maps stack ids to what they are called."""
        self._labels = labels
        self._entries: dict[tuple[str, ...], _Entry] = {}

    def note(self, workload: str, stack: str, trials: Sequence[TrialRecord], metric: str) -> tuple[int, ...]:
        """Note what is wrong with the trials of a workload on a stack; the numbers of these notes, sorted.

        May be asked again for another metric of the same trials: nothing is counted twice.
        """
        counts: dict[tuple[str, ...], int] = {}
        for trial in trials:
            for reason in {reason.key: reason for reason in _reasons(trial, stack, metric)}.values():
                self._entries.setdefault(reason.key, _Entry(reason=reason))
                counts[reason.key] = counts.get(reason.key, 0) + 1
        for key, count in counts.items():
            place = Place(workload=workload, stack=self._labels[stack], count=count, of=len(trials))
            self._entries[key].places[(workload, stack)] = place
        order = list(self._entries)
        return tuple(sorted(order.index(key) + 1 for key in counts))

    def notes(self) -> tuple[Note, ...]:
        """All notes, by number."""
        return tuple(
            Note(
                number=number,
                severity=entry.reason.severity,
                kind=entry.reason.kind,
                message=entry.reason.message,
                hint=entry.reason.hint,
                places=tuple(entry.places.values()),
            )
            for number, entry in enumerate(self._entries.values(), start=1)
        )


def _reasons(trial: TrialRecord, stack: str, metric: str) -> Iterator[_Reason]:
    if is_failed(trial):
        status = trial.status_text
        yield _Reason(
            key=(status, stack),
            severity=trial.status.value,
            kind=status,
            message=trial.error or "no reason given",
        )
        return
    shown = {Severity.INVALID} if is_invalid(trial) else {Severity.DOUBT, Severity.NOTE}
    warnings = [warning for warning in trial.validity if warning.severity in shown]
    for warning in warnings:
        yield _Reason(
            key=(warning.severity.value, warning.kind), severity=warning.severity.value, kind=warning.kind,
            message=warning.message, hint=warning.hint,
        )  # fmt: skip
    if is_invalid(trial) and not warnings:
        message = trial.error or "no reason given"
        yield _Reason(key=("invalid", stack), severity="invalid", kind="invalid", message=message)
    value = trial.metrics.get(metric)
    if not is_invalid(trial) and (value is None or value.value is None):
        yield _Reason(
            key=("unknown", metric),
            severity="unknown",
            kind="unknown",
            message=f"the tool did not tell {metric}",
        )
