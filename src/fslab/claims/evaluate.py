"""Evaluates claims from trials. Pure.

A claim is a conjunction of parts. It is replicated when every part is replicated (intersection–union test, which needs
no correction; Berger, Technometrics 24 (1982) 295). It fails when one of its parts fails. Because several parts could
fail by chance, the parts that are not replicated yet share the error (Holm's procedure within a claim; Scand. J.
Statist. 6 (1979) 65): each replicated part leaves its share to the others. ``requirement_check`` corrects for the
number of claims of a study.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import exp, expm1, inf, log, sqrt
from typing import Any

from fslab.answers.across_campaigns import NO_SPREAD, CampaignSpread, over_campaigns
from fslab.answers.ratio import PAIRS_LEAST, Estimate, further_from
from fslab.claims import verdict as verdicts
from fslab.claims.campaign_estimates import CampaignEstimates, Weights, spread_of, weights_by_cell
from fslab.claims.claim_words import answer_words
from fslab.claims.model import DECISIVE, CampaignsBetween, ClaimAnswer, ClaimVerdict, OpenReason, PartFinding
from fslab.claims.parts import Bounds, Part, Spread
from fslab.claims.verdict import (
    distance_inside,
    effort_of,
    firm,
    from_edge,
    part_finding,
    tendency_of,
    verdict_of,
)
from fslab.stats import Interval, Reason
from fslab.stopping_settings import MARGIN
from fslab.units import counted

ERROR = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator(CampaignEstimates):
    """Evaluates parts of claims by the trials of a campaign, and by ``others`` of the study on this machine, with the
    ``spread`` between all of them.

    ``error``: the probability that a verdict on a claim is false. ``estimates``: a cache, by figures, coverage and
    number of parts.
    """

    error: float = ERROR
    others: Sequence[CampaignEstimates] = ()
    spread: CampaignSpread | None = None
    estimates: dict[object, Estimate] = field(default_factory=dict, repr=False)

    def over(self, others: Sequence[CampaignEstimates]) -> "Evaluator":
        """Return the evaluator by these campaigns too, or itself if they do not show how much figures change
        between them."""
        spread = spread_of([self.trials, *(each.trials for each in others)])
        known = spread is not None
        return dataclasses.replace(self, others=others, spread=spread, estimates={}) if known else self

    def between(self) -> CampaignsBetween | None:
        """Return how much figures change between campaigns; None of one campaign."""
        if self.spread is None:
            return None
        return CampaignsBetween(
            changes=expm1(sqrt(self.spread.changes.variance + self.spread.stacks.variance)),
            shifts=expm1(sqrt(self.spread.shifts.variance + self.spread.machine.variance)),
        )

    def answer(
        self, parts: Sequence[Part], missing: Sequence[str] = (), *, margin: float = MARGIN
    ) -> ClaimAnswer:
        """Return the verdict of the trials on a claim with these parts. ``missing``: parts without cells, in words."""
        findings = self.findings(parts, margin)
        told = [(part.bounds.is_direction, each) for part, each in zip(parts, findings, strict=True)]
        verdict = verdicts.of_claim(map(verdict_of, findings), complete=not missing)
        reason = effort = tendency = None
        if verdict is ClaimVerdict.OPEN:
            effort = effort_of(parts, findings, self.trials.cost_s, margin)
            tendency = verdicts.of_claim(map(tendency_of, findings), complete=not missing)
            reason = _open_reason(findings, tendency, known_effort=effort is not None)
        return ClaimAnswer(
            verdict=verdict, words=answer_words(verdict, findings, missing, absent="not measured here", margin=margin),
            parts=len(parts), findings=findings, margin=margin,
            direction=verdicts.of_known(each.verdict if only else each.direction for only, each in told),
            size=verdicts.of_known(None if only else each.verdict for only, each in told),
            reason=reason, tendency=None if tendency is ClaimVerdict.OPEN else tendency,
            more_s=effort.seconds if effort else None,
        )  # fmt: skip

    def findings(self, parts: Sequence[Part], margin: float) -> tuple[PartFinding, ...]:
        """Return the finding on each part. A replicated part leaves its share of the error to the others.

        A part that decides is judged again at the level of its share, and all of its finding is of that interval.
        """
        among = len(parts)
        found = [self.finding(part, margin, among) for part in parts]
        left = sum(
            finding.verdict not in {ClaimVerdict.REPLICATED, ClaimVerdict.UNKNOWN} for finding in found
        )
        return tuple(
            self._judged(part, self.estimate(part, 1 - self.error / left, among), margin, among)
            if finding.verdict in DECISIVE
            else finding
            for part, finding in zip(parts, found, strict=True)
        )

    def finding(self, part: Part, margin: float, among: int = 1) -> PartFinding:
        """Return the finding on one part as if it were the whole claim.

        ``among``: the number of parts of the claim, of which the least certain one decides.
        """
        why = self._absence(part)
        if why is not None:
            return _finding(part, None, ClaimVerdict.UNKNOWN, why=why)
        return self._judged(part, self.estimate(part, 1 - self.error, among), margin, among)

    def _judged(self, part: Part, estimate: Estimate, margin: float, among: int) -> PartFinding:
        bounds, interval = part.bounds, estimate.interval
        if interval is None:
            return self._without_interval(part, estimate)
        verdict, tendency = firm(bounds, estimate, interval, margin)
        side = None if bounds.is_direction else bounds.side
        near = tendency is None and verdicts.at_limit(bounds, interval.low, interval.high, margin)
        is_open = verdict is ClaimVerdict.OPEN and not near
        differ = is_open and self._campaigns_differ(part, estimate.coverage, margin, among)
        sought = Bounds(low=1 / (1 + margin), high=1 + margin) if tendency is ClaimVerdict.TIE else bounds
        more = (
            self._further(sought, estimate, None if tendency else margin) if is_open and not differ else None
        )
        return _finding(
            part, estimate, verdict, tendency=tendency, campaigns_differ=differ, further=more,
            direction=side and firm(side, estimate, interval, margin)[0],
            at_limit=verdict is ClaimVerdict.OPEN and near,
        )  # fmt: skip

    def _campaigns_differ(self, part: Part, coverage: float, margin: float, among: int) -> bool:
        """Return whether a part would have a verdict if nothing differed between campaigns."""
        if self.spread is None:
            return False
        calm = dataclasses.replace(self, spread=NO_SPREAD, estimates={})
        found = calm.estimate(part, coverage, among)
        return found.interval is not None and (
            firm(part.bounds, found, found.interval, margin)[0] is not ClaimVerdict.OPEN
        )

    def _without_interval(self, part: Part, estimate: Estimate) -> PartFinding:
        if estimate.reason in {Reason.NOT_POSITIVE, Reason.NOT_FINITE}:
            return _finding(part, estimate, ClaimVerdict.UNKNOWN, why=self._unfit(part))
        # Intervals are computed from the blocks that have all figures of a part.
        found = len(set.intersection(*(set(self.trials.values(figure)) for figure in part.figures)))
        what = counted(found, "trial" if len(part.figures) == 1 else "common block")
        return _finding(
            part, estimate, ClaimVerdict.OPEN, why=f"{what}; {estimate.needed} are needed", blocks=found,
            further=max(1, estimate.needed - found),
        )  # fmt: skip

    def _further(self, bounds: Bounds, found: Estimate, margin: float | None) -> int | None:
        """Return about how many more blocks it takes to show that the part is replicated, failed or at the limit.

        ``bounds``: what is to be shown; where a direction tends to a tie, that the ratio lies within the margin.
        ``margin``: None if the part is not at the limit.
        """
        if found.interval is not None and found.interval.low <= 0:
            return found.n_a  # no forecast on logarithms: twice as many as there are
        near = 0.0 if margin is None else exp(verdicts.nearness(bounds, margin)) - 1
        return further_from(from_edge(bounds, found), near, looks=self.looks) or None

    def estimate(self, part: Part, coverage: float, among: int = 1) -> Estimate:
        """Return the estimate of a part's quotient or spread."""
        if isinstance(part, Spread):
            return self._spread(part, coverage)
        return self._quotient(part.weights, coverage, among)

    def _absence(self, part: Part) -> str | None:
        for figure in part.figures:
            why = [each.trials.why_none(figure) for each in (self, *self.others)]
            if None not in why:
                return why[0]
        machines = {figure.cell.stack.machine.type for figure in part.figures}
        if len(machines) > 1:
            return f"measured on different machines ({', '.join(sorted(machines))}), not compared"
        return None

    def _unfit(self, part: Part) -> str:
        """Return, in words, the figure that cannot be used in a ratio."""
        for figure in part.figures:
            values = self.trials.values(figure)
            unfit = [block for block, value in values.items() if not 0 < value < inf]
            if unfit:
                name, stack = figure.cell.workload.name, figure.cell.stack.name
                return (
                    f"{figure.metric.name} of {name} on {stack} is {values[unfit[0]]:g} in {len(unfit)} of "
                    f"{len(values)} trials, first in block {unfit[0]}: no ratio; claim the figure itself, "
                    f"such as '{stack} < …'"
                )
        return "some values are not above 0: no ratio"

    def _quotient(self, weights: Weights, coverage: float, among: int) -> Estimate:
        key = (tuple((figure.key, weight) for figure, weight in weights), coverage, among)
        if key not in self.estimates:
            self.estimates[key] = self._over_campaigns(weights, coverage, among)
        return self.estimates[key]

    def _over_campaigns(self, weights: Weights, coverage: float, among: int) -> Estimate:
        found = self.of_campaign(weights, coverage, among)
        if self.spread is None:
            return found
        others = [each.of_campaign(weights, coverage, among) for each in self.others]
        return over_campaigns([found, *others], self.spread, weights_by_cell(weights))

    def _spread(self, part: Spread, coverage: float) -> Estimate:
        """Estimate the ratio of two spreads from simultaneous intervals of all pairs (Bonferroni).

        The largest distance is at least the largest lower end, and at most the largest upper end, of the intervals of
        all pairs. On average, noise does not inflate it, as it would inflate largest ÷ smallest taken block by block.
        """
        sides = [list(combinations(each, 2)) for each in (part.ones, part.others)]
        count = sum(map(len, sides))
        each = 1 - (1 - coverage) / count
        found = [[self._quotient(((x, 1.0), (y, -1.0)), each, count) for x, y in side] for side in sides]
        estimates = [estimate for side in found for estimate in side]
        fewest = min(min(estimate.n_a, estimate.n_b) for estimate in estimates)
        lacking = next((one for one in estimates if one.interval is None), None)
        if lacking is not None:
            return dataclasses.replace(
                lacking, n_a=fewest, n_b=fewest, ratio=None
            )  # that is the ratio of a pair
        (least, most, middle), (under_least, under_most, under_middle) = (_largest(side) for side in found)
        interval = Interval(low=exp(least - under_most), high=exp(most - under_least), coverage=coverage)
        return Estimate(
            n_a=fewest, n_b=fewest, ratio=exp(middle - under_middle), interval=interval, p_value=None, reason=None,
            needed=PAIRS_LEAST, method=estimates[0].method, coverage=coverage,
        )  # fmt: skip


def _open_reason(
    findings: Sequence[PartFinding], tendency: ClaimVerdict, *, known_effort: bool
) -> OpenReason:
    if tendency is not ClaimVerdict.OPEN:
        return OpenReason.INDEPENDENCE
    if not known_effort and any(finding.at_limit for finding in findings):
        return OpenReason.AT_LIMIT
    if not known_effort and any(finding.campaigns_differ for finding in findings):
        return OpenReason.CAMPAIGNS
    return OpenReason.NOISE


def _largest(side: Sequence[Estimate]) -> tuple[float, float, float]:
    """Return the largest lower end, upper end and estimate of the distances of one side's pairs, on logarithms."""
    least = most = middle = 0.0
    for one in side:
        if one.interval is None or one.ratio is None:
            continue
        low, high = log(one.interval.low), log(one.interval.high)
        least = max(least, low, -high)
        most = max(most, abs(low), abs(high))
        middle = max(middle, abs(log(one.ratio)))
    return least, most, middle


def _finding(part: Part, estimate: Estimate | None, verdict: ClaimVerdict, **more: Any) -> PartFinding:
    interval = estimate.interval if estimate else None
    # Without an interval, a direction that the size implies is as unknown as the size.
    implied = interval is None and not part.bounds.is_direction and part.bounds.side is not None
    told: dict[str, Any] = {"direction": verdict if implied else None}
    if estimate is not None:
        told |= {"value": estimate.ratio, "blocks": min(estimate.n_a, estimate.n_b)}
    if estimate is not None and interval is not None:
        low, high = interval.low, interval.high
        told |= {"low": low, "high": high, "coverage": estimate.coverage}
        told["margin"] = distance_inside(part.bounds, low, high)
    return part_finding(part, verdict, **{**told, **more})
