"""Stalled: there was no progress for a time during the run. Pure."""

import statistics
from collections.abc import Iterator
from itertools import groupby

from fslab.record import Severity, ValidityWarning
from fslab.validity.facts import Rate, TrialFacts
from fslab.validity.trial import TrialRule

LONGEST_S = 1.0
_STANDING = 0.05  # a rate below this share of the median counts as no progress


class Stalled(TrialRule):
    """Causes of stalls: garbage collection in the device, a full journal, a paused machine.

    If stalls are less frequent than one per trial, chance decides whether a trial contains one. ``not-steady`` detects
    lasting changes of level; after a stall, the rate returns to its level.
    """

    summary = "no progress for 1 s or longer"
    severity = Severity.DOUBT
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
    middle = statistics.median(rate.values) if rate.values else 0.0
    runs = groupby(rate.values, key=lambda value: value < _STANDING * middle)
    return max((len([*values]) for standing, values in runs if standing), default=0) * rate.interval_s
