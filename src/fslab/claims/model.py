"""The results of evaluating claims, as frozen values, and how the verdicts of two campaigns agree. Pure.

The terminal, the pages and ``--json`` show the same values.
"""

from collections.abc import Iterable
from enum import StrEnum

from fslab.cell import Frozen
from fslab.claims.publication_likeness import Condition
from fslab.units import Unit


class ClaimVerdict(StrEnum):
    """The verdict on a claim, or on one part of a claim.

    By printed figures: ``holds``, ``holds_in_part`` (all printed parts hold, but some parts are not printed),
    ``contradicted``.

    By trials: ``replicated``, ``replicated_in_part``, ``differs`` (another size is shown; the direction has a verdict
    of its own), ``reversed``, ``open``. If an order is claimed and the whole interval lies within the margin of
    interest: ``same_direction_small``, ``opposite_small``, or ``tie`` (it contains 1).

    ``not_tested``: there are figures, but they do not answer the claim, because a requirement is not met.
    ``no_longer``: likewise, but machine and amounts are the publication's, so the software has changed.

    ``unknown``: not printed, or not tested here.
    """

    HOLDS = "holds"
    IN_PART = "holds_in_part"
    CONTRADICTED = "contradicted"
    REPLICATED = "replicated"
    PARTLY = "replicated_in_part"
    SMALL = "same_direction_small"
    OPPOSITE = "opposite_small"
    TIE = "tie"
    DIFFERS = "differs"
    REVERSED = "reversed"
    OPEN = "open"
    NO_LONGER = "no_longer"
    NOT_TESTED = "not_tested"
    UNKNOWN = "unknown"


UPHELD = (ClaimVerdict.REPLICATED, ClaimVerdict.PARTLY)
FAILED = (ClaimVerdict.REVERSED, ClaimVerdict.DIFFERS)
# No difference of interest, whatever was claimed. Which of the three it is depends on the number of trials: enough of
# them show the sign of any difference.
BELOW = (ClaimVerdict.OPPOSITE, ClaimVerdict.TIE, ClaimVerdict.SMALL)
# A claim is not replicated if one of its parts has one of these verdicts. The first of them decides.
DECISIVE = (*FAILED, *BELOW)
# More trials change nothing, but there is no verdict on the claim.
UNTESTED = (ClaimVerdict.NOT_TESTED, ClaimVerdict.UNKNOWN)


class OpenReason(StrEnum):
    """The reason why a claim is open.

    ``noise``: more trials decide it. ``independence``: it has a verdict only if successive trials are independent, and
    there are too few blocks to know it. ``at_limit``: the true value and the claimed limit are closer than the margin.
    ``campaigns``: they differ from each other; not more of their trials, but further campaigns decide it.
    """

    NOISE = "noise"
    INDEPENDENCE = "independence"
    AT_LIMIT = "at_limit"
    CAMPAIGNS = "campaigns"


class Unmet(Frozen):
    """A requirement (``fslab.claims.requirements``) that a part of a claim does not meet, in words.

    ``try_``: an option of ``fslab run`` with which it may be met. ``by_software``: it depends on what the software
    does, and not only on machine and amounts.
    """

    requirement: str
    what: str
    try_: str | None = None
    by_software: bool = False


class PartFinding(Frozen):
    """The finding on one part of a claim.

    ``value``: a ratio, or a figure in ``unit`` if that is set. ``low`` to ``high``: its interval with ``coverage``
    (over all looks of a campaign); None for a printed figure. ``table``: the table of a printed figure. ``bound``: the
    range in which the value must lie. ``margin``: how far inside this range it lies, on logarithms (negative: outside).
    ``further``: about how many more blocks would decide it. ``why``: the reason why nothing is known.
    ``tendency``: of an open part, the verdict that it has only if trials are not correlated with the ones before them;
    there are too few blocks to detect that. ``direction``: if ``bound`` is about a size beyond 1, the verdict on the
    side of 1 alone. ``at_limit``: the whole interval is nearer to the limit than the margin of interest. ``unmet``: the
    first requirement that its figures do not meet. ``campaigns_differ``: it would have a verdict if nothing differed
    between campaigns.
    """

    what: str
    where: str
    bound: str
    verdict: ClaimVerdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    blocks: int | None = None
    unit: Unit | None = None
    table: str | None = None
    margin: float | None = None
    further: int | None = None
    why: str | None = None
    tendency: ClaimVerdict | None = None
    direction: ClaimVerdict | None = None
    at_limit: bool = False
    campaigns_differ: bool = False
    unmet: Unmet | None = None


class ClaimAnswer(Frozen):
    """The verdict on a claim, the findings on which it is based, and both in words. ``parts``: number of parts.

    ``compared``: the stacks that the findings are about. ``left_out``: stacks that the words of the claim also mean,
    but for which no other stack has the same values of everything that the claim leaves open.

    For trials only. ``direction``, ``size``: separate verdicts on the claim's directions and on its sizes (None: it has
    none). ``margin``: the smallest difference of interest, as a share. ``reason``: why the claim is open.
    ``tendency``: the verdict of an open claim if trials are independent. ``more_s``: about how many seconds of trials
    would decide it. ``unmet``: the requirements that are not met, those of most parts first.
    """

    verdict: ClaimVerdict
    words: str
    parts: int
    findings: tuple[PartFinding, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    direction: ClaimVerdict | None = None
    size: ClaimVerdict | None = None
    margin: float | None = None
    reason: OpenReason | None = None
    tendency: ClaimVerdict | None = None
    more_s: float | None = None
    unmet: tuple[Unmet, ...] = ()


class EvaluatedClaim(Frozen):
    """One claim with both answers. An answer is None if it was not requested."""

    id: str
    says: str
    that: tuple[str, ...]
    on: tuple[str, ...] = ()
    note: str | None = None
    published: ClaimAnswer | None = None
    measured: ClaimAnswer | None = None


def tested(claims: Iterable[EvaluatedClaim]) -> int:
    """Return the number of claims that the trials test."""
    return sum(claim.measured is not None and claim.measured.verdict not in UNTESTED for claim in claims)


class TableCell(Frozen):
    """One field of a table: a figure as a multiple of the reference's figure, printed and measured.

    ``low`` to ``high``: the interval of the measured multiple. ``why``: the reason why there is none. ``printed_value``
    and ``measured_median``: the figure itself, in the unit of the line.
    """

    printed: float | None
    printed_value: float | None = None
    measured_median: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None


class TableLine(Frozen):
    """One row of a table: one metric of one workload on each stack. The value of the reference is 1.

    ``unit``: None if the study has no such metric.
    """

    workload: str
    metric: str
    unit: Unit | None = None
    cells: tuple[TableCell, ...]


class PublishedTable(Frozen):
    """A table of a publication, with a column per stack and a row per workload and metric.

    Each figure is a multiple of that of ``reference``.
    """

    name: str
    stacks: tuple[str, ...]
    reference: str
    lines: tuple[TableLine, ...]


class CampaignsBetween(Frozen):
    """What changes between campaigns beyond the noise of trials: standard deviations, as shares. ``changes``: of one
    figure beside the others of its workload. ``shifts``: of a whole workload, which cancel in a ratio of two stacks."""

    changes: float
    shifts: float


class Verdicts(Frozen):
    """The complete result of ``fslab claims``. ``campaign`` is None if there is no campaign of the study.

    ``others``: further campaigns by which claims are judged, and what changes ``between`` all of them.
    ``nearness``: the publication's conditions beside those of the campaign.
    """

    study: str
    title: str
    source: str | None
    campaign: str | None = None
    others: tuple[str, ...] = ()
    between: CampaignsBetween | None = None
    conditions: str | None = None
    known_limits: tuple[str, ...] = ()
    nearness: tuple[Condition, ...] = ()
    claims: tuple[EvaluatedClaim, ...] = ()
    tables: tuple[PublishedTable, ...] = ()

    @property
    def tested(self) -> int:
        return tested(self.claims)

    def counts(self, *, published: bool) -> dict[ClaimVerdict, int]:
        answers = [claim.published if published else claim.measured for claim in self.claims]
        known = [answer.verdict for answer in answers if answer is not None]
        return {verdict: known.count(verdict) for verdict in ClaimVerdict if verdict in known}


class ChangedVerdict(Frozen):
    """A claim that both campaigns decided, with different results."""

    id: str
    says: str
    a: ClaimAnswer
    b: ClaimAnswer


class Agreement(Frozen):
    """``common``: the number of claims that both campaigns decided. ``changed``: those of which one is replicated,
    contradicted, below the margin or no longer so, and the other is not. ``reworded``: ids of those with the same
    result in other words, such as a tie, and a small difference in the claimed direction. ``only_a``, ``only_b``: ids
    of those that only one of them did."""

    common: int
    changed: tuple[ChangedVerdict, ...]
    reworded: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def agreement(a: Verdicts, b: Verdicts) -> Agreement:
    """Compare the verdicts on the claims that mean the same in both."""
    ours, theirs = _decided(a), _decided(b)
    common = [key for key in ours if key in theirs]
    other = [key for key in common if ours[key].verdict is not theirs[key].verdict]
    changed = [key for key in other if result_of(ours[key].verdict) != result_of(theirs[key].verdict)]
    return Agreement(
        common=len(common),
        changed=tuple(ChangedVerdict(id=key[0], says=key[1], a=ours[key], b=theirs[key]) for key in changed),
        reworded=tuple(key[0] for key in other if key not in changed),
        only_a=tuple(key[0] for key in ours if key not in theirs),
        only_b=tuple(key[0] for key in theirs if key not in ours),
    )


def result_of(verdict: ClaimVerdict) -> tuple[ClaimVerdict, ...]:
    """Return the verdicts that mean the same for a claim."""
    return next((group for group in (UPHELD, FAILED, BELOW) if verdict in group), (verdict,))


def _decided(verdicts: Verdicts) -> dict[tuple[str, str, tuple[str, ...]], ClaimAnswer]:
    """Return the answers of the decided claims, by id, words and meaning."""
    return {
        (claim.id, claim.says, claim.that): claim.measured
        for claim in verdicts.claims
        if claim.measured is not None and claim.measured.verdict not in {ClaimVerdict.OPEN, *UNTESTED}
    }
