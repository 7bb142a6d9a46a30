"""Expresses verdicts in words, for one claim and for a whole study. Pure.

The terminal, the pages and Markdown use the same words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from fslab.claims.model import FAILED, ClaimAnswer, ClaimVerdict, EvaluatedClaim, OpenReason, Verdicts
from fslab.claims.words import share_words
from fslab.units import format_duration

NAMED = 6
VERDICT_NAMES = {
    ClaimVerdict.HOLDS: "holds", ClaimVerdict.IN_PART: "holds in part", ClaimVerdict.CONTRADICTED: "contradicted",
    ClaimVerdict.REPLICATED: "replicated", ClaimVerdict.PARTLY: "replicated in part", ClaimVerdict.TIE: "tie here",
    ClaimVerdict.DIFFERS: "differs", ClaimVerdict.REVERSED: "reversed", ClaimVerdict.OPEN: "open",
}  # fmt: skip
SIGN = {
    ClaimVerdict.HOLDS: "✓", ClaimVerdict.IN_PART: "✓", ClaimVerdict.CONTRADICTED: "✗", ClaimVerdict.REPLICATED: "✓",
    ClaimVerdict.PARTLY: "✓", ClaimVerdict.TIE: "=", ClaimVerdict.DIFFERS: "≠", ClaimVerdict.REVERSED: "✗",
    ClaimVerdict.OPEN: "?", ClaimVerdict.UNKNOWN: "–",
}  # fmt: skip
NOT_PRINTED, NOT_TESTABLE = "not printed", "not testable here"


def verdict_words(answer: ClaimAnswer, *, printed: bool) -> str:
    """Return a verdict in words.

    Examples: ``replicated``, ``open: noise (at least 4 min 10 s more)``, ``differs in size, direction replicated``.
    """
    said = VERDICT_NAMES.get(answer.verdict, NOT_PRINTED if printed else NOT_TESTABLE)
    if answer.verdict is ClaimVerdict.DIFFERS and answer.direction is ClaimVerdict.REPLICATED:
        return f"{said} in size, direction replicated"
    return f"{said}: {reason_words(answer)}" if answer.reason else said


def reason_words(answer: ClaimAnswer) -> str:
    """Return the reason why a claim is open, and the time that its cheapest decisive part needs."""
    if answer.reason is OpenReason.AT_LIMIT:
        return f"at the limit (within {share_words(answer.margin)} of it)"
    if answer.tendency is not None:
        more = "" if answer.more_s is None else f" (at least {format_duration(answer.more_s)} more)"
        return f"{VERDICT_NAMES[answer.tendency]} only if trials are independent{more}"
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
    return [*own, *([summary(verdicts)] if measured else [])]


def summary(verdicts: Verdicts) -> str:
    """Return the number of claims by verdict of the trials, in one sentence.

    ``Replicated 14 of 28, contradicted 9 (6 tie here, 3 reversed), published tables contradict 6, open 2 (…).``
    """
    answers = [claim.measured for claim in verdicts.claims if claim.measured is not None]
    count = Counter(answer.verdict for answer in answers)
    told = [f"replicated {count[ClaimVerdict.REPLICATED] + count[ClaimVerdict.PARTLY]} of {len(answers)}"]
    if count[ClaimVerdict.PARTLY]:
        told[0] += f" ({count[ClaimVerdict.PARTLY]} in part)"
    failed = [f"{count[one]} {VERDICT_NAMES[one]}" for one in FAILED if count[one]]
    if failed:
        told.append(f"contradicted {sum(count[one] for one in FAILED)} ({', '.join(failed)})")
    against = sum(_against(claim) for claim in verdicts.claims)
    if against:
        told.append(f"published tables contradict {against}")
    if count[ClaimVerdict.OPEN]:
        told.append(f"open {count[ClaimVerdict.OPEN]} ({_reasons(answers)})")
    if count[ClaimVerdict.UNKNOWN]:
        told.append(f"{NOT_TESTABLE} {count[ClaimVerdict.UNKNOWN]}")
    said = ", ".join(told)
    return f"{said[0].upper()}{said[1:]}."


def _printed(claims: Sequence[EvaluatedClaim]) -> str:
    """Return a sentence: ``Of 14 claims, by the published figures: 8 hold, 6 are contradicted (1, 2b, …).``"""
    by: dict[ClaimVerdict, list[str]] = {}
    for claim in claims:
        by.setdefault(claim.published.verdict if claim.published else ClaimVerdict.UNKNOWN, []).append(
            claim.id
        )
    words = (
        (ClaimVerdict.HOLDS, "holds", "hold"), (ClaimVerdict.IN_PART, "holds in part", "hold in part"),
        (ClaimVerdict.CONTRADICTED, "is contradicted", "are contradicted"),
        (ClaimVerdict.UNKNOWN, "is not printed", "are not printed"),
    )  # fmt: skip
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
    return (
        f"smallest difference of interest: {between}; at most 5 % of the study's verdicts are expected to be false "
        "(Benjamini–Hochberg over claims, Holm within a claim)"
    )


def _against(claim: EvaluatedClaim) -> bool:
    return claim.published is not None and claim.published.verdict is ClaimVerdict.CONTRADICTED


def _reasons(answers: Iterable[ClaimAnswer]) -> str:
    words = {OpenReason.NOISE: "noise", OpenReason.AT_LIMIT: "at the limit"}
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
