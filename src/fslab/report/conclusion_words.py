"""The words for one metric of a conclusion, the same in a terminal and on a page. Pure."""

from collections.abc import Sequence

from fslab.analysis.standings import Standing, StandingCertainty
from fslab.answers.words import alike_margin, more_text, needs_text, ratio_words
from fslab.units import Direction, Unit, format_value, ratio_text


def line(one: Standing, among: Sequence[Standing]) -> str:
    """Return ``random: xfs, 2,000 IOPS, 2.00 × ext4 (1.87–2.12)``, with the metric if the workload has several."""
    alone = sum(other.workload == one.workload for other in among) == 1
    name = one.workload if alone else f"{one.workload} ({one.metric.replace('_', ' ')})"
    told = [", ".join(one.labels), format_value(one.value, one.unit), margin(one)]
    return f"{name}: {', '.join(filter(None, told))}"


def margin(one: Standing) -> str:
    """Return how much better the best is, such as ``1.93 × ext4 (1.87–1.99)``.

    For stacks that are alike: the margin; for open ones: what decides them. At the end: what is not compared.
    """
    return "; ".join(filter(None, (_of_compared(one), not_compared(one))))


def not_compared(one: Standing) -> str:
    """Return which stacks are not compared with the best, such as ``not compared (other machine): f2fs``."""
    return f"not compared (other machine): {', '.join(one.not_compared)}" if one.not_compared else ""


def _of_compared(one: Standing) -> str:
    others = behind(one)
    match one.certainty:
        case StandingCertainty.BEST:
            return others
        case StandingCertainty.ALIKE:
            return "; ".join(filter(None, (alike_margin(one.margin), others)))
        case StandingCertainty.OPEN if one.n < one.needed:
            return f"{one.n} trial{'s' * (one.n != 1)}; {one.needed} needed"
        case StandingCertainty.OPEN:
            return "; ".join(filter(None, (needs_text(one.further, one.further_s), others)))
        case StandingCertainty.NOT_COMPARABLE:
            return "; ".join(filter(None, ("not all values are positive", others)))
        case StandingCertainty.SINGLE:
            if one.better is Direction.NEITHER:
                return "no preferred direction"
            return "" if one.not_compared else "nothing to compare with"


def behind(one: Standing) -> str:
    """Return how far the next clearly worse stack is behind, such as ``1.93 × ext4 (1.87–1.99)``."""
    found = one.next
    if found is None or (found.interval is None and found.more_interval is None):
        return ""
    if one.better is not Direction.LOWER:
        return ratio_words(found)
    if found.ratio is None or found.interval is None:
        return f"{one.next_stack} {more_text(found)}"
    ratio, low, high = ratio_text(found.ratio, found.interval.low, found.interval.high)
    size = "as long" if one.unit in {Unit.NANOSECONDS, Unit.SECONDS} else "as much"
    return f"{one.next_stack} {ratio} × {size} ({low}–{high})"
