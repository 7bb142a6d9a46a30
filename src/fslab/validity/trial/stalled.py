"""Stalled: there was no progress for a time during the run. Pure."""

import statistics
from collections.abc import Iterator
from itertools import dropwhile, groupby

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import Rate, TrialFacts
from fslab.validity.trial import TrialRule

LONGEST_S = 1.0
_STANDING = 0.05  # a rate below this share of the median, where there is progress, counts as none
_REGULAR = 4  # so many pauses can be the tool's own,
_STEP = 2  # if the progress between them takes no more than so many intervals


class Stalled(TrialRule):
    """Causes of stalls: garbage collection in the device, a full journal, a paused machine.

    If stalls are less frequent than one per trial, chance decides whether a trial contains one. ``not-steady`` detects
    lasting changes of level; after a stall, the rate returns to its level.
    """

    summary = "no progress for 1 s or longer"
    severity = Severity.WARNING
    when = (
        f"no progress for {LONGEST_S:g} s or longer after the first progress, unless the tool always "
        "progresses in such steps"
    )
    hint = "measure for longer, so that each trial includes such stalls; read the kernel log"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Report the longest stall of all rates."""
        found = [(seconds, rate) for rate in facts.work.rates if (seconds := _longest(rate)) >= LONGEST_S]
        if found:
            seconds, rate = max(found, key=lambda each: each[0])
            yield self.warning(
                f"the {rate.what} stalled for {seconds:.1f} s",
                stalled_s=seconds,
                interval_s=rate.interval_s,
            )


def _longest(rate: Rate) -> float:
    """Return the longest time without progress in seconds, after the first progress.

    A tool whose operations take longer than an interval has many pauses of about the same length: these are no stalls.
    """
    moving = [value for value in rate.values if value > 0]
    least = _STANDING * statistics.median(moving) if moving else 0.0
    begun = dropwhile(lambda value: value < least, rate.values)
    runs = [
        (standing, len([*values])) for standing, values in groupby(begun, key=lambda value: value < least)
    ]
    pauses = [length for standing, length in runs if standing]
    if not pauses:
        return 0.0
    step = statistics.median(length for standing, length in runs if not standing)
    regular = len(pauses) >= _REGULAR and max(pauses) <= 2 * statistics.median(pauses)
    return 0.0 if regular and step <= _STEP else max(pauses) * rate.interval_s
