"""Shows verdicts in a terminal of any width, readable without colour. Computes nothing."""

from collections.abc import Collection, Iterator

from rich.console import Console
from rich.text import Text

from fslab.claims.claim_words import (
    SIGN,
    VERDICT_NAMES,
    claim_verdict_words,
    has_printed,
    level_words,
    scoped_words,
    summaries,
)
from fslab.claims.model import Agreement, ClaimAnswer, EvaluatedClaim, Verdicts
from fslab.report.terminal_width import wrapped

WIDEST = 100
STYLE = {
    "✓": "green",
    "✗": "bold red",
    "=": "cyan",
    "≠": "magenta",
    "○": "magenta",
    "?": "yellow",
    "–": "dim",
}
PRINTED, HERE = "printed", "here"
_SIDES = "AB"


def show(verdicts: Verdicts, console: Console) -> None:
    """Print how many claims have which verdict, then the claims with both answers."""
    for text in _parts(verdicts, min(console.width, WIDEST)):
        console.print(text, soft_wrap=True)


def show_agreement(found: Agreement, names: tuple[str, str], console: Console) -> None:
    """Print how many verdicts of two campaigns are the same, and the claims with different ones."""
    for text in _agreement(found, names, min(console.width, WIDEST)):
        console.print(text, soft_wrap=True)


def _parts(verdicts: Verdicts, width: int) -> Iterator[Text]:
    yield Text(f"{verdicts.study}: {verdicts.title}", style="bold")
    about = [
        *filter(None, (verdicts.source, verdicts.conditions)),
        *(
            f"{one.name}: {one.theirs} in the publication, {one.here} here ({one.near_word})"
            for one in verdicts.nearness
        ),
        *(f"known limit: {line}" for line in verdicts.known_limits),
    ]
    yield from (wrapped(line, width, style="dim") for line in about)
    if not verdicts.claims:
        yield Text("\nthis study has no claims")
        return
    yield from (wrapped(line, width, style="bold") for line in summaries(verdicts))
    told = {PRINTED, HERE} if has_printed(verdicts.claims) or verdicts.campaign is None else {HERE}
    for claim in verdicts.claims:
        yield from _claim(claim, told, width)
    yield Text("")
    yield from (wrapped(line, width, style="dim") for line in _legend(verdicts, told))


def _agreement(found: Agreement, names: tuple[str, str], width: int) -> Iterator[Text]:
    same = found.common - len(found.changed)
    share = f" ({same / found.common * 100:.0f} %)" if found.common else ""
    yield from (Text(f"{letter}  {name}") for letter, name in zip(_SIDES, names, strict=True))
    other = f", in other words: {', '.join(found.reworded)}" if found.reworded else ""
    yield wrapped(
        f"{same} of {found.common} results that both give are the same{share}{other}", width, style="bold"
    )
    for letter, ids in zip(_SIDES, (found.only_a, found.only_b), strict=True):
        if ids:
            yield wrapped(f"decided only in {letter}: {', '.join(ids)}", width, style="dim")
    for changed in found.changed:
        lead = f"{changed.id:>3}  "
        yield Text("")
        yield wrapped(f"{lead}{changed.says}", width, style="bold", hang=len(lead))
        for letter, answer in zip(_SIDES, (changed.a, changed.b), strict=True):
            yield _answer(letter, answer, width, len(lead))


def _claim(claim: EvaluatedClaim, told: Collection[str], width: int) -> Iterator[Text]:
    lead = f"{claim.id:>3}  "
    indent = " " * len(lead)
    yield Text("")
    yield wrapped(f"{lead}{claim.says}", width, style="bold", hang=len(lead))
    place = f"  on {', '.join(claim.on)}" if claim.on else ""
    yield wrapped(f"{indent}{' · '.join(claim.that)}{place}", width, style="dim")
    for name, answer in ((PRINTED, claim.published), (HERE, claim.measured)):
        if answer is not None and name in told:
            yield _answer(name, answer, width, len(lead))
    if claim.note:
        yield wrapped(f"{indent}read as: {claim.note}", width, style="dim")


def _answer(name: str, answer: ClaimAnswer, width: int, indent: int) -> Text:
    lead = f"{' ' * indent}{name:<8} {SIGN[answer.verdict]} "
    verdict = claim_verdict_words(answer, printed=name == PRINTED) if answer.verdict in VERDICT_NAMES else ""
    body = f"{verdict}: {scoped_words(answer)}" if verdict else scoped_words(answer)
    text = wrapped(f"{lead}{body}", width, hang=len(lead))
    text.stylize(STYLE[SIGN[answer.verdict]], len(lead), len(lead) + len(verdict) if verdict else None)
    return text


def _legend(verdicts: Verdicts, told: Collection[str]) -> Iterator[str]:
    if PRINTED in told and any(claim.published for claim in verdicts.claims):
        yield f"{PRINTED}: the publication's own figures, single numbers judged as they stand"
    if any(claim.measured for claim in verdicts.claims):
        yield (
            f"{HERE}: this machine's trials, with intervals at the level of the verdicts (95 % or more, over all "
            f"looks); {level_words(verdicts)}"
        )
