"""Describes in one line what a row shows. Pure.

Stacks are never reported as alike, or as not decided, without an interval.
"""

from collections.abc import Iterable, Sequence
from math import log

from fslab.analysis.standings import Standing, StandingCertainty, counted_sides
from fslab.analysis.table_rows import Mark, Rank
from fslab.answers.model import COUNTED, INDEPENDENCE_LEAST, UNPAIRED, Answer, Verdict
from fslab.answers.verdict_words import (
    alike_margin,
    alike_words,
    counted_words,
    more_text,
    needs_text,
    ratio_words,
    within_words,
)
from fslab.report.model import Counts, Report
from fslab.units import (
    RATES,
    Direction,
    Unit,
    counted,
    first_of,
    format_size,
    format_value,
    listed,
    metric_text,
    ratio_text,
)

MANY = 4
FAR = log(1.1)  # logarithm of a ratio; a larger deviation is visible when a reader divides the medians


def row_words(
    leader: str | None,
    better: Direction,
    answers: Sequence[Answer],
    *,
    missing: Sequence[str] = (),
    impossible: Sequence[str] = (),
    not_compared: Sequence[str] = (),
) -> str:
    """Return ``xfs 1.90 × ext4 (1.70–2.10), 2.40 × btrfs (2.20–2.60)``.

    Above 1 the leader is better: if lower is better, the other stacks are given as multiples of the leader.
    ``missing``: stacks without a usable value. ``impossible``: stacks that this machine cannot build.
    ``not_compared``: stacks on another kind of machine.
    """
    if leader is None:
        return "no usable value"
    by_verdict = {verdict: [item for item in answers if item.verdict is verdict] for verdict in Verdict}
    parts = [
        *_differences(leader, better, [item for item in answers if item.differs]),
        *_not_shown(leader, by_verdict[Verdict.ALIKE], alike=True),
        *_not_shown(leader, by_verdict[Verdict.OPEN], alike=False),
        *_counted(leader, [item for item in answers if item.verdict in COUNTED]),
        *_too_few(leader, by_verdict[Verdict.TOO_FEW]),
        *(
            f"{item.over} and {item.under} have no ratio: not all their values are positive"
            for item in by_verdict[Verdict.NO_RATIO]
        ),
        *([f"{listed(missing)}: no usable value"] if missing else []),
        *([f"{listed(impossible)}: not possible here"] if impossible else []),
        *([f"{listed(not_compared)}: on another kind of machine, not compared"] if not_compared else []),
        *_together(leader, answers),
        *_independence(leader, answers),
        *_medians(leader, answers),
    ]
    return "; ".join(parts) if parts else f"measured on {leader} only"


def trials_words(counts: Counts) -> str:
    """Return ``18 trials: 15 usable, 2 of them with warnings, 1 invalid, 2 failed``."""
    flawed = (
        (counts.with_warnings, "of them with warnings"),
        (counts.invalid, "invalid"),
        (counts.failed - counts.impossible, "failed"),
        (counts.impossible, "not possible here"),
    )
    told = [f"{counts.usable} usable", *(f"{number} {word}" for number, word in flawed if number)]
    return f"{counted(counts.stored, 'trial')}: {', '.join(told)}"


def spread_of_counts(counts: Iterable[int]) -> str:
    """Return ``5 trials``, or ``3 to 5 trials`` for several numbers."""
    known = sorted(set(counts)) or [0]
    return counted(known[0], "trial") if len(known) == 1 else f"{known[0]} to {known[-1]} trials"


def machine_words(report: Report) -> tuple[str, str]:
    """Return the CPU and the memory of the host: ``4 × Xeon``, ``8 GiB memory``."""
    cpus = f"{report.cpus} × " if report.cpus else ""
    memory = f"{format_size(report.memory_bytes)} memory" if report.memory_bytes else "memory unknown"
    return f"{cpus}{report.cpu or 'CPU unknown'}", memory


def kernels_words(report: Report) -> str:
    """Return the kernels that measured: ``6.12.1``, or with guests ``6.12.1 (host), 6.1.0 (uml)``."""
    if not report.guests:
        return report.kernel or "unknown"
    host = [f"{report.kernel or 'unknown'} (host)"] if report.on_host else []
    guests = (f"{guest.kernel or 'unknown'} ({guest.machine})" for guest in report.guests)
    return ", ".join(dict.fromkeys([*host, *guests]))


def signs_words(report: Report) -> list[str]:
    """Return what each sign means that a field or a name has."""
    used = {summary.mark for row in report.rows for summary in row.summaries}
    said = (
        f"★ better than all others at {report.coverage * 100:g} %" if Mark.BEST in used else "",
        "☆ may equal the best" if Mark.MAYBE_BEST in used else "",
        "↓ lower is better" if any(row.better is Direction.LOWER for row in report.rows) else "",
    )
    return [text for text in said if text]


def slices_words(report: Report) -> str | None:
    """Return what medians of slices are; None if there are none. In a slice a tool has just slept, and the caches are
    those of others (docs/measuring.md)."""
    works = {row.workload for row in report.rows}
    if not (sliced := works.intersection(report.in_slices)):
        return None
    which = "" if sliced == works else f" ({len(sliced)} of {len(works)} workloads)"
    return f"in slices{which}: medians compare stacks; whole runs differ"


def of_differences(count: int, of: int, one: str, many: str) -> str:
    """Return ``1 of 3 differences is``, or ``the only difference is``."""
    return (
        f"the only difference {one}"
        if of == 1
        else f"{count} of {of} differences {one if count == 1 else many}"
    )


def _differences(leader: str, better: Direction, seen: Sequence[Answer]) -> list[str]:
    """Return all differences or, if there are many, the smallest and the largest."""
    if not seen:
        return []
    shown, rest = list(seen), ""
    if len(seen) > MANY:
        ordered = sorted(seen, key=lambda item: item.ratio or item.more or 0.0)
        shown, rest = [ordered[0], ordered[-1]], f", {len(seen) - 2} others between these"
    if better is Direction.LOWER:
        return [", ".join(f"{item.over} {ratio_words(item)}" for item in shown) + rest]
    return [f"{leader} " + ", ".join(map(ratio_words, shown)) + rest]


def _not_shown(leader: str, items: Sequence[Answer], *, alike: bool) -> list[str]:
    """Return the stacks that are alike, or those that need more trials, with their intervals."""
    if not items:
        return []
    word = alike_words(items[0].margin) if alike else ""
    if len(items) == 1:
        if not alike:
            word = f"not decided, {needs_text(items[0].further, items[0].further_s)}"
        return [f"{leader} and {items[0].other(leader)} {word}: {within_words(items[0])}"]
    if not alike:
        word = f"not decided, {needs_most(items)}"
    if len(items) > MANY:
        spans = [item.interval for item in items if item.interval]
        low = min((each.low for each in spans), default=1.0)
        high = max((each.high for each in spans), default=1.0)
        within = f" (within {'–'.join(ratio_text(low, high))} ×)" if spans else ""
        return [f"{word}: {leader} and {len(items)} others{within}"]
    each = (f"{item.other(leader)} ({within_words(item)})" for item in items)
    return [f"{word}: {leader} and {', '.join(each)}"]


def _counted(leader: str, items: Sequence[Answer]) -> list[str]:
    """Return what was counted on the leader and on the stacks from which it is not shown to differ."""
    sides = counted_sides(leader, items)
    if not sides:
        return []
    told = counted_words(sides)
    return [told if any(each.most for each in sides.values()) else f"{listed([*sides])}: {told}"]


def needs_most(items: Sequence[Answer]) -> str:
    """Return what decides all of these: ``needs about 40 s more``."""
    if any(item.further is None for item in items):
        return needs_text(None)
    seconds = [item.further_s for item in items if item.further_s is not None]
    longest_s = max(seconds) if len(seconds) == len(items) else None
    return needs_text(max(item.further or 0 for item in items), longest_s)


def _too_few(leader: str, few: Sequence[Answer]) -> list[str]:
    """Return one sentence for all of them: how many complete blocks there are, and how many are needed."""
    if not few:
        return []
    others = listed([item.other(leader) for item in few])
    fewest = min(min(item.n) for item in few)
    needed = max(item.needed for item in few)
    blocks = f"{counted(fewest, 'complete block')}; {needed} needed"
    return [f"too few trials to compare {leader} with {others} ({blocks})"]


def _together(leader: str, answers: Sequence[Answer]) -> list[str]:
    """Return which differences are not significant after Holm correction over the row."""
    seen = [item for item in answers if item.differs]
    unsure = [item for item in seen if not item.holds]
    if not unsure:
        return []
    which = f" ({listed([item.other(leader) for item in unsure])})" if len(unsure) < len(seen) else ""
    return [f"not significant after Holm correction{which}: run more trials"]


def _independence(leader: str, answers: Sequence[Answer]) -> list[str]:
    """Return which differences hold only if successive trials are not correlated.

    Only those for which there are too few blocks to check that.
    """
    fragile = [item for item in answers if item.fragile and item.holds is not False]
    if not fragile:
        return []
    which = "this difference holds"
    if len(answers) > 1:
        which = f"the difference from {listed([item.other(leader) for item in fragile])} holds"
    return [f"{which} only if trials are independent, which needs {INDEPENDENCE_LEAST} blocks to check"]


def _medians(leader: str, answers: Sequence[Answer]) -> list[str]:
    """Return why ratios are not the quotients of the displayed medians, if some are far apart."""
    far = [item for item in answers if item.differs and is_far(item.ratio, item.of_medians)]
    if not far:
        return []
    told = listed([f"{ratio_text(item.of_medians or 1.0)[0]} ({item.other(leader)})" for item in far[:MANY]])
    others = f" and {len(far) - MANY} more" if len(far) > MANY else ""
    how = "from all pairs of trials" if any(item.method in UNPAIRED for item in far) else "block by block"
    return [f"ratios are computed {how}: the quotient of the medians is {told}{others}"]


def is_far(ratio: float | None, of_medians: float | None) -> bool:
    """Return whether the quotient of the medians clearly differs from the ratio."""
    if ratio is None or not of_medians or of_medians <= 0 or ratio <= 0:
        return False
    return abs(log(ratio / of_medians)) > FAR


def ranking_words(ranking: Sequence[Rank]) -> str:
    """Return ``1. xfs · 2.= ext4, btrfs``. Pairs within a place that are shown to differ follow in brackets."""
    places = []
    for place in ranking:
        tied = "=" if len(place.stacks) > 1 else ""
        ahead = "".join(f" ({first} before {second})" for first, second in place.ahead)
        places.append(f"{place.rank}.{tied} {', '.join(place.stacks)}{ahead}")
    return " · ".join(places)


def line(one: Standing, among: Sequence[Standing]) -> str:
    """Return ``random: xfs, 2,000 IOPS, 2.00 × ext4 (1.87–2.12)``, with the metric if the workload has several."""
    alone = sum(other.workload == one.workload for other in among) == 1
    name = one.workload if alone else f"{one.workload} ({metric_text(one.metric)})"
    told = [first_of(one.labels, MANY), format_value(one.value, one.unit), margin(one)]
    return f"{name}: {', '.join(filter(None, told))}"


def margin(one: Standing) -> str:
    """Return how much better the best is, such as ``1.93 × ext4 (1.87–1.99)``.

    For stacks that are alike: the margin; for open ones: what decides them. At the end: what is not compared.
    """
    return "; ".join(filter(None, (_of_compared(one), not_compared(one))))


def alike_margins(alike: Sequence[Standing]) -> str:
    """Return the margins of metrics in which stacks are alike, such as ``± 10 %, tails ± 25 %``."""
    known = sorted({each.margin for each in alike})
    return ", ".join([alike_margin(known[0]), *(f"tails {alike_margin(each)}" for each in known[1:])])


def row_name(one: Standing, among: Sequence[Standing]) -> str:
    """Return the workload, and its metric if neither place nor unit say which: ``files: create rate``.

    They do not for others than the first metric, for counts, and for one of several rates, or of one unit.
    """
    first, *others = [other for other in among if other.workload == one.workload]
    kin = RATES if one.unit in RATES else {one.unit}
    clear = one is first and one.unit is not Unit.COUNT and all(other.unit not in kin for other in others)
    return one.workload if clear else f"{one.workload}: {metric_text(one.metric)}"


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
        case StandingCertainty.COUNTED:
            return "; ".join(filter(None, (counted_words(one.counted), others)))
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
