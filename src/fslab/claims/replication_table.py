"""The table of all studies' replications: a row a study, with its claims by verdict, its trials and its time. Pure."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote

from fslab.analysis.campaign_time import measured_share, wall_s
from fslab.analysis.usable_trials import has_warnings, is_impossible, is_usable
from fslab.cell import Frozen
from fslab.claims.model import BELOW, FAILED, UPHELD, ClaimVerdict, Verdicts
from fslab.claims.replication import NONE, SUFFIX, page_name
from fslab.trial_record import TrialRecord
from fslab.units import counted, format_duration
from fslab.untrusted_text import as_markdown

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


_LEGEND = (
    "*Tested*: the figures come from what bounded them in the publication ([requirements](../claims.md"
    "#requirements)). *Contradicted*: reversed or differs. *Below the margin*: no difference of interest, whatever was "
    "claimed ([verdicts](../claims.md#verdicts))."
)


def index(results: Sequence[StudyResult], before: str = "") -> Iterator[str]:
    """Yield the table of all studies as lines of Markdown. ``before``: the present one; studies without a new result
    keep their lines, and what is said about the rules of these."""
    rows = _kept(before) | {page_name(one.study): _line(one) for one in results}
    yield from (
        "# Replications",
        "",
        "Made by `fslab replicate --all --write docs/replications`.",
        "",
        _LEGEND,
        "",
    )
    yield from (
        f"| {' | '.join(_INDEX)} |",
        f"|{'|'.join('---' if one in _WORDS else '--:' for one in _INDEX)}|",
    )
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
