"""Collects why trials have warnings, are not compared or are missing: a numbered note per reason, with its places.

Warnings of one kind share a note for all workloads and stacks. Failures with one status share a note per stack.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fslab.analysis.usability import is_failed, is_invalid
from fslab.record import Severity, Status, TrialRecord, ValidityWarning
from fslab.report.model import Note, NotePlace
from fslab.validity.campaign import REGISTRY as CAMPAIGN_RULES
from fslab.validity.campaign import CampaignFinding
from fslab.validity.trial import REGISTRY as TRIAL_RULES

_BY_OTHERS = frozenset(rule.kind for _, rule in TRIAL_RULES if rule.by_others)
_SUMMARIES = {rule.kind: rule.summary for rules in (TRIAL_RULES, CAMPAIGN_RULES) for _, rule in rules}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reason:
    """A reason for a note. Reasons with the same ``key`` share a note, which shows the message of the first one."""

    key: tuple[str, ...]
    severity: str
    kind: str
    message: str
    hint: str | None = None


@dataclass(kw_only=True, slots=True)
class _Entry:
    reason: _Reason
    places: dict[tuple[str, str], NotePlace] = field(default_factory=dict)


class NoteBook:
    """The notes of one report, numbered in the order in which they first occur."""

    def __init__(self, labels: Mapping[str, str], found: Sequence[CampaignFinding] = ()) -> None:
        """``labels``: stack id → label. ``found``: what the rules find in all trials together."""
        self._labels = labels
        self._found = found
        self._series: dict[tuple[str, str, str], list[CampaignFinding]] = {}
        for each in found:
            if each.series is not None:
                place = (each.series.workload, each.series.stack, each.series.metric)
                self._series.setdefault(place, []).append(each)
        self._entries: dict[tuple[str, ...], _Entry] = {}

    def note(self, workload: str, stack: str, trials: Sequence[TrialRecord], metric: str) -> tuple[int, ...]:
        """Add notes about the trials of a workload on a stack. Returns the numbers of these notes, sorted.

        May be called again for another metric of the same trials: no trial counts twice.
        """
        counts: dict[tuple[str, ...], int] = {}
        for trial in [trial for trial in trials if not _is_plain(trial, metric)]:
            for reason in {reason.key: reason for reason in _reasons(trial, stack, metric)}.values():
                self._entries.setdefault(reason.key, _Entry(reason=reason))
                counts[reason.key] = counts.get(reason.key, 0) + 1
        for reason in self._of_series(workload, stack, metric):
            self._entries.setdefault(reason.key, _Entry(reason=reason))
            counts[reason.key] = len(trials)
        for key, count in counts.items():
            place = NotePlace(workload=workload, stack=self._labels[stack], count=count, of=len(trials))
            self._entries[key].places[(workload, stack)] = place
        order = list(self._entries)
        return tuple(sorted(order.index(key) + 1 for key in counts))

    def _of_series(self, workload: str, stack: str, metric: str) -> Iterator[_Reason]:
        for found in self._series.get((workload, stack, metric), ()):
            yield _reason_of(found.warning)

    def notes(self) -> tuple[Note, ...]:
        """Return all notes, by number. Notes about the whole campaign have no place and come last."""
        for found in self._found:
            if found.series is None:
                reason = _reason_of(found.warning)
                self._entries.setdefault(reason.key, _Entry(reason=reason))
        return tuple(
            Note(
                number=number,
                severity=entry.reason.severity,
                kind=entry.reason.kind,
                summary=_SUMMARIES.get(entry.reason.kind),
                by_others=entry.reason.kind in _BY_OTHERS,
                message=entry.reason.message,
                hint=entry.reason.hint,
                places=tuple(entry.places.values()),
            )
            for number, entry in enumerate(self._entries.values(), start=1)
        )


def _is_plain(trial: TrialRecord, metric: str) -> bool:
    """Return whether a trial needs no note. This is true for nearly all trials."""
    value = trial.metrics.get(metric)
    return trial.status is Status.OK and not trial.validity and value is not None and value.value is not None


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
    shown = {Severity.INVALID} if is_invalid(trial) else {Severity.WARNING, Severity.NOTE}
    warnings = [warning for warning in trial.validity if warning.severity in shown]
    yield from map(_reason_of, warnings)
    if is_invalid(trial) and not warnings:
        message = trial.error or "no reason given"
        yield _Reason(key=("invalid", stack), severity="invalid", kind="invalid", message=message)
    value = trial.metrics.get(metric)
    if not is_invalid(trial) and (value is None or value.value is None):
        yield _Reason(
            key=("unknown", metric),
            severity="unknown",
            kind="unknown",
            message=f"the tool did not report {metric}",
        )


def _reason_of(warning: ValidityWarning) -> _Reason:
    return _Reason(
        key=(warning.severity.value, warning.kind),
        severity=warning.severity.value,
        kind=warning.kind,
        message=warning.message,
        hint=warning.hint,
    )
