"""The replication page of a study: its claims, their verdicts, and the conditions that differ. Pure.

A row has the claim, the verdict, what was printed, whether the publication's own table supports the claim, and what was
measured here. If nothing is printed, the page has no columns for it. The table of all studies has a row a study, with
its claims by verdict, its trials and its time.
"""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote

from fslab.analysis.usable_trials import has_warnings, is_impossible, is_usable
from fslab.cell import Frozen
from fslab.claims.claim_words import (
    MEASURED,
    SIGN,
    VERDICT_NAMES,
    claim_verdict_words,
    figure_words,
    finding_words,
)
from fslab.claims.model import (
    BELOW,
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
from fslab.trial_record import TrialRecord
from fslab.units import counted, format_duration
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
    refuted_by: str | None


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
    measured = ((claim.id, claim.measured) for claim in verdicts.claims if claim.measured)
    failed = [(key, one) for key, told in measured if told.verdict in FAILED and (one := _leading(told))]
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
    if answer.verdict in {ClaimVerdict.UNKNOWN, ClaimVerdict.NOT_TESTED, ClaimVerdict.NO_LONGER}:
        return None  # the words say why
    wanted = UPHELD if answer.verdict is ClaimVerdict.PARTLY else (answer.verdict,)
    alike = [one for one in answer.findings if verdict_of(one) in wanted]
    return min(alike, key=lambda one: one.margin if one.margin is not None else 0.0, default=None)


def _printed(published: ClaimAnswer | None, leading: PartFinding | None, here: str) -> str:
    """Return the printed figure of the same part, in each table that has it; of what, unless ``here`` says that."""
    if published is None or not published.findings:
        return NONE
    part = leading and (leading.what, leading.where, leading.bound)
    same = [one for one in published.findings if (one.what, one.where, one.bound) == part]
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
        told = (f"- {row.id}: {as_markdown(row.note or '')}" for row in notes)
        yield from ("How sentences were read:", "", *told, "")
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
            refuted = f"; falsified if: {one.refuted_by}" if one.refuted_by else ""
            yield f"- {as_markdown(f'{one.claim}, {one.where}: {one.text} ({one.certainty}{refuted})')}"
        yield ""


# The rules by which verdicts are given: another number when they come to mean something else.
RULES = 3
_EARLIER = {
    2: "by the median of a rate: some claims that are *not tested here*, because a rate is not the printed one, would "
    "be tested by its interval.",
}  # fmt: skip


class StudyResult(Frozen):
    """One row of the table of all studies. ``begun``: the day of the first trial. ``trials``: those that ran;
    ``impossible``: those that this machine cannot run, such as trials of a file system that its kernel lacks."""

    study: str
    begun: str
    claims: int
    tested: int
    replicated: int
    contradicted: int
    below: int
    no_longer: int
    open: int
    minutes: float
    trials: int
    impossible: int
    with_warnings: int
    measured: float | None


def result_of(verdicts: Verdicts, campaigns: Sequence[Sequence[TrialRecord]]) -> StudyResult:
    """Return the numbers of claims by verdict, and the trials and the time of all ``campaigns``."""
    records = [record for each in campaigns for record in each]
    answers = [claim.measured for claim in verdicts.claims if claim.measured is not None]
    of = [answer.verdict for answer in answers]
    ran = [record for record in records if not is_impossible(record)]
    usable = [record for record in ran if is_usable(record)]
    return StudyResult(
        study=verdicts.study, begun=f"{min(record.started for record in records):%Y-%m-%d}" if records else NONE,
        claims=len(answers), tested=verdicts.tested,
        replicated=sum(verdict in UPHELD for verdict in of), no_longer=of.count(ClaimVerdict.NO_LONGER),
        contradicted=sum(verdict in FAILED for verdict in of), below=sum(verdict in BELOW for verdict in of),
        open=of.count(ClaimVerdict.OPEN),
        minutes=sum(map(wall_s, campaigns)) / 60, trials=len(ran), impossible=len(records) - len(ran),
        with_warnings=len(ran) - len(usable) + sum(map(has_warnings, usable)), measured=measured_share(records),
    )  # fmt: skip


def measured_share(records: Sequence[TrialRecord]) -> float | None:
    """Return the share of the trials' time in which something was measured; None without trials.

    The rest is mkfs, mount, preparation, dropping caches, probes and flushing.
    """
    trials_s = sum(record.duration_s for record in records)
    commands = (command for record in records for command in record.provenance.commands)
    run_s = sum(command.duration_s or 0.0 for command in commands if command.stage == "run")
    return run_s / trials_s if trials_s else None


def wall_s(records: Sequence[TrialRecord]) -> float:
    """Return the time from the start of the first trial to the end of the last one, at least that of all trials."""
    if not records:
        return 0.0
    first = min(record.started for record in records)
    last_s = max((record.started - first).total_seconds() + record.duration_s for record in records)
    return max(last_s, sum(record.duration_s for record in records))


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


_WORDS = ("study", "campaign")
_INDEX = (
    "study", "campaign", "rules", "tested", "replicated", "contradicted", "below the margin", "no longer so", "open",
    "minutes", "trials", "failed, invalid or with warnings", "share of the time measured",
)  # fmt: skip


CLAIMS_PAGE = "../claims.md"  # beside docs/replications
_LEGEND = (
    "*Tested*: the figures come from what bounded them in the publication ([requirements](../claims.md"
    "#requirements)). *Contradicted*: reversed or differs. *Below the margin*: no difference of interest, whatever was "
    "claimed ([verdicts](../claims.md#verdicts))."
)


def index(results: Sequence[StudyResult], before: str = "", *, linked: bool = True) -> Iterator[str]:
    """Yield the table of all studies as lines of Markdown. ``before``: the present one; studies without a new result
    keep their lines, and what is said about the rules of these. ``linked``: whether ``CLAIMS_PAGE`` exists."""
    rows = _kept(before) | {page_name(one.study): _line(one) for one in results}
    made = "Made by `fslab replicate --write`."
    legend = _LEGEND if linked else re.sub(r"\[(\w+)\]\(\.\./(claims\.md)#\w+\)", r"\1: docs/\2", _LEGEND)
    yield from ("# Replications", "", made, "", legend, "", f"| {' | '.join(_INDEX)} |")
    yield f"|{'|'.join('---' if one in _WORDS else '--:' for one in _INDEX)}|"
    yield from (rows[name] for name in sorted(rows, key=lambda name: name.removesuffix(SUFFIX)))
    used = {row.split(" | ")[_INDEX.index("rules")] for row in rows.values()}
    for number, said in _EARLIER.items():
        if str(number) in used:
            yield from ("", f"Rules {number}: evaluated {said}")


def _kept(text: str) -> dict[str, str]:
    """Return the lines with a link to a study's page, by its name; not those of a table with other columns."""
    lines = ((re.match(r"\| \[(?:[^\]\\]|\\.)+\]\(([^()]+\.md)\)", line), line) for line in text.splitlines())
    return {
        unquote(match[1]): line for match, line in lines if match and line.count(" | ") == len(_INDEX) - 1
    }


def _line(one: StudyResult) -> str:
    link = f"[{as_markdown(one.study)}]({quote(page_name(one.study))})"
    fields = (
        link, one.begun, RULES, f"{one.tested} of {one.claims}", one.replicated,
        one.contradicted, one.below, one.no_longer, one.open, f"{one.minutes:.0f}", one.trials,
        one.with_warnings, NONE if one.measured is None else f"{one.measured * 100:.0f} %",
    )  # fmt: skip
    return f"| {' | '.join(map(str, fields))} |"
