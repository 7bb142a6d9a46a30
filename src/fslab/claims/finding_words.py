"""Describes the findings behind an answer in one or two sentences. Pure; decides nothing."""

from collections.abc import Iterator, Sequence
from math import inf

from fslab.answers.model import INDEPENDENCE_LEAST
from fslab.claims.model import BELOW, UPHELD, ClaimAnswer, ClaimVerdict, PartFinding
from fslab.claims.verdict import verdict_of
from fslab.units import counted, first_of, format_value, ratio_text, says_nothing

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
    told = (("compared", answer.compared), ("left out", answer.left_out))
    return "".join((answer.words, *(f"; {name}: {_few(names)}" for name, names in told if names)))


def _few(names: Sequence[str]) -> str:
    return first_of(names, STACKS) + (" (all: fslab claims --json)" if len(names) > STACKS else "")


def finding_words(finding: PartFinding, margin: float | None = None) -> str:
    """Return a finding in words, such as ``xfs / ext4 is 0.98 (0.95–1.01), not >= 2``. ``margin``: see above."""
    said = ", ".join((f"{finding.what} is {figure_words(finding)}", *_remarks(finding, margin)))
    if finding.why is not None:
        said = f"{finding.what}: not enough data ({finding.why})"
    place = ", ".join(
        part for part in (finding.where, f"table {finding.table}" * bool(finding.table)) if part
    )
    return f"{said} ({place})" if place else said


def _remarks(finding: PartFinding, margin: float | None) -> Iterator[str]:
    """Yield what the figure means for the claim."""
    if finding.tendency is not None:
        sense = "" if finding.tendency is ClaimVerdict.REPLICATED else "not "
        yield (
            f"{sense}{finding.bound} only if trials are independent, which needs {INDEPENDENCE_LEAST} blocks to check"
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
