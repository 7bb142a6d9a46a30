"""One line of a comparison of two sets of results: the figures of a cell in both, their ratio, the verdict. Pure.

``stats`` computes the statistics; this module decides what is compared and words the result.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fslab.analysis.campaign_comparison_model import ComparisonLine, LineOutcome, SampleSummary
from fslab.analysis.comparison_model import COARSE, Span
from fslab.analysis.usability import is_usable
from fslab.cell import Cell, WorkloadSpec
from fslab.record import Metric, TrialRecord
from fslab.stats import Reason
from fslab.stats.compare import RatioEstimate, compare_ratio, holm
from fslab.stats.interval import half_range, median
from fslab.stats.paired import compare_blocks
from fslab.stats.power import detectable, excluded
from fslab.stats.sequential import Looks, compare_at_look
from fslab.units import Direction, Unit, shown_size
from fslab.workloads import parsed_if_known, traits_of

FACTOR = 2.0
Estimator = Callable[[float], RatioEstimate]  # coverage → ratio B ÷ A of a line
SPEEDS = frozenset(
    {
        Unit.BYTES_PER_SECOND, Unit.IOPS, Unit.FILES_PER_SECOND, Unit.OPERATIONS_PER_SECOND, Unit.NANOSECONDS,
        Unit.SECONDS,
    }
)  # fmt: skip


def declared(workload: WorkloadSpec) -> tuple[Metric, ...]:
    """Return all metrics of a workload; empty if this version of fslab does not know the workload."""
    known = parsed_if_known(workload)
    return known.metrics() if known else ()


def values_by_block(trials: Iterable[TrialRecord], metric: str) -> dict[int, float]:
    """Return the values of a cell's usable trials by block. A probe is used if there is no metric with this name."""
    found: dict[int, float] = {}
    for trial in trials:
        if is_usable(trial):
            figure = trial.metrics.get(metric) or trial.probes.get(metric)
            if figure is not None and figure.value is not None:
                found[trial.key.block] = figure.value
    return found


def medians_by_campaign(trials: Iterable[TrialRecord], metric: str) -> dict[int, float]:
    """Return the median of each campaign's usable trials of a cell, numbered in the order of the campaigns."""
    by_campaign: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        by_campaign.setdefault(trial.key.campaign, []).append(trial)
    found = (median(list(values_by_block(each, metric).values())) for each in by_campaign.values())
    return dict(enumerate(value for value in found if value is not None))


def line(
    cells: tuple[Cell, Cell], metric: Metric, a: Sequence[float], b: Sequence[float], estimate: RatioEstimate, *,
    sampled: str, failed: tuple[int, int] = (0, 0),
) -> ComparisonLine:  # fmt: skip
    """Return B ÷ A for one metric of a cell and its partner. ``with_family`` adds ``p_family`` and the verdict."""
    cell, interval = cells[0], estimate.interval
    outcome = _outcome(estimate, metric.better)
    return ComparisonLine(
        stack=" → ".join(dict.fromkeys(each.stack.name for each in cells)),
        workload=cell.workload.name,
        cache=cell.cache.value,
        sampled=sampled,
        block_size=" → ".join(dict.fromkeys(filter(None, map(_block_size, cells)))) or None,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        a=_sample(a, failed[0]),
        b=_sample(b, failed[1]),
        ratio=estimate.ratio,
        interval=Span.of(interval) if interval else None,
        p_value=estimate.p_value,
        p_family=None,
        holds_together=None,
        ruled_out=excluded(estimate),
        detectable=detectable(estimate),
        outcome=outcome,
        verdict="",
        method=estimate.method.value,
        needed=estimate.needed,
        rests_on_independence=estimate.rests_on_independence,
        of_medians=_quotient(median(b), median(a)) if estimate.ratio is not None else None,
    )


def estimate_of(
    a: Mapping[int, float], b: Mapping[int, float], *, paired: bool, looks: Looks | None, coverage: float
) -> RatioEstimate:
    """Return the ratio B ÷ A, from values by block.

    ``paired``: blocks with the same number were measured side by side. ``looks``: schedule of the interim analyses, if
    trials were repeated until the ranking was clear.
    """
    if not paired:
        return compare_ratio(list(b.values()), list(a.values()), coverage=coverage)
    if looks is None:
        return compare_blocks(b, a, coverage=coverage)
    return compare_at_look(b, a, looks=replace(looks, coverage=coverage))


def with_family(found: Sequence[ComparisonLine], alpha: float) -> tuple[ComparisonLine, ...]:
    """Return the lines with the results of Holm's correction over all lines, and with the verdicts in words."""
    adjusted = iter(holm([each.p_value for each in found if each.p_value is not None]))
    finished = []
    for each in found:
        p_family = None if each.p_value is None else next(adjusted)
        differs = each.interval is not None and not each.interval.low <= 1 <= each.interval.high
        holds = None if p_family is None else differs and p_family <= alpha
        known = each.model_copy(update={"p_family": p_family, "holds_together": holds})
        finished.append(known.model_copy(update={"verdict": verdict(known)}))
    return tuple(finished)


def change_for_worse(ratio: float, better: Direction) -> float:
    """Return how much worse B is, as a fraction of A: 0.05 for a rate 5 % lower or a time 5 % longer."""
    return ratio - 1 if better is Direction.LOWER else 1 - ratio


def percent(fraction: float) -> str:
    """Return a percentage with two significant digits, such as ``3.4 %`` and ``12 %``. Only 0 is shown as 0."""
    value = abs(fraction) * 100
    for limit, decimals in ((9.95, 0), (0.095, 1), (0.0095, 2)):
        if value >= limit:
            return f"{value:.{decimals}f} %"
    return f"{value:.2g} %"


def verdict(each: ComparisonLine) -> str:
    """Return the outcome as ``12 % slower``, ``maybe 4.0 % faster``, ``indistinguishable (> 3.1 % detectable)``."""
    match each.outcome:
        case LineOutcome.MISSING:
            missing = [name for name, side in (("A", each.a), ("B", each.b)) if not side.values]
            return (
                "failed in B"
                if each.b.broken and each.a.values
                else f"no usable trial in {' and '.join(missing)}"
            )
        case LineOutcome.NO_RATIO:
            return "no ratio: not all values are positive"
        case LineOutcome.TOO_FEW:
            return f"too few {each.sampled} ({each.needed} of each needed)"
        case LineOutcome.NOT_DETECTED:
            seen = each.detectable if each.detectable is not None else each.ruled_out
            if seen is None:
                return "indistinguishable"
            size = percent(seen) if seen < 1 else f"{1 + seen:.1f} ×"
            word = "indistinguishable" if seen <= COARSE else "inconclusive"
            return f"{word} (> {size} detectable)"
        case LineOutcome.BETTER | LineOutcome.WORSE | LineOutcome.HIGHER | LineOutcome.LOWER:
            return ("" if each.holds_together else "maybe ") + _change(each)


def _change(each: ComparisonLine) -> str:
    return _size(each.ratio or 1.0, each.unit, each.better)


def change_words(ratio: float | None, interval: Span | None, unit: Unit, better: Direction) -> str:
    """Return a change as ``12 % slower (8.0 % to 16 %)`` or ``2.41 × as long (2.20–2.60)``, the interval if known."""
    if ratio is None:
        return "changed"
    words = _size(ratio, unit, better)
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


def _size(ratio: float, unit: Unit, better: Direction) -> str:
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


def _outcome(estimate: RatioEstimate, better: Direction) -> LineOutcome:
    match estimate.reason:
        case Reason.NO_SAMPLES:
            return LineOutcome.MISSING
        case Reason.NOT_POSITIVE | Reason.NOT_FINITE:
            return LineOutcome.NO_RATIO
        case Reason.TOO_FEW_SAMPLES:
            return LineOutcome.TOO_FEW
        case None:
            pass
    if not estimate.differs or estimate.ratio is None:
        return LineOutcome.NOT_DETECTED
    larger = estimate.ratio > 1
    match better:
        case Direction.NEITHER:
            return LineOutcome.HIGHER if larger else LineOutcome.LOWER
        case Direction.HIGHER:
            return LineOutcome.BETTER if larger else LineOutcome.WORSE
        case Direction.LOWER:
            return LineOutcome.WORSE if larger else LineOutcome.BETTER


def _block_size(cell: Cell) -> str | None:
    """Return the request size of a cell's workload. Means never combine different block sizes."""
    return ",".join(map(shown_size, traits_of(cell.workload).request_bytes)) or None


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _sample(values: Sequence[float], failed: int) -> SampleSummary:
    return SampleSummary(
        values=tuple(values), median=median(values), spread=half_range(values), failed=failed
    )
