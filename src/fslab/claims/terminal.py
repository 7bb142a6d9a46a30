"""Shows verdicts in a terminal of any width, readable without colour. Computes nothing."""

import textwrap
from collections.abc import Collection

from rich.console import Console
from rich.text import Text

from fslab.claims.agreement import Agreement
from fslab.claims.model import ClaimAnswer, EvaluatedClaim, Verdicts
from fslab.claims.verdict_words import (
    SIGN,
    VERDICT_NAMES,
    claim_verdict_words,
    has_printed,
    level_words,
    summaries,
)

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
    width = min(console.width, WIDEST)
    _print(console, Text(f"{verdicts.study}: {verdicts.title}", style="bold"))
    for line in (verdicts.source, verdicts.conditions):
        if line:
            _lines(console, line, width, "  ", "dim")
    for one in verdicts.nearness:
        near = {True: "near", False: "not near", None: "unknown"}[one.near]
        line = f"{one.name}: {one.theirs} in the publication, {one.here} here ({near})"
        _lines(console, line, width, "  ", "dim")
    for line in verdicts.known_limits:
        _lines(console, f"known limit: {line}", width, "  ", "dim")
    if verdicts.claims:
        for line in summaries(verdicts):
            _lines(console, line, width, "  ", "bold")
    told = {PRINTED, HERE} if has_printed(verdicts.claims) or verdicts.campaign is None else {HERE}
    for claim in verdicts.claims:
        _claim(claim, told, console, width)
    if verdicts.claims:
        _legend(verdicts, told, console, width)
    else:
        console.print("\nthis study has no claims")


def show_agreement(found: Agreement, names: tuple[str, str], console: Console) -> None:
    """Print how many verdicts of two campaigns are the same, and the claims with different ones."""
    width = min(console.width, WIDEST)
    same = found.common - len(found.changed)
    share = f" ({same / found.common * 100:.0f} %)" if found.common else ""
    for letter, name in zip(_SIDES, names, strict=True):
        _print(console, Text(f"{letter}  {name}"))
    _lines(
        console, f"{same} of {found.common} verdicts that both give are the same{share}", width, "  ", "bold"
    )
    for letter, ids in zip(_SIDES, (found.only_a, found.only_b), strict=True):
        if ids:
            _lines(console, f"decided only in {letter}: {', '.join(ids)}", width, "  ", "dim")
    for changed in found.changed:
        console.print()
        lead = f"{changed.id:>3}  "
        _lines(console, lead + changed.says, width, " " * len(lead), "bold")
        for letter, answer in zip(_SIDES, (changed.a, changed.b), strict=True):
            _answer(letter, answer, console, width, len(lead))


def _claim(claim: EvaluatedClaim, told: Collection[str], console: Console, width: int) -> None:
    console.print()
    lead = f"{claim.id:>3}  "
    _lines(console, lead + claim.says, width, " " * len(lead), "bold")
    place = f"  on {', '.join(claim.on)}" if claim.on else ""
    _lines(console, " " * len(lead) + " · ".join(claim.that) + place, width, " " * (len(lead) + 2), "dim")
    for name, answer in ((PRINTED, claim.published), (HERE, claim.measured)):
        if answer is not None and name in told:
            _answer(name, answer, console, width, len(lead))
    if claim.note:
        _lines(console, f"{' ' * len(lead)}read as: {claim.note}", width, " " * (len(lead) + 2), "dim")


def _answer(name: str, answer: ClaimAnswer, console: Console, width: int, indent: int) -> None:
    lead = f"{' ' * indent}{name:<8} {SIGN[answer.verdict]} "
    verdict = claim_verdict_words(answer, printed=name == PRINTED) if answer.verdict in VERDICT_NAMES else ""
    body = f"{verdict}: {answer.words}" if verdict else answer.words
    wrapped = textwrap.wrap(body, max(width - len(lead), 20), break_long_words=False, break_on_hyphens=False)
    style = STYLE[SIGN[answer.verdict]]
    for number, line in enumerate(wrapped):
        text = Text(lead if number == 0 else " " * len(lead))
        if number == 0 and verdict and line.startswith(verdict):
            text.append(verdict, style=style).append(line.removeprefix(verdict))
        else:
            text.append(line, style=style if not verdict else "")
        _print(console, text)


def _legend(verdicts: Verdicts, told: Collection[str], console: Console, width: int) -> None:
    lines = []
    if PRINTED in told and any(claim.published for claim in verdicts.claims):
        lines.append(f"{PRINTED}: the publication's own figures, single numbers judged as they stand")
    if any(claim.measured for claim in verdicts.claims):
        lines.append(
            f"{HERE}: this machine's trials, with intervals at the level of the verdicts (95 % or more, over all "
            f"looks); {level_words(verdicts)}"
        )
    console.print()
    for line in lines:
        _lines(console, line, width, "  ", "dim")


def _lines(console: Console, line: str, width: int, indent: str, style: str = "") -> None:
    for part in textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ):
        _print(console, Text(part, style=style))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
