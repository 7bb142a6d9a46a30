"""Says in one line what a row shows. Never "no difference" without how large one could have hidden. Pure."""

from collections.abc import Sequence
from math import log

from fslab.analysis.comparison_model import COARSE, Comparison, ComparisonVerdict, Rank, Span
from fslab.stats.compare import INDEPENDENCE_LEAST
from fslab.units import Direction

MANY = 4
SEVERITY_WORD = {"doubt": "warning"}  # stored as it was first called
FAR = log(1.1)  # a reader who divides the medians notices


def row_words(
    leader: str | None,
    better: Direction,
    comparisons: Sequence[Comparison],
    *,
    missing: Sequence[str] = (),
    impossible: Sequence[str] = (),
    apart: Sequence[str] = (),
) -> str:
    """``xfs 1.90 × ext4 (1.70–2.10), 2.40 × btrfs (2.20–2.60)``.

    ``missing`` are stacks without a usable value, ``impossible`` those that this machine cannot build, ``apart``
    those of another machine, which are not compared.
    Above 1 the leader is better: where lower is better the others are told as multiples of it.
    """
    if leader is None:
        return "no usable trial"
    by_verdict = {
        verdict: [item for item in comparisons if item.verdict is verdict] for verdict in ComparisonVerdict
    }
    parts = [
        *_differences(leader, better, by_verdict[ComparisonVerdict.DIFFERS]),
        *_not_seen(leader, by_verdict[ComparisonVerdict.NOT_SEEN]),
        *_too_few(leader, by_verdict[ComparisonVerdict.TOO_FEW]),
        *map(_no_ratio, by_verdict[ComparisonVerdict.NO_RATIO]),
        *([f"{listed(missing)}: no usable trial"] if missing else []),
        *([f"{listed(impossible)}: not possible here"] if impossible else []),
        *([f"{listed(apart)}: on another kind of machine, not compared"] if apart else []),
        *_together(leader, comparisons),
        *_independence(leader, comparisons),
        *_medians(leader, comparisons),
    ]
    return "; ".join(parts) if parts else f"only {leader} was measured"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def of_differences(count: int, of: int, one: str, many: str) -> str:
    """``1 of 3 differences is``, ``the only difference is``."""
    return (
        f"the only difference {one}"
        if of == 1
        else f"{count} of {of} differences {one if count == 1 else many}"
    )


def ratio_text(*ratios: float) -> tuple[str, ...]:
    """Ratios with as few decimals as keep them from looking like 1 when they are not."""
    decimals = 2 if min(ratios) < 10 else 1
    while decimals < 5 and any(ratio != 1 and float(f"{ratio:.{decimals}f}") == 1 for ratio in ratios):
        decimals += 1
    return tuple(f"{ratio:.{decimals}f}" for ratio in ratios)


def more_text(item: Comparison) -> str:
    """``6.3 more (2.1–10.5)``: counts, of which there may be none."""
    if item.more is None or item.more_interval is None:
        raise ValueError(f"{item.numerator} and {item.denominator} have no difference to tell")
    return f"{item.more:.3g} more ({_span(item.more_interval)})"


def _span(span: Span) -> str:
    """``2.1–10.5``, and ``−2 to 3`` where a dash would not do."""
    low, high = (f"{value:.3g}".replace("-", "−") for value in (span.low, span.high))
    return f"{low}–{high}" if span.low >= 0 else f"{low} to {high}"


def _differences(leader: str, better: Direction, seen: Sequence[Comparison]) -> list[str]:
    """All of them, or the smallest and the largest when these are many."""
    if not seen:
        return []
    shown, rest = list(seen), ""
    if len(seen) > MANY:
        ordered = sorted(seen, key=lambda item: item.ratio or item.more or 0.0)
        shown, rest = [ordered[0], ordered[-1]], f", the other {len(seen) - 2} in between"
    if better is Direction.LOWER:
        return [", ".join(f"{item.numerator} {_times(item)}" for item in shown) + rest]
    return [f"{leader} " + ", ".join(map(_times, shown)) + rest]


def _times(item: Comparison) -> str:
    if item.more is not None:
        return f"{more_text(item)} than {item.denominator}"
    if item.ratio is None or item.interval is None:
        raise ValueError(f"{item.numerator} and {item.denominator} have no ratio to tell")
    ratio, low, high = ratio_text(item.ratio, item.interval.low, item.interval.high)
    return f"{ratio} × {item.denominator} ({low}–{high})"


def _not_seen(leader: str, alike: Sequence[Comparison]) -> list[str]:
    """Each with its interval, and with how large a difference would have been detected."""
    wide = [item for item in alike if (item.detectable or 0.0) > COARSE or item.more]
    narrow = [item for item in alike if item not in wide]
    return [*_open(leader, narrow, "indistinguishable"), *_open(leader, wide, "inconclusive")]


def _open(leader: str, items: Sequence[Comparison], word: str) -> list[str]:
    if not items:
        return []
    if len(items) == 1:
        return [f"{leader} and {_other(leader, items[0])} {word}: {_within(items[0])}"]
    if len(items) > MANY:
        shares = [item.detectable for item in items if item.detectable is not None]
        seen = f", > {share_text(max(shares))} detectable" if shares else ""
        spans = [item.interval for item in items if item.interval]
        low, high = (
            min((each.low for each in spans), default=1.0),
            max((each.high for each in spans), default=1.0),
        )
        within = f" (within {'–'.join(ratio_text(low, high))} ×{seen})" if spans else ""
        return [f"{word}: {leader} and {len(items)} others{within}"]
    each = (f"{_other(leader, item)} ({_within(item)})" for item in items)
    return [f"{word}: {leader} and {', '.join(each)}"]


def _within(item: Comparison) -> str:
    if item.more_interval is not None:
        return f"{item.numerator} {_span(item.more_interval)} more"
    if item.interval is None:
        raise ValueError(f"{item.numerator} and {item.denominator} have no interval to tell")
    low, high = ratio_text(item.interval.low, item.interval.high)
    seen = f", > {share_text(item.detectable)} detectable" if item.detectable is not None else ""
    return f"{low}–{high} ×{seen}"


def share_text(share: float) -> str:
    """``7 %``, ``0.4 %``."""
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def _too_few(leader: str, alike: Sequence[Comparison]) -> list[str]:
    """One sentence for all of them: how many usable trials there are, and how many would be enough."""
    if not alike:
        return []
    others = listed([_other(leader, item) for item in alike])
    fewest = min(min(item.n) for item in alike)
    needed = max(item.needed for item in alike)
    blocks = f"{fewest} complete block{'s' * (fewest != 1)}; {needed} needed"
    return [f"too few trials to compare {leader} with {others} ({blocks})"]


def _no_ratio(item: Comparison) -> str:
    return f"{item.numerator} and {item.denominator} have no ratio: not all their values are positive"


def _together(leader: str, comparisons: Sequence[Comparison]) -> list[str]:
    """Which differences do not survive Holm's correction over the row."""
    seen = [item for item in comparisons if item.verdict is ComparisonVerdict.DIFFERS]
    unsure = [item for item in seen if not item.holds_together]
    if not unsure:
        return []
    which = ""
    if len(unsure) < len(seen):
        which = f" ({listed([_other(leader, item) for item in unsure])})"
    return [f"not significant after Holm correction{which}: run more trials"]


def _independence(leader: str, comparisons: Sequence[Comparison]) -> list[str]:
    """Which differences would be gone if successive trials were correlated, where that cannot be known."""
    fragile = [
        item for item in comparisons if item.rests_on_independence and item.holds_together is not False
    ]
    if not fragile:
        return []
    which = "this difference holds"
    if len(comparisons) > 1:
        which = f"the difference from {listed([_other(leader, item) for item in fragile])} holds"
    return [f"{which} only if trials are independent, which needs {INDEPENDENCE_LEAST} blocks to check"]


def _medians(leader: str, comparisons: Sequence[Comparison]) -> list[str]:
    """Why a ratio is not the quotient of the medians beside it, where they are far apart."""
    far = [item for item in comparisons if _far(item)]
    if not far:
        return []
    told = listed(
        [f"{ratio_text(item.of_medians or 1.0)[0]} ({_other(leader, item)})" for item in far[:MANY]]
    )
    others = f" and {len(far) - MANY} more" if len(far) > MANY else ""
    how = "from all pairs of trials" if any(item.method == "rank_sum" for item in far) else "block by block"
    return [f"ratios are computed {how}: the quotient of the medians is {told}{others}"]


def _far(item: Comparison) -> bool:
    return item.verdict is ComparisonVerdict.DIFFERS and is_far(item.ratio, item.of_medians)


def is_far(ratio: float | None, of_medians: float | None) -> bool:
    """Whether a reader who divides the medians gets clearly another ratio."""
    if ratio is None or not of_medians or of_medians <= 0 or ratio <= 0:
        return False
    return abs(log(ratio / of_medians)) > FAR


def ranking_words(ranking: Sequence[Rank]) -> str:
    """``1. xfs · 2.= ext4, btrfs``; within a group those that are shown to differ are told."""
    places = []
    for place in ranking:
        tied = "=" if len(place.stacks) > 1 else ""
        ahead = "".join(f" ({first} before {second})" for first, second in place.ahead)
        places.append(f"{place.rank}.{tied} {', '.join(place.stacks)}{ahead}")
    return " · ".join(places)


def _other(leader: str, item: Comparison) -> str:
    return item.denominator if item.numerator == leader else item.numerator
