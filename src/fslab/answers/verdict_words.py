"""The words of an answer, the same in a terminal, on a page and in a document. Pure.

Four results: better or worse, alike (within ± m), needs more trials, cannot be compared. Counts of events are never
alike; where no difference is shown, the result is what was seen.
"""

from collections.abc import Mapping

from fslab.answers.model import Answer, Counted, Verdict
from fslab.stats import Interval
from fslab.stats.counts import share_limit
from fslab.units import RATES, Direction, Unit, format_duration, format_value, ratio_text

FACTOR = 2.0
SPEEDS = RATES | {Unit.NANOSECONDS, Unit.SECONDS}


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
            return "no usable value"


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
