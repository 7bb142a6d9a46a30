"""The time that a campaign took: by stage of its trials, for measurement, and between trials. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from fslab.cell import Frozen
from fslab.record import TrialRecord

MEASURED = "run"
BETWEEN = "between trials"
REST = "rest of the trial"


class Cost(Frozen):
    """Seconds by stage, the longest first. The stage ``run`` is the measurement itself.

    ``REST``: steps of a trial without a command (mounting, dropping caches, probes, flushing). ``BETWEEN``: from the
    end of one trial to the start of the next, including waiting for other campaigns and pauses before a resume.
    """

    stages: dict[str, float]
    trials_s: float
    wall_s: float

    @property
    def measured(self) -> float | None:
        """The share of the trials' time spent on measurement; None without trials."""
        return self.share_of(MEASURED)

    def share_of(self, stage: str) -> float | None:
        """The share of the trials' time that a stage took; None without trials, and for the time between them."""
        if stage == BETWEEN or not self.trials_s:
            return None
        return self.stages.get(stage, 0.0) / self.trials_s


def cost_of(records: Sequence[TrialRecord]) -> Cost:
    """Return the cost of all trials, including failed ones."""
    stages: dict[str, float] = defaultdict(float)
    for record in records:
        known = 0.0
        for command in record.provenance.commands:
            stages[command.stage] += command.duration_s or 0.0
            known += command.duration_s or 0.0
        stages[REST] += max(0.0, record.duration_s - known)
    trials_s = sum(record.duration_s for record in records)
    wall_s = _wall_s(records)
    if wall_s > trials_s:
        stages[BETWEEN] = wall_s - trials_s
    ordered = sorted(stages.items(), key=lambda item: -item[1])
    return Cost(stages=dict(ordered), trials_s=trials_s, wall_s=max(wall_s, trials_s))


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


def _wall_s(records: Sequence[TrialRecord]) -> float:
    if not records:
        return 0.0
    first = min(record.started for record in records)
    return max((record.started - first).total_seconds() + record.duration_s for record in records)
