"""Decides which trials are compared. Pure."""

from collections.abc import Iterable, Sequence

from fslab.cell import grouped
from fslab.trial_record import Severity, Status, TrialRecord

GIVE_UP_AFTER = 2  # consecutive failures: further trials would only cost time


def is_usable(trial: TrialRecord) -> bool:
    """Return whether a trial is compared: it completed and is not invalid."""
    return trial.status is Status.OK and not _has(trial, Severity.INVALID)


def is_invalid(trial: TrialRecord) -> bool:
    """Return whether a trial has figures that must not be compared."""
    return trial.status is Status.INVALID or (trial.status is Status.OK and _has(trial, Severity.INVALID))


def is_failed(trial: TrialRecord) -> bool:
    """Return whether a trial has no figures: it failed, or the machine does not support it."""
    return trial.status is Status.FAILED or trial.status is Status.UNSUPPORTED


def is_impossible(trial: TrialRecord) -> bool:
    return trial.status is Status.UNSUPPORTED


def has_warnings(trial: TrialRecord) -> bool:
    """Return whether a trial is usable with warnings."""
    return is_usable(trial) and _has(trial, Severity.WARNING)


def warning_kinds(trial: TrialRecord) -> set[str]:
    """Return the kinds of a trial's warnings, without mere notes."""
    return {each.kind for each in trial.validity if each.severity is Severity.WARNING}


def notable(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the trials that did not complete or have a warning or note; all others are usable without warnings."""
    return [trial for trial in trials if trial.validity or trial.status is not Status.OK]


def exhausted_cells(trials: Sequence[TrialRecord]) -> frozenset[str]:
    """Return the ids of cells that get no more trials: the last two failed, or the last is permanently unsupported."""
    in_order = sorted(trials, key=lambda trial: trial.key.block)
    return frozenset(
        cell
        for cell, own in grouped(in_order, lambda trial: trial.cell.id).items()
        if is_impossible(own[-1]) or (len(own) >= GIVE_UP_AFTER and all(map(is_failed, own[-GIVE_UP_AFTER:])))
    )


def _has(trial: TrialRecord, severity: Severity) -> bool:
    # Called a million times for a large campaign, nearly always for trials without a warning.
    return bool(trial.validity) and any(warning.severity is severity for warning in trial.validity)


def usable_values(trials: Iterable[TrialRecord], metric: str) -> dict[int, float]:
    """Return the known values of a metric, or of a probe, in usable trials, by block."""
    found = {trial.key.block: usable_value(trial, metric) for trial in trials}
    return {block: value for block, value in found.items() if value is not None}


def usable_value(trial: TrialRecord, metric: str) -> float | None:
    """Return the trial's value of a metric, or of a probe if there is no metric with this name; None if it is unknown,
    or the trial is not usable."""
    figure = trial.metrics.get(metric) or trial.probes.get(metric)
    return figure.value if figure is not None and is_usable(trial) else None
