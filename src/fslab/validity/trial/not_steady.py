"""Not steady: the level of the rate changed, or it had a trend, during the measurement. Pure."""

from collections.abc import Iterator

from fslab.record import Severity, ValidityWarning
from fslab.stats.changes import steadiness
from fslab.validity.facts import Rate, TrialFacts
from fslab.validity.trial import TrialRule

LARGEST_SHIFT = 0.2  # SNIA's Performance Test Specification allows 20 % of the mean between rounds
_LEVEL = 0.01


class NotSteady(TrialRule):
    """A mean over two levels is neither of them and depends mostly on when the run was stopped.

    So it is a warning. With a fixed amount of work, the time is still the result, and it is a note.
    Rates are autocorrelated, which makes tests report too many changes; therefore a change must also be large.
    """

    summary = "the rate changed while it was measured"
    severity = Severity.WARNING
    when = (
        f"the rate during the run changed its level, or went one way, by more than {LARGEST_SHIFT:.0%}; "
        "for a set amount of work a note. Known for fio and the engine's small files, in runs of 8 s and "
        "more"
    )
    hint = "measure for longer, or precondition the device first"

    def judge(self, facts: TrialFacts) -> Iterator[ValidityWarning]:
        """Give one warning, about the rate that changed most."""
        found = [(shift, rate) for rate in facts.work.rates if abs(shift := _shift(rate)) > LARGEST_SHIFT]
        if not found:
            return
        shift, rate = max(found, key=lambda each: abs(each[0]))
        span_s = len(rate.values) * rate.interval_s
        yield self.warning(
            f"the {rate.what} was not steady: over {span_s:.0f} s its level changed by {100 * abs(shift):.0f} %",
            severity=Severity.WARNING if facts.work.asked_s is not None else Severity.NOTE,
            shift=shift, interval_s=rate.interval_s, values=list(rate.values),
        )  # fmt: skip


def _shift(rate: Rate) -> float:
    """Return the distance of the levels, or else the change by the trend, as a fraction of the median.

    It is 0 if there is neither, or if the run was too short to detect it.
    """
    found = steadiness(rate.values)
    line = found.trend
    sure = line is not None and line.p_value is not None and line.p_value <= _LEVEL
    trend = line.change if line is not None and sure and line.change is not None else 0.0
    return found.largest_shift or trend
