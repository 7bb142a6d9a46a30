"""The replication page of a study: its claims, their verdicts, and the conditions that differ. Pure.

A row has the claim, what was printed, whether the publication's own table supports the claim, what was measured here,
and the verdict.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fslab.analysis.cost import Cost
from fslab.analysis.usability import has_warnings, is_impossible, is_usable
from fslab.cell import Frozen
from fslab.claims.model import (
    FAILED,
    ClaimAnswer,
    ClaimVerdict,
    EvaluatedClaim,
    OpenReason,
    PartFinding,
    Verdicts,
)
from fslab.claims.verdict_words import VERDICT_NAMES, verdict_words
from fslab.claims.words import figure_words, finding_words, verdict_of
from fslab.record import TrialRecord
from fslab.units import counted, format_duration

COLUMNS = ("claim", "printed", "supported by their table", "here", "verdict")
SIGNS = {
    ClaimVerdict.REPLICATED: "✓",
    ClaimVerdict.PARTLY: "✓",
    ClaimVerdict.TIE: "=",
    ClaimVerdict.DIFFERS: "≠",
    ClaimVerdict.REVERSED: "✗",
    ClaimVerdict.OPEN: "?",
    ClaimVerdict.UNKNOWN: "–",
}


class Condition(Frozen):
    """A condition of a measurement that may differ between the publication's machine and this one."""

    name: str
    theirs: str
    here: str


class Reason(Frozen):
    """A possible explanation why a claim failed here: a mechanism that was found ``where`` it fails."""

    claim: str
    where: str
    text: str
    certainty: str
    refuted_by: str


class ReplicationRow(Frozen):
    """One claim, as the text of a row."""

    id: str
    says: str
    printed: str
    supported: str
    here: str
    verdict: ClaimVerdict
    said: str
    note: str | None = None


class ReplicationPage(Frozen):
    """The content of the page. ``effort``: trials and time of the campaign, in words."""

    study: str
    title: str
    source: str | None
    campaign: str
    measured: str
    rows: tuple[ReplicationRow, ...]
    conditions: tuple[Condition, ...]
    effort: str
    level: str
    summary: str
    known_limits: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


def deciding(verdicts: Verdicts) -> list[tuple[str, PartFinding]]:
    """Return the deciding part of each claim that failed. The part farthest from the claimed range comes first."""
    failed = [
        (claim.id, finding)
        for claim in verdicts.claims
        if claim.measured is not None
        and claim.measured.verdict in FAILED
        and (finding := _leading(claim.measured))
    ]
    return sorted(failed, key=lambda pair: pair[1].margin if pair[1].margin is not None else 0.0)


def rows_of(verdicts: Verdicts) -> tuple[ReplicationRow, ...]:
    return tuple(_row(claim, claim.measured) for claim in verdicts.claims if claim.measured is not None)


def conditions_of(theirs: Mapping[str, str], here: Mapping[str, str]) -> tuple[Condition, ...]:
    """Return the publication's conditions beside ours, if ours are known and have another text."""
    return tuple(
        Condition(name=name, theirs=value, here=here[name])
        for name, value in theirs.items()
        if name in here and here[name] != value
    )


def _row(claim: EvaluatedClaim, answer: ClaimAnswer) -> ReplicationRow:
    finding = _leading(answer)
    return ReplicationRow(
        id=claim.id,
        says=claim.says,
        printed=_printed(claim.published, finding),
        supported=VERDICT_NAMES.get(claim.published.verdict, "–") if claim.published else "–",
        here=finding_words(finding) if finding else answer.words,
        verdict=answer.verdict,
        said=verdict_words(answer, printed=False),
        note=claim.note,
    )


def _leading(answer: ClaimAnswer) -> PartFinding | None:
    """Return the deciding part: of those with the verdict of the claim, the one with the smallest margin."""
    if answer.verdict is ClaimVerdict.UNKNOWN:
        return None
    wanted = ClaimVerdict.REPLICATED if answer.verdict is ClaimVerdict.PARTLY else answer.verdict
    alike = [one for one in answer.findings if verdict_of(one) is wanted]
    return min(alike, key=lambda one: one.margin if one.margin is not None else 0.0, default=None)


def _printed(published: ClaimAnswer | None, leading: PartFinding | None) -> str:
    """Return the printed figure of the same part, in each table that has it."""
    if published is None or not published.findings:
        return "–"
    same = [
        one
        for one in published.findings
        if leading is not None
        and (one.what, one.where, one.bound) == (leading.what, leading.where, leading.bound)
    ]
    known = [one for one in same or published.findings[:1] if one.value is not None]
    return "; ".join(dict.fromkeys(_figure(one) for one in known)) or "–"


def _figure(one: PartFinding) -> str:
    return f"{one.what} {figure_words(one).removeprefix('is ')}" + (
        f" (table {one.table})" if one.table else ""
    )


def lines(page: ReplicationPage) -> Iterator[str]:
    """Yield the page as lines of Markdown."""
    yield from (f"# {_escaped(page.title)}", "")
    if page.source:
        yield from (_escaped(page.source), "")
    yield from (f"{_escaped(page.measured)}. {page.effort}.", "")
    yield from (f"| | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}")
    for row in page.rows:
        fields = (row.id, row.says, row.printed, row.supported, row.here, f"{SIGNS[row.verdict]} {row.said}")
        yield f"| {' | '.join(map(_escaped, fields))} |"
    yield ""
    yield from _conditions(page.conditions)
    yield from _reasons(page)
    if page.known_limits:
        limits = (f"- {_escaped(limit)}" for limit in page.known_limits)
        yield from ("Known limits of the publication, or of measuring it here:", "", *limits, "")
    notes = [row for row in page.rows if row.note]
    if notes:
        yield from (
            "How sentences were read:",
            "",
            *(f"- {row.id}: {_escaped(row.note or '')}" for row in notes),
            "",
        )
    yield from (f"{_escaped(page.level[0].upper() + page.level[1:])}.", "", f"**{_escaped(page.summary)}**")


def _conditions(conditions: Sequence[Condition]) -> Iterator[str]:
    if conditions:
        yield from ("Conditions that differ:", "", "| | publication | here |", "|---|---|---|")
        yield from (
            f"| {' | '.join(map(_escaped, (one.name, one.theirs, one.here)))} |" for one in conditions
        )
        yield ""


def _reasons(page: ReplicationPage) -> Iterator[str]:
    if page.reasons:
        yield from ("What the kernel counted where results differ:", "")
        for one in page.reasons:
            told = f"{one.claim}, {one.where}: {one.text} ({one.certainty}; falsified if: {one.refuted_by})"
            yield f"- {_escaped(told)}"
        yield ""


def _escaped(text: str) -> str:
    """Return text in which no character has a meaning in a Markdown table."""
    plain = " ".join(text.split())
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in plain)


class StudyResult(Frozen):
    """One row of the table of all studies. ``trials``: those that ran; ``impossible``: those that this machine cannot
    run, such as trials of a file system that its kernel lacks."""

    study: str
    claims: int
    replicated: int
    contradicted: int
    noise: int
    at_limit: int
    untestable: int
    minutes: float
    trials: int
    impossible: int
    with_warnings: int
    measured: float | None

    @property
    def decided(self) -> float | None:
        """The share of the testable claims that have a verdict; None if no claim is testable."""
        testable = self.claims - self.untestable
        return (self.replicated + self.contradicted) / testable if testable else None


def result_of(verdicts: Verdicts, records: Sequence[TrialRecord], cost: Cost) -> StudyResult:
    """Return a campaign's numbers of claims by verdict, its trials and its time."""
    answers = [claim.measured for claim in verdicts.claims if claim.measured is not None]
    of = [answer.verdict for answer in answers]
    ran = [record for record in records if not is_impossible(record)]
    usable = [record for record in ran if is_usable(record)]
    return StudyResult(
        study=verdicts.study, claims=len(answers),
        replicated=of.count(ClaimVerdict.REPLICATED) + of.count(ClaimVerdict.PARTLY),
        contradicted=sum(verdict in FAILED for verdict in of),
        noise=sum(answer.reason is OpenReason.NOISE for answer in answers),
        at_limit=sum(answer.reason is OpenReason.AT_LIMIT for answer in answers),
        untestable=of.count(ClaimVerdict.UNKNOWN), minutes=cost.wall_s / 60, trials=len(ran),
        impossible=len(records) - len(ran), with_warnings=len(ran) - len(usable) + sum(map(has_warnings, usable)),
        measured=cost.measured,
    )  # fmt: skip


def effort_words(result: StudyResult) -> str:
    """Return the effort of a campaign in words.

    ``396 trials in 9 min 02 s, 12 of them failed, invalid or with warnings, 82 % of their time measured``
    """
    share = "" if result.measured is None else f", {result.measured * 100:.0f} % of their time measured"
    left = f"; {counted(result.impossible, 'trial')} cannot run here" if result.impossible else ""
    return (
        f"{counted(result.trials, 'trial')} in {format_duration(result.minutes * 60)}, "
        f"{result.with_warnings} of them failed, invalid or with warnings{share}{left}"
    )


_INDEX = (
    "study", "claims", "replicated", "contradicted", "open: noise", "open: at the limit", "not testable here",
    "decided of the testable", "minutes", "trials", "failed, invalid or with warnings", "measured",
)  # fmt: skip


def index(pages: Sequence[tuple[ReplicationPage, StudyResult]], before: str = "") -> Iterator[str]:
    """Yield the table of all studies as lines of Markdown. ``before``: the present one; studies without a new page
    keep their lines."""
    rows, items = (_kept(before, mark) for mark in ("| ", "- "))
    rows |= {page.study: _line(page, one) for page, one in pages}
    items |= {
        page.study: f"- [{page.study}]({page.study}.md), {_escaped(page.title)}: {_escaped(page.summary)}"
        for page, _ in pages
    }
    yield from ("# Replications", "", "Made by `fslab replicate --all --write docs/replications`.", "")
    yield from (f"| {' | '.join(_INDEX)} |", f"|---|{'--:|' * (len(_INDEX) - 1)}")
    yield from (rows[name] for name in sorted(rows))
    yield ""
    yield from (items[name] for name in sorted(items))


def _kept(text: str, mark: str) -> dict[str, str]:
    """Return the lines that begin with ``mark`` and a link to a study's page, by the study."""
    lines = (
        (re.match(re.escape(mark) + r"\[([^\]]+)\]\(\1\.md\)", line), line) for line in text.splitlines()
    )
    return {match[1]: line for match, line in lines if match}


def _line(page: ReplicationPage, one: StudyResult) -> str:
    fields = (
        f"[{page.study}]({page.study}.md)", one.claims, one.replicated, one.contradicted, one.noise, one.at_limit,
        one.untestable, _percent(one.decided), f"{one.minutes:.0f}", one.trials, one.with_warnings,
        _percent(one.measured),
    )  # fmt: skip
    return f"| {' | '.join(map(str, fields))} |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.0f} %"
