"""Which trials are compared. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fslab.record import Severity, Status, TrialRecord

GIVE_UP_AFTER = 2  # failures in a row: trying again would only cost time


def is_usable(trial: TrialRecord) -> bool:
    """Whether a trial is compared: it ended well and nothing says that it is invalid."""
    return trial.status is Status.OK and not _has(trial, Severity.INVALID)


def is_invalid(trial: TrialRecord) -> bool:
    """Whether a trial yielded figures that must not be compared."""
    return trial.status is Status.INVALID or (trial.status is Status.OK and _has(trial, Severity.INVALID))


def is_failed(trial: TrialRecord) -> bool:
    """Whether a trial yielded no figures: it failed, or this machine does not support it."""
    return trial.status is Status.FAILED or trial.status is Status.UNSUPPORTED


def is_impossible(trial: TrialRecord) -> bool:
    """Whether this machine cannot do it at all."""
    return trial.status is Status.UNSUPPORTED


def has_warnings(trial: TrialRecord) -> bool:
    """Whether a trial is compared although something speaks against it."""
    return is_usable(trial) and _has(trial, Severity.DOUBT)


def notable(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Those of which there is anything to say; all others ended well, and are usable."""
    return [trial for trial in trials if trial.validity or trial.status is not Status.OK]


def exhausted_cells(trials: Sequence[TrialRecord]) -> frozenset[str]:
    """Ids of cells that get no more trials: the last two failed, or the machine cannot do it (it stays what it is)."""
    by_cell: dict[str, list[TrialRecord]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.key.block):
        by_cell[trial.cell.id].append(trial)
    return frozenset(
        cell
        for cell, own in by_cell.items()
        if is_impossible(own[-1]) or (len(own) >= GIVE_UP_AFTER and all(map(is_failed, own[-GIVE_UP_AFTER:])))
    )


def _has(trial: TrialRecord, severity: Severity) -> bool:
    # Asked a million times of a large campaign, nearly always of trials without any warning.
    return bool(trial.validity) and any(warning.severity is severity for warning in trial.validity)
