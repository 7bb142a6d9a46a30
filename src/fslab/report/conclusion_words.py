"""The words for one metric of a conclusion, the same in a terminal and on a page. Pure."""

from collections.abc import Sequence

from fslab.analysis.standings import Standing, StandingCertainty
from fslab.report.words import more_text, share_text
from fslab.units import Direction, Unit, format_value, ratio_text

NOISY = 1.0  # detectable difference, as a share; 1.0: only a ratio above 2 would be detected


def line(one: Standing, among: Sequence[Standing]) -> str:
    """Return ``random: xfs, 2,000 IOPS, 2.00 × ext4 (1.87–2.12)``, with the metric if the workload has several."""
    alone = sum(other.workload == one.workload for other in among) == 1
    name = one.workload if alone else f"{one.workload} ({one.metric.replace('_', ' ')})"
    told = [", ".join(one.labels), format_value(one.value, one.unit), margin(one)]
    return f"{name}: {', '.join(filter(None, told))}"


def margin(one: Standing) -> str:
    """Return how much better the best is, such as ``1.93 × ext4 (1.87–1.99)``.

    For a tie: the detectable difference, and what is worse. At the end: what is not compared.
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
        case StandingCertainty.INCONCLUSIVE if others and (one.detectable or 0.0) > NOISY:
            return others  # the sign and the legend show that it is too noisy
        case StandingCertainty.TIE | StandingCertainty.INCONCLUSIVE:
            return "; ".join(filter(None, (_limit(one.detectable), others)))
        case StandingCertainty.FEW:
            return f"{one.n} trial{'s' * (one.n != 1)}; {one.needed} needed"
        case StandingCertainty.SINGLE:
            if one.better is Direction.NEITHER:
                return "no preferred direction"
            return "" if one.not_compared else "nothing to compare with"


def _limit(detectable: float | None) -> str:
    if detectable is None:
        return ""
    return "far too noisy" if detectable > NOISY else f"> {share_text(detectable)} detectable"


def behind(one: Standing) -> str:
    found = one.next
    if found is not None and found.more_interval is not None:
        more = more_text(found)
        return (
            f"{one.next_stack} {more}" if one.better is Direction.LOWER else f"{more} than {one.next_stack}"
        )
    if found is None or found.ratio is None or found.interval is None:
        return ""
    ratio, low, high = ratio_text(found.ratio, found.interval.low, found.interval.high)
    if one.better is Direction.LOWER:
        size = "as long" if one.unit in {Unit.NANOSECONDS, Unit.SECONDS} else "as much"
        return f"{one.next_stack} {ratio} × {size} ({low}–{high})"
    return f"{ratio} × {one.next_stack} ({low}–{high})"
