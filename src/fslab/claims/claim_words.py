"""Expresses verdicts and the findings behind them in words, for one claim and for a whole study. Pure.

The terminal, the pages and Markdown use the same words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from fslab.answers.model import INDEPENDENCE_LEAST
from fslab.cell import grouped
from fslab.claims.model import (
    BELOW,
    FAILED,
    UNTESTED,
    UPHELD,
    ClaimAnswer,
    ClaimVerdict,
    EvaluatedClaim,
    OpenReason,
    PartFinding,
    Verdicts,
    tested,
)
from fslab.claims.requirements import REGISTRY
from fslab.claims.verdict import verdict_of
from fslab.units import counted, first_of, format_duration, format_value, ratio_text, says_nothing

SHOWN = 2
MEASURED = " Measured: "  # between why a part is not tested, and its figure
MANY = 1000
STACKS = 3


def answer_words(
    verdict: ClaimVerdict,
    findings: Sequence[PartFinding],
    missing: Sequence[str],
    *,
    absent: str,
    margin: float | None = None,
) -> str:
    """Return the findings in words, such as ``xfs / ext4 is 2.41 (2.30–2.52)``; the most important part first.

    ``absent``: the words for parts that have no figures, such as "not printed". ``margin``: the smallest difference of
    interest; None for printed figures.
    """
    unknown = [finding for finding in findings if finding.verdict is ClaimVerdict.UNKNOWN]
    match verdict:
        case ClaimVerdict.HOLDS | ClaimVerdict.REPLICATED:
            return _closest(findings)
        case ClaimVerdict.IN_PART | ClaimVerdict.PARTLY:
            known = [finding for finding in findings if finding.verdict in {ClaimVerdict.HOLDS, *UPHELD}]
            lacks = _lacking(unknown, missing)
            return f"as far as known, {_closest(known)}" + (f"; {absent}: {lacks}" if lacks else "")
        case ClaimVerdict.UNKNOWN:
            return f"{absent}: {_lacking(unknown, missing) or 'all parts'}"
        case ClaimVerdict.NOT_TESTED | ClaimVerdict.NO_LONGER:
            return _untested([finding for finding in findings if finding.unmet], findings)
        case ClaimVerdict.OPEN | ClaimVerdict.CONTRADICTED:
            return _against([finding for finding in findings if finding.verdict is verdict], findings, margin)
        case _:
            chosen = [finding for finding in findings if verdict_of(finding) is verdict]
            return _against(chosen, findings, margin)


def scoped_words(answer: ClaimAnswer) -> str:
    """Return the words of an answer, and the stacks that it is about.

    Example: ``xfs / ext4 is 2.41 (2.30–2.52); compared: ext4 defaults, xfs; left out: ext4 data=journal``.
    """
    if answer.verdict is ClaimVerdict.UNKNOWN:  # nothing was compared
        return answer.words
    words = answer.words
    for what, names in (("compared", answer.compared), ("left out", answer.left_out)):
        if names:
            more = " (all: fslab claims --json)" if len(names) > STACKS else ""
            words += f"; {what}: {first_of(names, STACKS)}{more}"
    return words


def finding_words(finding: PartFinding, margin: float | None = None) -> str:
    """Return a finding in words, such as ``xfs / ext4 is 0.98 (0.95–1.01), not >= 2``. ``margin``: see above."""
    said = ", ".join((f"{finding.what} is {figure_words(finding)}", *_remarks(finding, margin)))
    if finding.why is not None:
        said = f"{finding.what}: not enough data ({finding.why})"
    place = ", ".join(filter(None, (finding.where, finding.table and f"table {finding.table}")))
    return f"{said} ({place})" if place else said


def _remarks(finding: PartFinding, margin: float | None) -> Iterator[str]:
    """Yield what the figure means for the claim."""
    if finding.tendency is not None:
        sense = "" if finding.tendency is ClaimVerdict.REPLICATED else "not "
        yield (
            f"{sense}{finding.bound} if trials are independent, which needs {INDEPENDENCE_LEAST} blocks to check"
        )
    elif finding.verdict is ClaimVerdict.OPEN:
        yield f"needs {finding.bound}"
    elif finding.verdict in BELOW:
        below = "" if margin is None else f"; the difference is below {share_words(margin)}"
        yield f"claimed {finding.bound}{below}"
    elif finding.verdict not in {ClaimVerdict.HOLDS, ClaimVerdict.REPLICATED} and finding.unmet is None:
        yield f"not {finding.bound}"
    if finding.verdict is ClaimVerdict.DIFFERS and finding.direction in UPHELD:
        yield "though in the same direction"
    if finding.further is not None and finding.further < MANY:
        yield f"about {counted(finding.further, 'more trial')}"


def figure_words(finding: PartFinding) -> str:
    """Return ``2.41 (2.30–2.52)``, ``4.8 µs``, or ``–`` if the figure is unknown."""
    if finding.value is None:
        return "–"
    if finding.low is None or finding.high is None:
        return _one(finding, finding.value)
    value, low, high = (_one(finding, one) for one in (finding.value, finding.low, finding.high))
    if finding.unit is None and says_nothing(finding.low, finding.high):
        value, low, high = ratio_text(finding.value, finding.low, finding.high)
    return f"{value} ({low}–{high})"


def share_words(margin: float | None) -> str:
    """Return the smallest difference of interest, such as ``10 %``."""
    return "the margin" if margin is None else f"{margin * 100:.3g} %"


def _one(finding: PartFinding, value: float) -> str:
    if finding.unit is not None:
        return format_value(value, finding.unit)
    return ratio_text(value)[0]


def _closest(findings: Sequence[PartFinding]) -> str:
    ranked = sorted(findings, key=lambda one: inf if one.margin is None else one.margin)
    if len(ranked) == 1:
        return finding_words(ranked[0])
    every = "both" if len(ranked) == 2 else f"all {len(ranked)}"
    return f"{every} parts; closest: {finding_words(ranked[0])}"


def _untested(chosen: Sequence[PartFinding], findings: Sequence[PartFinding]) -> str:
    """Return why parts are not tested, what to try, and the figure of one of them."""
    why = dict.fromkeys(finding.unmet for finding in chosen if finding.unmet)
    share = f"{len(chosen)} of {len(findings)} parts: " if len(chosen) < len(findings) else ""
    told = first_of([one.what for one in why], SHOWN, ";")
    options = dict.fromkeys(one.try_ for one in why if one.try_)
    hint = f" Try: {', '.join(options)}." if options else ""
    return f"{share}{told}.{hint}{MEASURED}{finding_words(chosen[0])}"


def _against(chosen: Sequence[PartFinding], findings: Sequence[PartFinding], margin: float | None) -> str:
    ranked = sorted(chosen, key=lambda one: 0.0 if one.margin is None else one.margin)
    told = first_of([finding_words(one, margin) for one in ranked], SHOWN, ";")
    share = f"{len(ranked)} of {len(findings)} parts: " if len(findings) > 1 else ""
    return f"{share}{told}"


def _lacking(unknown: Sequence[PartFinding], missing: Sequence[str]) -> str:
    reasons = dict.fromkeys([*(finding.why for finding in unknown if finding.why), *missing])
    return first_of(list(reasons), SHOWN, ";")


NAMED = 6
VERDICT_NAMES = {
    ClaimVerdict.HOLDS: "holds", ClaimVerdict.IN_PART: "holds in part", ClaimVerdict.CONTRADICTED: "contradicted",
    ClaimVerdict.REPLICATED: "replicated", ClaimVerdict.PARTLY: "replicated in part",
    ClaimVerdict.SMALL: "same direction, small", ClaimVerdict.TIE: "tie here", ClaimVerdict.DIFFERS: "differs",
    ClaimVerdict.OPPOSITE: "opposite, small", ClaimVerdict.REVERSED: "reversed", ClaimVerdict.OPEN: "open",
    ClaimVerdict.NO_LONGER: "no longer", ClaimVerdict.NOT_TESTED: "not tested here",
}  # fmt: skip
SIGN = {
    ClaimVerdict.HOLDS: "✓", ClaimVerdict.IN_PART: "✓", ClaimVerdict.CONTRADICTED: "✗", ClaimVerdict.REPLICATED: "✓",
    ClaimVerdict.PARTLY: "✓", ClaimVerdict.SMALL: "=", ClaimVerdict.TIE: "=", ClaimVerdict.DIFFERS: "≠",
    ClaimVerdict.OPPOSITE: "=", ClaimVerdict.REVERSED: "✗", ClaimVerdict.OPEN: "?", ClaimVerdict.NO_LONGER: "○",
    ClaimVerdict.NOT_TESTED: "–", ClaimVerdict.UNKNOWN: "–",
}  # fmt: skip
NOT_PRINTED = "not printed"


def claim_verdict_words(answer: ClaimAnswer, *, printed: bool) -> str:
    """Return a verdict in words.

    Examples: ``replicated``, ``open: noise (at least 4 min 10 s more)``, ``differs in size, direction replicated``.
    """
    unknown = NOT_PRINTED if printed else VERDICT_NAMES[ClaimVerdict.NOT_TESTED]
    said = VERDICT_NAMES.get(answer.verdict, unknown)
    if answer.verdict is ClaimVerdict.DIFFERS and answer.direction in {*UPHELD, *BELOW}:
        side = "direction replicated" if answer.direction in UPHELD else VERDICT_NAMES[answer.direction]
        return f"{said} in size, {side}"
    return f"{said}: {reason_words(answer)}" if answer.reason else said


def reason_words(answer: ClaimAnswer) -> str:
    """Return the reason why a claim is open, and the time that its cheapest decisive part needs."""
    if answer.reason is OpenReason.AT_LIMIT:
        return f"at the limit (within {share_words(answer.margin)} of it)"
    if answer.tendency is not None:
        more = "" if answer.more_s is None else f" (at least {format_duration(answer.more_s)} more)"
        return f"{VERDICT_NAMES[answer.tendency]} only if trials are independent{more}"
    if answer.reason is OpenReason.CAMPAIGNS:
        return "campaigns differ (another one may decide)"
    if answer.more_s is None:
        return "noise (too few trials to say how many more)"
    return f"noise (at least {format_duration(answer.more_s)} more)"


def has_printed(claims: Sequence[EvaluatedClaim]) -> bool:
    """Return whether the publication prints figures that a claim is about."""
    return any(claim.published and claim.published.verdict in VERDICT_NAMES for claim in claims)


def summaries(verdicts: Verdicts) -> list[str]:
    """Return a sentence on the printed figures and one on the trials, as far as there are any."""
    measured = any(claim.measured for claim in verdicts.claims)
    own = [_printed(verdicts.claims)] if has_printed(verdicts.claims) or not measured else []
    return [*own, *([summary(verdicts.claims)] if measured else [])]


def summary(claims: Sequence[EvaluatedClaim]) -> str:
    """Return the number of claims by verdict of the trials, in one sentence.

    ``Tested 25 of 28: replicated 14, contradicted 3 (3 reversed), below the margin 6 (6 tie here), open 2 (…); not
    tested here 3 (2: files fit in memory; 1: Linux 6.1 has no reiser4).``
    """
    answers = [claim.measured for claim in claims if claim.measured is not None]
    count = Counter(answer.verdict for answer in answers)
    head = f"Tested {tested(claims)} of {len(answers)}"
    if tested(claims):
        head += f": {', '.join(_tested(answers, count))}"
    beside = []
    if untested := untested_words(answers):
        beside.append(f"not tested here {len(answers) - tested(claims)} ({untested})")
    published = [claim.published.verdict for claim in claims if claim.published is not None]
    if against := published.count(ClaimVerdict.CONTRADICTED):
        beside.append(f"published tables contradict {against}")
    return f"{'; '.join((head, *beside))}."


def _tested(answers: Sequence[ClaimAnswer], count: Mapping[ClaimVerdict, int]) -> Iterator[str]:
    """Yield the numbers of tested claims by verdict."""
    partly = count[ClaimVerdict.PARTLY]
    yield f"replicated {sum(count[one] for one in UPHELD)}" + (f" ({partly} in part)" if partly else "")
    for name, group in (("contradicted", FAILED), ("below the margin", BELOW)):
        if parts := [f"{count[one]} {VERDICT_NAMES[one]}" for one in group if count[one]]:
            yield f"{name} {sum(count[one] for one in group)} ({'; '.join(parts)})"
    if count[ClaimVerdict.NO_LONGER]:
        yield f"no longer so {count[ClaimVerdict.NO_LONGER]}"
    if count[ClaimVerdict.OPEN]:
        yield f"open {count[ClaimVerdict.OPEN]} ({_reasons(answers)})"


def untested_words(answers: Iterable[ClaimAnswer]) -> str:
    """Return why claims are not tested: ``12: files fit in memory; 6: Linux 6.1 has no reiser4``."""
    found = Counter(_cause(answer) for answer in answers if answer.verdict in UNTESTED)
    return "; ".join(f"{count}: {why}" for why, count in found.most_common())


def _cause(answer: ClaimAnswer) -> str:
    """Return the requirement that is not met, or why there are no figures: not of which stack, and no remarks."""
    if answer.verdict is ClaimVerdict.NOT_TESTED and answer.unmet:
        return REGISTRY.get(answer.unmet[0].requirement).short
    why = next((one.why for one in answer.findings if one.why), "not measured").splitlines()[0]
    if why.endswith(" is not measured"):
        return "not measured"
    stack, colon, what = why.partition(": ")
    why = re.sub(r" \([^()]*\)$", "", what if colon and " on " in stack else why)
    return re.sub(r"^(\S+) of .* is unknown$", r"no \1", why)


def _printed(claims: Sequence[EvaluatedClaim]) -> str:
    """Return a sentence: ``Of 14 claims, by the published figures: 8 hold, 6 are contradicted (1, 2b, …).``"""
    unknown = ClaimVerdict.UNKNOWN
    by = grouped(claims, lambda claim: claim.published.verdict if claim.published else unknown)
    words = (
        (ClaimVerdict.HOLDS, "holds", "hold"),
        (ClaimVerdict.IN_PART, "holds in part", "hold in part"),
        (ClaimVerdict.CONTRADICTED, "is contradicted", "are contradicted"),
        (ClaimVerdict.UNKNOWN, "is not printed", "are not printed"),
    )
    told = [
        f"{len(by[verdict])} {one if len(by[verdict]) == 1 else many}"
        f"{_names([each.id for each in by[verdict]]) if verdict is ClaimVerdict.CONTRADICTED else ''}"
        for verdict, one, many in words
        if verdict in by
    ]
    return f"Of {counted(len(claims), 'claim')}, by the published figures: {', '.join(told)}."


def level_words(verdicts: Verdicts) -> str:
    """Return the margin of interest and the error rate of the verdicts, in one sentence."""
    known = (claim.measured.margin for claim in verdicts.claims if claim.measured)
    margins = sorted(filter(None, known))
    ends = (margins[0], margins[-1]) if margins else (None,)
    between = " to ".join(dict.fromkeys(map(share_words, ends)))
    level = f"smallest difference of interest: {between}; at most 5 % of verdicts are expected to be false"
    return f"{level}; {_between_campaigns(verdicts)}"


def _between_campaigns(verdicts: Verdicts) -> str:
    """Return what the intervals contain of what changes between campaigns."""
    if verdicts.between is None:
        return "of one campaign: what changes from one to the next is not in the intervals (further ones show it)"
    one, whole = (f"{share * 100:.0f} %" for share in (verdicts.between.changes, verdicts.between.shifts))
    return (
        f"of {len(verdicts.others) + 1} campaigns: the intervals contain what changes from one to the next, "
        f"beyond the noise of trials {one} of a figure beside the others of its workload, {whole} of a workload"
    )


def _reasons(answers: Iterable[ClaimAnswer]) -> str:
    words = {
        OpenReason.NOISE: "noise",
        OpenReason.AT_LIMIT: "at the limit",
        OpenReason.CAMPAIGNS: "campaigns differ",
    }
    ordered = sorted(answers, key=lambda answer: [*OpenReason].index(answer.reason or OpenReason.NOISE))
    told = Counter(
        f"tentatively {VERDICT_NAMES[answer.tendency]}" if answer.tendency else words[answer.reason]
        for answer in ordered
        if answer.reason is not None
    )
    return ", ".join(f"{count} {what}" for what, count in told.items())


def _names(ids: Sequence[str]) -> str:
    return f" ({', '.join(ids)})" if len(ids) <= NAMED else ""
