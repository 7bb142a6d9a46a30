"""Expresses verdicts in words, for one claim and for a whole study. Pure.

The terminal, the pages and Markdown use the same words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fslab.claims.finding_words import share_words
from fslab.claims.model import (
    BELOW,
    FAILED,
    UNTESTED,
    UPHELD,
    ClaimAnswer,
    ClaimVerdict,
    EvaluatedClaim,
    OpenReason,
    Verdicts,
    tested,
)
from fslab.claims.requirements import REGISTRY
from fslab.units import format_duration

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
NOT_PRINTED, NOT_TESTABLE = "not printed", "not testable here"


def claim_verdict_words(answer: ClaimAnswer, *, printed: bool) -> str:
    """Return a verdict in words.

    Examples: ``replicated``, ``open: noise (at least 4 min 10 s more)``, ``differs in size, direction replicated``.
    """
    said = VERDICT_NAMES.get(answer.verdict, NOT_PRINTED if printed else NOT_TESTABLE)
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
    stack, colon, what = why.partition(": ")
    why = re.sub(r" \([^()]*\)$", "", what if colon and " on " in stack else why)
    return re.sub(r"^(\S+) of .* is unknown$", r"no \1", why)


def _printed(claims: Sequence[EvaluatedClaim]) -> str:
    """Return a sentence: ``Of 14 claims, by the published figures: 8 hold, 6 are contradicted (1, 2b, …).``"""
    by: dict[ClaimVerdict, list[str]] = {}
    for claim in claims:
        by.setdefault(claim.published.verdict if claim.published else ClaimVerdict.UNKNOWN, []).append(
            claim.id
        )
    words = (
        (ClaimVerdict.HOLDS, "holds", "hold"),
        (ClaimVerdict.IN_PART, "holds in part", "hold in part"),
        (ClaimVerdict.CONTRADICTED, "is contradicted", "are contradicted"),
        (ClaimVerdict.UNKNOWN, "is not printed", "are not printed"),
    )
    told = [
        f"{len(by[verdict])} {one if len(by[verdict]) == 1 else many}"
        f"{_names(by[verdict]) if verdict is ClaimVerdict.CONTRADICTED else ''}"
        for verdict, one, many in words
        if verdict in by
    ]
    total = len(claims)
    return f"Of {total} claim{'s' * (total != 1)}, by the published figures: {', '.join(told)}."


def level_words(verdicts: Verdicts) -> str:
    """Return the margin of interest and the error rate of the verdicts, in one sentence."""
    margins = sorted(
        {claim.measured.margin for claim in verdicts.claims if claim.measured and claim.measured.margin}
    )
    between = (
        " to ".join(dict.fromkeys((share_words(margins[0]), share_words(margins[-1]))))
        if margins
        else "the margin"
    )
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
    told = Counter(
        f"tentatively {VERDICT_NAMES[answer.tendency]}" if answer.tendency else words[answer.reason]
        for answer in sorted(
            answers, key=lambda answer: [*OpenReason].index(answer.reason or OpenReason.NOISE)
        )
        if answer.reason is not None
    )
    return ", ".join(f"{count} {what}" for what, count in told.items())


def _names(ids: Sequence[str]) -> str:
    return f" ({', '.join(ids)})" if len(ids) <= NAMED else ""
