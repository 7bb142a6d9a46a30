"""Collects why trials have warnings, are not compared or are missing: a numbered note per reason, with its places.

Warnings of one kind share a note for all workloads and stacks, but for options that are not in effect. Failures
share a note if their status and their reason are the same, but for its numbers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fslab.analysis.usable_trials import is_failed, is_invalid
from fslab.report.model import Note, NotePlace
from fslab.trial_record import Severity, Status, TrialRecord, ValidityWarning
from fslab.validity.campaign_warnings import REGISTRY as CAMPAIGN_RULES
from fslab.validity.campaign_warnings import CampaignFinding
from fslab.validity.trial_warnings import REGISTRY as TRIAL_RULES

_NUMBER = re.compile(r"\d+")
_PERCENTILE = re.compile(r"_p\d")
_BY_OTHERS = frozenset(rule.kind for _, rule in TRIAL_RULES if rule.by_others)
SUMMARIES = {rule.kind: rule.summary for rules in (TRIAL_RULES, CAMPAIGN_RULES) for _, rule in rules}


Key = tuple[str, ...]


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
        # Reasons with the same key share a note, which shows the message of the first one.
        self._notes: dict[Key, Note] = {}
        self._vary: set[Key] = set()
        self._places: dict[Key, dict[tuple[str, str], NotePlace]] = {}

    def note(self, workload: str, stack: str, trials: Sequence[TrialRecord], metric: str) -> tuple[int, ...]:
        """Add notes about the trials of a workload on a stack. Returns the numbers of these notes, sorted.

        May be called again for another metric of the same trials: no trial counts twice.
        """
        counts: dict[Key, int] = {}
        for trial in [trial for trial in trials if not _is_plain(trial, metric)]:
            for key, found in dict(_reasons(trial, metric)).items():
                self._add(key, found)
                counts[key] = counts.get(key, 0) + 1
        for one in self._series.get((workload, stack, metric), ()):
            key, found = _reason_of(one.warning)
            self._add(key, found)
            counts[key] = len(trials)
        for key, count in counts.items():
            place = NotePlace(workload=workload, stack=self._labels[stack], count=count, of=len(trials))
            self._places.setdefault(key, {})[workload, stack] = place
        order = list(self._notes)
        return tuple(sorted(order.index(key) + 1 for key in counts))

    def notes(self) -> tuple[Note, ...]:
        """Return all notes, by number. Notes about the whole campaign have no place and come last."""
        for one in self._found:
            if one.series is None:
                self._add(*_reason_of(one.warning))
        return tuple(
            found.model_copy(
                update={
                    "number": number,
                    "places": tuple(self._places.get(key, {}).values()),
                    "message": f"for example, {found.message}" if key in self._vary else found.message,
                }
            )
            for number, (key, found) in enumerate(self._notes.items(), start=1)
        )

    def _add(self, key: Key, found: Note) -> None:
        differs = self._notes.setdefault(key, found).message != found.message
        if differs and found.severity in set(Severity):  # failures of one note differ in process ids
            self._vary.add(key)


def _is_plain(trial: TrialRecord, metric: str) -> bool:
    """Return whether a trial needs no note. This is true for nearly all trials."""
    value = trial.metrics.get(metric)
    return trial.status is Status.OK and not trial.validity and value is not None and value.value is not None


def _reasons(trial: TrialRecord, metric: str) -> Iterator[tuple[Key, Note]]:
    """Yield the reasons why a trial needs notes, each with the key of its note."""
    unexplained = trial.error or "no reason given"
    reason = _NUMBER.sub("", unexplained)
    if is_failed(trial):
        status = trial.status_text
        yield (status, reason), _note(trial.status.value, status, unexplained)
        return
    shown = {Severity.INVALID} if is_invalid(trial) else {Severity.WARNING, Severity.NOTE}
    warnings = [warning for warning in trial.validity if warning.severity in shown]
    yield from map(_reason_of, warnings)
    if is_invalid(trial) and not warnings:
        yield ("invalid", reason), _note("invalid", "invalid", unexplained)
    value = trial.metrics.get(metric)
    if not is_invalid(trial) and (value is None or value.value is None):
        few = _PERCENTILE.search(metric)  # what the tool reports then is the longest
        why = f"too few operations to know {metric}" if few else f"the tool did not report {metric}"
        yield ("unknown", metric), _note("unknown", "unknown", why)


def _reason_of(warning: ValidityWarning) -> tuple[Key, Note]:
    severity, kind = warning.severity.value, warning.kind
    key = (severity, kind, str(warning.data.get("options", "")))
    return key, _note(severity, kind, warning.message, warning.hint)


def _note(severity: str, kind: str, message: str, hint: str | None = None) -> Note:
    """Return a note that has no number and no places yet."""
    return Note(
        number=0, severity=severity, kind=kind, message=message, hint=hint,
        summary=SUMMARIES.get(kind), by_others=kind in _BY_OTHERS,
    )  # fmt: skip
