"""States how quiet the machine is and how many trials this requires: one sentence for doctor, plan and progress."""

from collections import deque

from fslab.answers.ratio import trials_to_detect
from fslab.system import reference_work
from fslab.trial_record import TrialRecord
from fslab.units import format_duration

DIFFERENCE = 0.1  # the difference that the sentence refers to
_LAST = 30  # the progress of a campaign uses the last 30 trials
_FEWEST = 5


def trials_sentence(spread: float, block_s: float | None = None) -> str:
    """Return the sentence. ``block_s``: seconds for one trial of each cell; None: without a study."""
    trials = trials_to_detect(DIFFERENCE, spread)
    told = (
        f"the speed of a fixed loop varies by {spread * 100:.0f} % here: if trials vary as much, detecting a "
        f"difference of {DIFFERENCE * 100:.0f} % takes about {trials} trials of each cell"
    )
    return told if block_s is None else f"{told}, {format_duration(trials * block_s)} in total"


def now() -> float | None:
    """Return the current variation of the loop's speed. Takes half a second."""
    return reference_work.spread(rounds=10)


class LoopRates:
    """The speed of the loop during the last trials of a campaign."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_LAST)

    def enter(self, record: TrialRecord) -> None:
        measured = record.probes.get("reference_rate")
        if measured is not None and measured.value:
            self._rates.append(measured.value)

    def words(self) -> str | None:
        """Return the sentence; None while there are too few trials."""
        if len(self._rates) < _FEWEST:
            return None
        return trials_sentence(reference_work.spread_of(list(self._rates)))
