"""The table of all studies' replications: a row a study, with its claims by verdict, its trials and its time. Pure."""

import re
from collections.abc import Iterator, Sequence

from fslab.analysis.cost import measured_share, wall_s
from fslab.analysis.usability import has_warnings, is_impossible, is_usable
from fslab.cell import Frozen
from fslab.claims.model import FAILED, UPHELD, ClaimVerdict, OpenReason, Verdicts
from fslab.record import TrialRecord
from fslab.units import counted, format_duration


class StudyResult(Frozen):
    """One row of the table of all studies. ``trials``: those that ran; ``impossible``: those that this machine cannot
    run, such as trials of a file system that its kernel lacks."""

    study: str
    claims: int
    tested: int
    replicated: int
    contradicted: int
    no_longer: int
    noise: int
    at_limit: int
    not_tested: int
    untestable: int
    minutes: float
    trials: int
    impossible: int
    with_warnings: int
    measured: float | None

    @property
    def decided(self) -> float | None:
        """The share of the tested claims that have a verdict; None if no claim is tested."""
        return (self.replicated + self.contradicted + self.no_longer) / self.tested if self.tested else None


def result_of(verdicts: Verdicts, records: Sequence[TrialRecord]) -> StudyResult:
    """Return a campaign's numbers of claims by verdict, its trials and its time."""
    answers = [claim.measured for claim in verdicts.claims if claim.measured is not None]
    of = [answer.verdict for answer in answers]
    ran = [record for record in records if not is_impossible(record)]
    usable = [record for record in ran if is_usable(record)]
    return StudyResult(
        study=verdicts.study, claims=len(answers), tested=verdicts.tested,
        replicated=sum(verdict in UPHELD for verdict in of), no_longer=of.count(ClaimVerdict.NO_LONGER),
        not_tested=of.count(ClaimVerdict.NOT_TESTED),
        contradicted=sum(verdict in FAILED for verdict in of),
        noise=sum(answer.reason in {OpenReason.NOISE, OpenReason.INDEPENDENCE} for answer in answers),
        at_limit=sum(answer.reason is OpenReason.AT_LIMIT for answer in answers),
        untestable=of.count(ClaimVerdict.UNKNOWN), minutes=wall_s(records) / 60, trials=len(ran),
        impossible=len(records) - len(ran), with_warnings=len(ran) - len(usable) + sum(map(has_warnings, usable)),
        measured=measured_share(records),
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
    "study", "claims", "tested", "replicated", "contradicted", "no longer so", "open: noise", "open: at the limit",
    "not tested here", "not testable here", "decided of the tested", "minutes", "trials",
    "failed, invalid or with warnings", "measured",
)  # fmt: skip


_LEGEND = (
    "*Contradicted*: reversed, tie here or differs ([verdicts](../claims.md#verdicts)). *Measured*: share of the "
    "trials' time that was measured; the rest is mkfs, mount and preparation."
)


def index(results: Sequence[StudyResult], before: str = "") -> Iterator[str]:
    """Yield the table of all studies as lines of Markdown. ``before``: the present one; studies without a new result
    keep their lines."""
    rows = _kept(before) | {one.study: _line(one) for one in results}
    yield from (
        "# Replications",
        "",
        "Made by `fslab replicate --all --write docs/replications`.",
        "",
        _LEGEND,
        "",
    )
    yield from (f"| {' | '.join(_INDEX)} |", f"|---|{'--:|' * (len(_INDEX) - 1)}")
    yield from (rows[name] for name in sorted(rows))


def _kept(text: str) -> dict[str, str]:
    """Return the lines with a link to a study's page, by the study; not those of a table with other columns."""
    lines = ((re.match(r"\| \[([^\]]+)\]\(\1\.md\)", line), line) for line in text.splitlines())
    return {match[1]: line for match, line in lines if match and line.count(" | ") == len(_INDEX) - 1}


def _line(one: StudyResult) -> str:
    fields = (
        f"[{one.study}]({one.study}.md)", one.claims, one.tested, one.replicated, one.contradicted, one.no_longer,
        one.noise, one.at_limit, one.not_tested, one.untestable, _percent(one.decided), f"{one.minutes:.0f}",
        one.trials, one.with_warnings, _percent(one.measured),
    )  # fmt: skip
    return f"| {' | '.join(map(str, fields))} |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.0f} %"
