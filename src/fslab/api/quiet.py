"""How quiet the machine is, and what that costs: one sentence for doctor, plan and the progress of a campaign."""

from collections import deque

from fslab.record import TrialRecord
from fslab.system import reference
from fslab.units import format_duration

DIFFERENCE = 0.1  # what the sentence is about
_LAST = 30  # trials that the progress looks back on
_FEWEST = 5


def words(spread: float, block_s: float | None = None) -> str:
    """``block_s``: what a trial of each cell takes together, where there is a study."""
    trials = reference.trials_for(DIFFERENCE, spread)
    told = (
        f"the speed of a fixed loop varies by {spread * 100:.0f} % here: if trials vary as much, detecting a "
        f"difference of {DIFFERENCE * 100:.0f} % takes about {trials} trials of each cell"
    )
    return told if block_s is None else f"{told}, {format_duration(trials * block_s)} in total"


def now() -> float | None:
    """How much it varies just now, in half a second."""
    return reference.spread(rounds=10)


class LoopRates:
    """The loop beside the last trials of a campaign."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=_LAST)

    def enter(self, record: TrialRecord) -> None:
        measured = record.probes.get("reference_rate")
        if measured is not None and measured.value:
            self._rates.append(measured.value)

    def words(self) -> str | None:
        """None before there are enough trials to tell."""
        if len(self._rates) < _FEWEST:
            return None
        return words(reference.spread_of(list(self._rates)))
