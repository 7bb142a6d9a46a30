"""Trials → what they say of a claim. Pure.

A claim is a conjunction. It holds when the 95 % interval of every part lies within its bounds (intersection–union:
no correction is needed; Berger, Technometrics 24 (1982) 295). It is contradicted when the interval of some part
lies outside, made so wide that all parts together err once in twenty at most (Bonferroni). Else it is undecided.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, inf, log, prod

from fslab.claims.model import ClaimAnswer, ClaimVerdict, PartFinding
from fslab.claims.parts import Bounds, CellFigure, Part, Quotient, Spread
from fslab.claims.trials import Trials
from fslab.claims.words import answer_words
from fslab.stats import Reason
from fslab.stats.compare import ComparisonMethod, RatioEstimate, invalid_samples, no_ratio
from fslab.stats.goal import Goal, expected_needed
from fslab.stats.interval import Interval
from fslab.stats.paired import PAIRS_LEAST, compare_blocks
from fslab.stats.sequential import Looks, compare_at_look

ERROR = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """How trials are judged: ``looks`` for a campaign that looks again and again, None for one that does not."""

    trials: Trials
    looks: Looks | None = None

    def answer(self, parts: Sequence[Part], missing: Sequence[str] = ()) -> ClaimAnswer:
        """What the trials say of a claim with these parts; ``missing``: what there are no cells for."""
        findings = tuple(self.finding(part, len(parts)) for part in parts)
        verdict = combined([finding.verdict for finding in findings], complete=not missing)
        words = answer_words(verdict, findings, missing, absent="not measured here")
        return ClaimAnswer(verdict=verdict, words=words, parts=len(parts), findings=findings)

    def finding(self, part: Part, among: int) -> PartFinding:
        """What the trials say of one part of a claim that has ``among``."""
        why = self._absence(part)
        if why is not None:
            return _finding(part, None, ClaimVerdict.UNKNOWN, why)
        estimate = self.estimate(part, 1 - ERROR)
        if estimate.interval is None:
            if estimate.reason in {Reason.NOT_POSITIVE, Reason.NOT_FINITE}:
                return _finding(part, estimate, ClaimVerdict.UNKNOWN, self._unfit(part))
            return _finding(part, estimate, ClaimVerdict.UNDECIDED, self._few(part, estimate.needed))
        low, high = estimate.interval.low, estimate.interval.high
        if part.bounds.hold(low, high):
            return _judged(part, estimate, ClaimVerdict.HOLDS)
        if part.bounds.exclude(low, high):
            wide = self.estimate(part, 1 - ERROR / among)
            if wide.interval and part.bounds.exclude(wide.interval.low, wide.interval.high):
                return _judged(part, wide, ClaimVerdict.CONTRADICTED)
        further = expected_needed(
            from_edge(part.bounds, estimate), precision=0.0, goal=Goal.DECIDED, looks=self.looks
        )
        found = _finding(part, estimate, ClaimVerdict.UNDECIDED)
        return found.model_copy(update={"further": further or None})

    def estimate(self, part: Part, coverage: float) -> RatioEstimate:
        """What a part's quotient is known to be."""
        if isinstance(part, Spread):
            return self._spread(part, coverage)
        return self._quotient(part.weights, coverage)

    def _absence(self, part: Part) -> str | None:
        for figure in part.figures:
            why = self.trials.why_none(figure)
            if why is not None:
                return why
        machines = {figure.cell.stack.machine.type for figure in part.figures}
        if len(machines) > 1:
            return f"measured on unlike machines ({', '.join(sorted(machines))}), not compared"
        return None

    def _few(self, part: Part, needed: int) -> str:
        """In how many blocks all was measured that a part compares: what intervals come from."""
        found = len(set.intersection(*(set(self.trials.values(figure)) for figure in part.figures)))
        what = "trial" if len(part.figures) == 1 else "common block"
        return f"{found} {what}{'s' * (found != 1)}; {needed} are enough"

    def _unfit(self, part: Part) -> str:
        """Which figure cannot be a part of a ratio."""
        for figure in part.figures:
            if invalid_samples([*self.trials.values(figure).values()], [1.0]) is not None:
                name, stack = figure.cell.workload.name, figure.cell.stack.name
                return f"{figure.metric.name} of {name} on {stack} is not above 0 in some trials: no ratio"
        return "not all its values are positive"

    def _quotient(self, weights: Sequence[tuple[CellFigure, float]], coverage: float) -> RatioEstimate:
        values = [self.trials.values(figure) for figure, _ in weights]
        powers = [weight for _, weight in weights]
        if powers == [1.0, -1.0]:
            return self._compare(values[0], values[1], coverage)
        problem = invalid_samples([one for each in values for one in each.values()], [1.0])
        if problem is not None:
            return no_ratio(len(values[0]), len(values[0]), problem, PAIRS_LEAST, coverage)
        blocks = sorted(set.intersection(*(set(each) for each in values)))
        if not blocks:
            return no_ratio(0, 0, Reason.NO_SAMPLES, PAIRS_LEAST, coverage)
        over, under = (_product(values, powers, blocks, way) for way in (1, -1))
        found = self._compare(over, under, coverage)
        # What is below the line is no sample of its own here, so that ranks of the two mean nothing.
        unpaired = found.method is ComparisonMethod.RANK_SUM
        return dataclasses.replace(found, interval=None, reason=Reason.TOO_FEW_SAMPLES) if unpaired else found

    def _compare(self, a: Mapping[int, float], b: Mapping[int, float], coverage: float) -> RatioEstimate:
        if self.looks is None:
            return compare_blocks(a, b, coverage=coverage)
        return compare_at_look(a, b, looks=dataclasses.replace(self.looks, coverage=coverage))

    def _spread(self, part: Spread, coverage: float) -> RatioEstimate:
        """From intervals of all pairs at once (Bonferroni): the largest distance is at least the largest that is
        sure of any pair, and at most the largest that is possible of any. Noise does not widen it on the average, as
        it would a largest ÷ smallest taken block by block.
        """  # fmt: skip
        sides = [list(combinations(each, 2)) for each in (part.ones, part.others)]
        each = 1 - (1 - coverage) / sum(map(len, sides))
        found = [[self._quotient(((x, 1.0), (y, -1.0)), each) for x, y in side] for side in sides]
        estimates = [estimate for side in found for estimate in side]
        fewest = min(min(estimate.n_a, estimate.n_b) for estimate in estimates)
        lacking = next((one for one in estimates if one.interval is None), None)
        if lacking is not None:
            return dataclasses.replace(lacking, n_a=fewest, n_b=fewest)
        (least, most, middle), (under_least, under_most, under_middle) = (_largest(side) for side in found)
        interval = Interval(low=exp(least - under_most), high=exp(most - under_least), coverage=coverage)
        return RatioEstimate(
            n_a=fewest, n_b=fewest, ratio=exp(middle - under_middle), interval=interval, p_value=None, reason=None,
            needed=PAIRS_LEAST, method=estimates[0].method, coverage=coverage,
        )  # fmt: skip


def combined(verdicts: Sequence[ClaimVerdict], *, complete: bool = True) -> ClaimVerdict:
    """The verdict on a conjunction from those on its parts."""
    found = set(verdicts)
    for worst in (ClaimVerdict.CONTRADICTED, ClaimVerdict.UNDECIDED):
        if worst in found:
            return worst
    if found <= {ClaimVerdict.UNKNOWN}:
        return ClaimVerdict.UNKNOWN
    return ClaimVerdict.HOLDS if complete and ClaimVerdict.UNKNOWN not in found else ClaimVerdict.IN_PART


def margin(bounds: Bounds, low: float, high: float) -> float:
    """How far inside the bounds a value lies, on logarithms; negative where it lies across or outside."""
    below = log(low / bounds.low) if bounds.low > 0 else inf
    above = log(bounds.high / high) if bounds.high < inf else inf
    return min(below, above)


def from_edge(bounds: Bounds, estimate: RatioEstimate) -> RatioEstimate:
    """The estimate as a multiple of the end of the bounds that it is nearest to."""
    ratio, interval = estimate.ratio, estimate.interval
    if ratio is None or interval is None:
        return estimate
    ends = [end for end in (bounds.low, bounds.high) if 0 < end < inf]
    edge = min(ends, key=lambda end: abs(log(ratio / end)))
    shifted = dataclasses.replace(interval, low=interval.low / edge, high=interval.high / edge)
    return dataclasses.replace(estimate, ratio=ratio / edge, interval=shifted)


def _product(
    values: Sequence[Mapping[int, float]], powers: Sequence[float], blocks: Sequence[int], way: int
) -> dict[int, float]:
    """By block, the product of the figures above the line (``way`` 1) or below it (−1)."""
    chosen = [(each, abs(power)) for each, power in zip(values, powers, strict=True) if power * way > 0]
    return {block: prod(each[block] ** power for each, power in chosen) for block in blocks}


def _largest(side: Sequence[RatioEstimate]) -> tuple[float, float, float]:
    """Of one side's pairs: the distance that is sure, that is possible, and that is most likely; on logarithms."""
    least = most = middle = 0.0
    for one in side:
        if one.interval is None or one.ratio is None:
            continue
        low, high = log(one.interval.low), log(one.interval.high)
        least = max(least, low, -high)
        most = max(most, abs(low), abs(high))
        middle = max(middle, abs(log(one.ratio)))
    return least, most, middle


def _judged(part: Part, estimate: RatioEstimate, verdict: ClaimVerdict) -> PartFinding:
    """With a verdict that autocorrelated trials may have made: not of single figures, which are not widened."""
    alone = isinstance(part, Quotient) and len(part.weights) == 1
    fragile = not alone and rests_on_independence(part.bounds, estimate, verdict)
    return _finding(part, estimate, verdict).model_copy(update={"rests_on_independence": fragile})


def rests_on_independence(bounds: Bounds, estimate: RatioEstimate, verdict: ClaimVerdict) -> bool:
    """Whether the interval that trials with an autocorrelation of 0.5 need would no longer say so."""
    wide = estimate.were_trials_alike
    if wide is None:
        return False
    said = bounds.hold if verdict is ClaimVerdict.HOLDS else bounds.exclude
    return not said(wide.low, wide.high)


def _finding(
    part: Part, estimate: RatioEstimate | None, verdict: ClaimVerdict, why: str | None = None
) -> PartFinding:
    interval = estimate.interval if estimate else None
    alone = isinstance(part, Quotient) and len(part.weights) == 1
    return PartFinding(
        what=part.name,
        where=part.where,
        bound=part.bounds.shown,
        verdict=verdict,
        value=estimate.ratio if estimate else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        coverage=estimate.coverage if estimate and interval else None,
        blocks=min(estimate.n_a, estimate.n_b) if estimate else None,
        unit=part.figures[0].metric.unit if alone else None,
        margin=margin(part.bounds, interval.low, interval.high) if interval else None,
        why=why,
    )
