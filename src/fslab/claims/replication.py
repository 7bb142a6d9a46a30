"""The replication page of a study: its claims, their verdicts, and the conditions that differ. Pure.

A row has the claim, the verdict, what was printed, whether the publication's own table supports the claim, and what was
measured here. If nothing is printed, the page has no columns for it.
"""

from collections.abc import Iterator, Sequence

from fslab.cell import Frozen
from fslab.claims.claim_words import SIGN, VERDICT_NAMES, claim_verdict_words
from fslab.claims.finding_words import MEASURED, figure_words, finding_words
from fslab.claims.model import (
    FAILED,
    UPHELD,
    ClaimAnswer,
    ClaimVerdict,
    EvaluatedClaim,
    PartFinding,
    Verdicts,
)
from fslab.claims.publication_likeness import Condition
from fslab.claims.verdict import verdict_of
from fslab.names import file_name
from fslab.untrusted_text import as_markdown

NONE = "–"
SUFFIX = ".md"
NEAR = {True: "yes", False: "no", None: NONE}


def page_name(study: str) -> str:
    """Return the file name of a study's page. Not that of the table."""
    name = file_name(study)
    return f"{name}-study{SUFFIX}" if name == "README" else f"{name}{SUFFIX}"


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

    @property
    def has_printed(self) -> bool:
        return any({row.printed, row.supported} != {NONE} for row in self.rows)

    @property
    def file_name(self) -> str:
        return page_name(self.study)


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


def _row(claim: EvaluatedClaim, answer: ClaimAnswer) -> ReplicationRow:
    finding = _leading(answer)
    # The verdict says how much time is needed.
    here = finding_words(finding.model_copy(update={"further": None})) if finding else answer.words
    return ReplicationRow(
        id=claim.id,
        says=claim.says,
        printed=_printed(claim.published, finding, here),
        supported=VERDICT_NAMES.get(claim.published.verdict, NONE) if claim.published else NONE,
        here=here,
        verdict=answer.verdict,
        said=claim_verdict_words(answer, printed=False),
        note=claim.note,
    )


def _leading(answer: ClaimAnswer) -> PartFinding | None:
    """Return the deciding part: of those with the verdict of the claim, the one with the smallest margin."""
    if answer.verdict is ClaimVerdict.UNKNOWN:
        return None
    if answer.verdict in {ClaimVerdict.NOT_TESTED, ClaimVerdict.NO_LONGER}:
        return None  # the words say why, and have a figure
    wanted = UPHELD if answer.verdict is ClaimVerdict.PARTLY else (answer.verdict,)
    alike = [one for one in answer.findings if verdict_of(one) in wanted]
    return min(alike, key=lambda one: one.margin if one.margin is not None else 0.0, default=None)


def _printed(published: ClaimAnswer | None, leading: PartFinding | None, here: str) -> str:
    """Return the printed figure of the same part, in each table that has it; of what, unless ``here`` says that."""
    if published is None or not published.findings:
        return NONE
    same = [
        one
        for one in published.findings
        if leading is not None
        and (one.what, one.where, one.bound) == (leading.what, leading.where, leading.bound)
    ]
    known = [one for one in same or published.findings[:1] if one.value is not None]
    return "; ".join(dict.fromkeys(_figure(one, here) for one in known)) or NONE


def _figure(one: PartFinding, here: str) -> str:
    of = "" if f"{one.what} is " in here else f"{one.what} "
    return f"{of}{figure_words(one)}" + (f" (table {one.table})" if one.table else "")


def lines(page: ReplicationPage) -> Iterator[str]:
    """Yield the page as lines of Markdown."""
    yield from (f"# {as_markdown(page.title)}", "", f"**{as_markdown(page.summary)}**", "")
    if page.source:
        yield from (as_markdown(page.source), "")
    yield from (f"{as_markdown(page.measured)}.", "")
    columns = ("printed", "supported by their table") if page.has_printed else ()
    # The verdict comes before the long texts, which may lie outside of a narrow window.
    columns = ("claim", "verdict", *columns, "here")
    yield from _conditions(page.conditions)
    yield from (f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}")
    first: dict[str, str] = {}
    for row in page.rows:
        printed = (row.printed, row.supported) if page.has_printed else ()
        fields = (row.id, row.says, f"{SIGN[row.verdict]} {row.said}", *printed, _short(row, first))
        yield f"| {' | '.join(map(as_markdown, fields))} |"
    yield ""
    yield from _reasons(page)
    notes = [row for row in page.rows if row.note]
    if notes:
        yield from (
            "How sentences were read:",
            "",
            *(f"- {row.id}: {as_markdown(row.note or '')}" for row in notes),
            "",
        )
    yield f"{as_markdown(page.level[0].upper() + page.level[1:])}."


def _short(row: ReplicationRow, first: dict[str, str]) -> str:
    """Return what was found here; of what an earlier row says, only its number. ``first``: rows by what they say."""
    why, _, figure = row.here.partition(MEASURED)
    same, reason = (first.setdefault(text, row.id) for text in (row.here, why))
    if same != row.id:
        return f"as {same}"
    return f"as {reason}.{MEASURED}{figure}" if reason != row.id else row.here


def _conditions(conditions: Sequence[Condition]) -> Iterator[str]:
    if conditions:
        yield from ("| | publication | here | near |", "|---|---|---|---|")
        for one in conditions:
            yield f"| {' | '.join(map(as_markdown, (one.name, one.theirs, one.here, NEAR[one.near])))} |"
        yield ""


def _reasons(page: ReplicationPage) -> Iterator[str]:
    if page.reasons:
        yield from ("What the kernel counted where results differ:", "")
        for one in page.reasons:
            told = f"{one.claim}, {one.where}: {one.text} ({one.certainty}; falsified if: {one.refuted_by})"
            yield f"- {as_markdown(told)}"
        yield ""
