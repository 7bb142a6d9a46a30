"""The answer to a question, as plain values, and its words: the same in a terminal, on a page and in a document. Pure.

Four results: better or worse, alike (within ± m), needs more trials, cannot be compared. Counts of events are never
alike; where no difference is shown, the result is what was seen.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from fslab.cell import Frozen
from fslab.stats import Interval
from fslab.stats.counts import share_limit
from fslab.stats.estimate_model import INDEPENDENCE_LEAST, UNPAIRED
from fslab.units import Direction, Unit, format_duration, format_value, ratio_text

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


FACTOR = 2.0
SPEEDS = frozenset(
    {
        Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.NANOSECONDS,
        Unit.SECONDS,
    }
)  # fmt: skip


def verdict_words(answer: Answer, unit: Unit, *, each: str = "trials") -> str:
    """Return the verdict on ``over``: ``12 % slower``, ``maybe 4.0 % faster``, ``alike (± 10 %)``, ``needs about 9
    more trials``. ``each``: what one value is of."""
    match answer.verdict:
        case Verdict.LARGER | Verdict.SMALLER:
            sure = "" if answer.holds else "maybe "
            if answer.more is not None:
                return sure + difference_words(answer.more, answer.unit)
            return sure + size_words(answer.ratio or 1.0, unit, answer.better)
        case Verdict.ALIKE:
            return alike_words(answer.margin)
        case Verdict.NONE_SEEN | Verdict.NOT_SHOWN:
            if answer.counted is None:
                raise ValueError(f"{answer.over} and {answer.under} were not counted")
            over, under = answer.counted
            return counted_words({answer.over: over, answer.under: under}, each)
        case Verdict.OPEN:
            return needs_text(answer.further, answer.further_s, each)
        case Verdict.TOO_FEW:
            return f"too few {each} (each side needs {answer.needed})"
        case Verdict.NO_RATIO:
            return "no ratio: not all values are positive"
        case Verdict.MISSING:
            return "no usable trial"


def alike_words(margin: float) -> str:
    """Return ``alike (± 10 %)``."""
    return f"alike ({alike_margin(margin)})"


def alike_margin(margin: float) -> str:
    """Return within what stacks are alike: ``± 10 %``."""
    return f"± {percent(margin)}"


def counted_words(sides: Mapping[str, Counted], each: str = "trials") -> str:
    """Return what was counted where no difference is shown.

    ``none in 8 trials each (95 % CI: at most 31 % of trials)``, or ``no difference shown: ext4 up to 51 in 8 of 8
    trials, xfs none in 8 trials``; of amounts, such as a time, ``up to 14.1 ms``.
    """
    fewest, most = (how(side.trials for side in sides.values()) for how in (min, max))
    if not any(side.most for side in sides.values()):
        number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        return f"none in {number} {each} each (95 % CI: at most {percent(share_limit(fewest))} of {each})"
    told = (
        f"{label} up to {_amount(side.most, side.unit)} in {side.with_events} of {side.trials} {each}"
        if side.most
        else f"{label} none in {side.trials} {each}"
        for label, side in sides.items()
    )
    return f"no difference shown: {', '.join(told)}"


def needs_text(further: int | None, further_s: float | None = None, each: str = "trials") -> str:
    """Return what an open question needs: ``needs about 40 s more``, ``needs about 9 more trials``."""
    if further_s:
        return f"needs about {format_duration(further_s)} more"
    if further:
        return f"needs about {further} more {each if further != 1 else each.removesuffix('s')}"
    return f"needs more {each}"


def percent(fraction: float) -> str:
    """Return a percentage with two significant digits, such as ``3.4 %`` and ``12 %``. Only 0 is shown as 0."""
    value = abs(fraction) * 100
    for limit, decimals in ((9.95, 0), (0.095, 1), (0.0095, 2)):
        if value >= limit:
            return f"{value:.{decimals}f} %"
    return f"{value:.2g} %"


def change_words(ratio: float | None, interval: Interval | None, unit: Unit, better: Direction) -> str:
    """Return a change as ``12 % slower (8.0 % to 16 %)`` or ``2.41 × as long (2.20–2.60)``, the interval if known."""
    if ratio is None:
        return "changed"
    words = size_words(ratio, unit, better)
    if interval is None:
        return words
    ends = (interval.low, interval.high)
    if ratio > FACTOR:
        return f"{words} ({ends[0]:.2f}–{ends[1]:.2f})"
    # The smaller change first. An end of the interval on the other side of 1 gets a minus sign.
    sign = -1 if ratio < 1 else 1
    changes = sorted(sign * (end - 1) for end in ends)
    low, high = (f"{'−' if change < 0 else ''}{percent(change)}" for change in changes)
    return f"{words} ({low} to {high})"


def size_words(ratio: float, unit: Unit, better: Direction) -> str:
    """Return how much one is better than the other: ``12 % slower``, ``2.41 × as long``."""
    speed = unit in SPEEDS and better is not Direction.NEITHER
    if ratio > FACTOR:  # large factors are easier to read than large percentages
        word = {Direction.LOWER: "long", Direction.HIGHER: "fast"}.get(better, "much") if speed else "much"
        return f"{ratio:.2f} × as {word}"
    improved = (ratio > 1) is (better is Direction.HIGHER)
    if better is Direction.NEITHER:
        word = "higher" if ratio > 1 else "lower"
    elif speed:
        word = "faster" if improved else "slower"
    else:
        word = "better" if improved else "worse"
    return f"{percent(ratio - 1)} {word}"


def difference_words(more: float, unit: Unit) -> str:
    """Return ``6.3 more``, ``6.3 fewer`` or, of amounts, ``6.3 ms less``."""
    less = "fewer" if unit is Unit.COUNT else "less"
    return f"{_amount(abs(more), unit)} {'more' if more > 0 else less}"


def _amount(value: float, unit: Unit) -> str:
    """Return a count or an amount, which can be negative."""
    if unit is Unit.COUNT:
        return f"{value:{'g' if value == round(value) else '.3g'}}".replace("-", "−")
    return f"{'−' if value < 0 else ''}{format_value(abs(value), unit)}"


def span_text(span: Interval, unit: Unit = Unit.COUNT) -> str:
    """Return ``2.1–10.5``, or ``−2 to 3`` for a negative lower end, where a dash would be unclear."""
    low, high = (_amount(value, unit) for value in (span.low, span.high))
    return f"{low}–{high}" if span.low >= 0 else f"{low} to {high}"


def ratio_words(answer: Answer) -> str:
    """Return ``1.90 × ext4 (1.70–2.10)`` or ``6.3 more (2.1–10.5) than ext4``."""
    if answer.more_interval is not None:
        return f"{more_text(answer)} than {answer.under}"
    if answer.ratio is None or answer.interval is None:
        raise ValueError(f"{answer.over} and {answer.under} have no ratio")
    ratio, low, high = ratio_text(answer.ratio, answer.interval.low, answer.interval.high)
    return f"{ratio} × {answer.under} ({low}–{high})"


def more_text(answer: Answer) -> str:
    """Return ``6.3 more (2.1–10.5)``, for counts and amounts that may be 0."""
    if answer.more is None or answer.more_interval is None:
        raise ValueError(f"{answer.over} and {answer.under} have no difference of counts")
    return f"{_amount(answer.more, answer.unit)} more ({span_text(answer.more_interval, answer.unit)})"


def within_words(answer: Answer) -> str:
    """Return the interval of a ratio: ``0.97–1.03 ×``, or of a difference of counts: ``xfs −2 to 3 more``."""
    if answer.more_interval is not None:
        return f"{answer.over} {span_text(answer.more_interval, answer.unit)} more"
    if answer.interval is None:
        raise ValueError(f"{answer.over} and {answer.under} have no interval")
    return f"{'–'.join(ratio_text(answer.interval.low, answer.interval.high))} ×"
