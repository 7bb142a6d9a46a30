"""The time that a campaign took: the measured share, and the time between trials. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from fslab.trial_record import TrialRecord

MEASURED = "run"


def measured_share(records: Sequence[TrialRecord]) -> float | None:
    """Return the share of the trials' time in which something was measured; None without trials.

    The rest is mkfs, mount, preparation, dropping caches, probes and flushing.
    """
    trials_s = sum(record.duration_s for record in records)
    commands = (command for record in records for command in record.provenance.commands)
    run_s = sum(command.duration_s or 0.0 for command in commands if command.stage == MEASURED)
    return run_s / trials_s if trials_s else None


def spent_s(records: Sequence[TrialRecord]) -> float:
    """Return the time that the trials took of a budget: their own, and the time between one and the next.

    The latter is the median, because a resume is no pause. In a guest it is about 0.4 s, in which disks are plugged in
    and the trial is stored: 2 of 65 minutes.
    """
    ordered = sorted(records, key=lambda record: record.started)
    pauses = [
        (after.started - before.started).total_seconds() - before.duration_s
        for before, after in pairwise(ordered)
    ]
    pause_s = max(0.0, median(pauses)) if pauses else 0.0
    return sum(record.duration_s for record in records) + len(records) * pause_s


def wall_s(records: Sequence[TrialRecord]) -> float:
    """Return the time from the start of the first trial to the end of the last one, at least that of all trials."""
    if not records:
        return 0.0
    first = min(record.started for record in records)
    last_s = max((record.started - first).total_seconds() + record.duration_s for record in records)
    return max(last_s, sum(record.duration_s for record in records))
