"""Whether a comparison passes: what a build is failed for, and what the trials were too few to tell. Pure.

A gate that cries wolf is switched off, and one that sleeps is worse than none: so each line either *fails* (the
change is shown, and measured to be at least as large as the limit; or what A did fails in B), or is *clear*
(a change as large as the limit is ruled out), or is *unsure*, and that is said as well.
"""

from dataclasses import dataclass
from enum import StrEnum

from fslab.analysis.campaign_comparison_lines import change_for_worse, percent
from fslab.analysis.campaign_comparison_model import CampaignComparison, ComparisonLine, LineOutcome
from fslab.stats.compare import pairs_needed
from fslab.units import Direction


class GateAnswer(StrEnum):
    """What a gate says of one line."""

    FAILS = "fails"
    CLEAR = "clear"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateVerdict:
    """What a gate says of a comparison. ``words``: why, one line each; ``needed``: trials that could tell."""

    fails: tuple[ComparisonLine, ...]
    unsure: tuple[ComparisonLine, ...]
    clear: tuple[ComparisonLine, ...]
    needed: int | None

    def as_document(self) -> dict[str, object]:
        document: dict[str, object] = {
            answer.value: [
                {"stack": line.stack, "workload": line.workload, "metric": line.metric} for line in lines
            ]
            for answer, lines in zip(GateAnswer, (self.fails, self.clear, self.unsure), strict=True)
        }
        return {**document, "trials_needed": self.needed}


def judge(found: CampaignComparison, *, slower: float | None, different: bool) -> GateVerdict:
    """``slower``: the limit as a fraction, 0.05 for 5 %; ``different``: any change at all fails.

    Metrics that have no preferred direction can be different but not slower.
    """
    answers: dict[GateAnswer, list[ComparisonLine]] = {answer: [] for answer in GateAnswer}
    for line in found.lines:
        said = set()
        if slower is not None and line.better is not Direction.NEITHER:
            said.add(_slower(line, slower))
        if different:
            said.add(_different(line))
        for answer in (GateAnswer.FAILS, GateAnswer.UNSURE, GateAnswer.CLEAR):  # the gravest counts
            if answer in said:
                answers[answer].append(line)
                break
    return GateVerdict(
        fails=tuple(answers[GateAnswer.FAILS]),
        unsure=tuple(answers[GateAnswer.UNSURE]),
        clear=tuple(answers[GateAnswer.CLEAR]),
        needed=_needed(found, answers[GateAnswer.UNSURE]),
    )


def _slower(line: ComparisonLine, limit: float) -> GateAnswer:
    """Fails if B is shown to be worse, also among all lines (Holm), and measured to be so by the limit.

    Not only if the interval's *near* end passes the limit: that would let a regression of twice the limit
    through whenever the figures scatter. The correction keeps false alarms to 5 % of the runs without any
    change at all, and the limit removes most of these.
    """
    if _broken(line):
        return GateAnswer.FAILS
    if line.ratio is None or line.interval is None:
        return GateAnswer.UNSURE
    measured = change_for_worse(line.ratio, line.better)
    if line.outcome is LineOutcome.WORSE and line.holds_together and measured >= limit:
        return GateAnswer.FAILS
    worst = line.interval.high if line.better is Direction.LOWER else line.interval.low
    return GateAnswer.CLEAR if change_for_worse(worst, line.better) < limit else GateAnswer.UNSURE


def _broken(line: ComparisonLine) -> bool:
    """Whether it worked in A, and each trial of B failed: worse than slow. Invalid trials tell nothing."""
    return bool(line.a.values) and line.b.broken


def _different(line: ComparisonLine) -> GateAnswer:
    """A difference that holds among all lines fails; one that holds only for itself is unsure."""
    if _broken(line):
        return GateAnswer.FAILS
    if line.interval is None:
        return GateAnswer.UNSURE
    if line.outcome is LineOutcome.NOT_SEEN:
        return GateAnswer.CLEAR
    return GateAnswer.FAILS if line.holds_together else GateAnswer.UNSURE


def _needed(found: CampaignComparison, unsure: list[ComparisonLine]) -> int | None:
    """How many trials of each a difference must have to be shown among all lines; None if there are enough."""
    if not unsure:
        return None
    tested = sum(line.p_value is not None for line in found.lines) or 1
    needed = pairs_needed(1 - (1 - found.coverage) / tested)
    have = min(min(len(line.a.values), len(line.b.values)) for line in unsure)
    return needed if have < needed else None


def failed_words(verdict: GateVerdict, limit: float | None) -> str:
    """``2 of 12 are slower by 5.0 % or more: …``."""
    total = len(verdict.fails) + len(verdict.unsure) + len(verdict.clear)
    what = "differ" if limit is None else f"are slower by {percent(limit)} or more"
    what += ", or failed in B" if any(map(_broken, verdict.fails)) else ""
    return f"{len(verdict.fails)} of {total} comparisons {what}: {'; '.join(map(_told, verdict.fails))}"


def unsure_words(verdict: GateVerdict, limit: float | None) -> str:
    """What could not be determined, and what would help."""
    what = "a difference" if limit is None else f"a slowdown of {percent(limit)}"
    some = ", ".join(f"{line.workload} on {line.stack} ({line.metric})" for line in verdict.unsure[:4])
    more = f" and {len(verdict.unsure) - 4} more" if len(verdict.unsure) > 4 else ""
    return f"inconclusive for {some}{more}: {what} is neither shown nor ruled out"


def _told(line: ComparisonLine) -> str:
    return f"{line.workload} on {line.stack}, {line.metric}: {line.verdict}"
