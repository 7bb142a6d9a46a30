"""The answer to a question, as plain values. Pure; ``verdict_words`` has its words."""

from dataclasses import replace
from enum import StrEnum

from fslab.cell import Frozen
from fslab.stats import Interval
from fslab.stats.estimate_model import INDEPENDENCE_LEAST, UNPAIRED
from fslab.units import Direction, Unit

__all__ = ["INDEPENDENCE_LEAST", "UNPAIRED"]  # and what is defined here


class Verdict(StrEnum):
    """The verdict on a question.

    ``larger``, ``smaller``: the interval excludes 1. ``alike``: the interval contains 1 and lies within the margin, 1 ÷
    (1 + margin) to 1 + margin: two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987)
    657). ``none_seen``: counts of events, all of them 0. ``not_shown``: counts of events; no difference is shown, and
    twice as many trials would hardly show the present one. ``open``: neither is shown; more trials are needed.
    ``too_few_trials``: no interval yet. ``no_ratio``: a value is not positive. ``no_usable_trial``: a side has no
    value.
    """

    LARGER = "larger"
    SMALLER = "smaller"
    ALIKE = "alike"
    NONE_SEEN = "none_seen"
    NOT_SHOWN = "not_shown"
    OPEN = "open"
    TOO_FEW = "too_few_trials"
    NO_RATIO = "no_ratio"
    MISSING = "no_usable_trial"


DIFFERS = frozenset({Verdict.LARGER, Verdict.SMALLER})
COUNTED = frozenset({Verdict.NONE_SEEN, Verdict.NOT_SHOWN})
NEEDS_MORE = frozenset({Verdict.OPEN, Verdict.TOO_FEW})


class Counted(Frozen):
    """Counts of events, or their amounts: the number of trials, of those with an event, and the largest value."""

    trials: int
    with_events: int
    most: float
    unit: Unit = Unit.COUNT


class Answer(Frozen):
    """The ratio ``over`` ÷ ``under`` (labels), and the verdict for ``over``.

    ``margin``: the smallest difference of interest, as a share. ``n``: number of values of each side; with a paired
    ``method``, number of blocks that both have. ``needed``: the number that an interval requires. ``further``: about
    how many more blocks decide it (None: unknown), and ``further_s``: how many seconds of trials these take.

    ``p_value`` is for this question alone, ``p_family`` after Holm's correction over its family. ``holds``: the
    difference is significant after this correction. ``fragile``: the difference would not be significant if each trial
    resembled the previous one, and there are too few blocks to know that. ``interval_if_correlated``: the interval if
    they did; None if that is known. ``settled``: more trials are not needed.
    ``of_medians``: the quotient of the medians; it may be far from a ratio of trials paired by block. ``more``,
    ``more_interval``: used instead of a ratio for counts or amounts of which some are 0: how much more ``over`` has, in
    ``unit``. ``counted``: of events, what was counted on each side.
    """

    over: str
    under: str
    better: Direction
    margin: float
    verdict: Verdict
    ratio: float | None
    interval: Interval | None
    n: tuple[int, int]
    needed: int
    method: str
    p_value: float | None = None
    p_family: float | None = None
    holds: bool | None = None
    fragile: bool = False
    interval_if_correlated: Interval | None = None
    settled: bool = False
    further: int | None = None
    further_s: float | None = None
    of_medians: float | None = None
    more: float | None = None
    more_interval: Interval | None = None
    unit: Unit = Unit.COUNT
    counted: tuple[Counted, Counted] | None = None

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly, by this question alone."""
        return self.verdict in DIFFERS

    @property
    def winner(self) -> str | None:
        """The label of the better one; None if neither is shown to be better by this question alone."""
        if not self.differs or self.better is Direction.NEITHER:
            return None
        return (
            self.over if (self.verdict is Verdict.LARGER) is (self.better is Direction.HIGHER) else self.under
        )

    def counted_of(self, label: str | None) -> Counted | None:
        """Return what was counted of ``label``, one of the two."""
        return self.counted and self.counted[label != self.over]

    def other(self, label: str | None) -> str:
        """Return the label of what ``label`` is compared with."""
        return self.under if self.over == label else self.over

    def inverted(self) -> "Answer":
        """Return the answer to the same question about ``under`` ÷ ``over``."""
        turned = {Verdict.LARGER: Verdict.SMALLER, Verdict.SMALLER: Verdict.LARGER}
        interval, wide, more = self.interval, self.interval_if_correlated, self.more_interval
        return self.model_copy(
            update={
                "over": self.under,
                "under": self.over,
                "verdict": turned.get(self.verdict, self.verdict),
                "n": self.n[::-1],
                "counted": self.counted and self.counted[::-1],
                "ratio": None if self.ratio is None else 1 / self.ratio,
                "interval": interval and _inverse(interval),
                "interval_if_correlated": wide and _inverse(wide),
                "of_medians": 1 / self.of_medians if self.of_medians else None,
                "more": None if self.more is None else -self.more,
                "more_interval": more and replace(more, low=-more.high, high=-more.low),
            }
        )


def _inverse(interval: Interval) -> Interval:
    return replace(interval, low=1 / interval.high, high=1 / interval.low)
