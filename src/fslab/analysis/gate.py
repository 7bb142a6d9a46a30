"""Decides whether a comparison passes: which lines fail a build, and which are inconclusive. Pure.

A gate with false alarms is switched off, and a gate that misses regressions is worse than none. So each line has one of
three answers. *fails*: the change is significant and measured to be at least as large as the limit, or the trials fail
in B but not in A. *clear*: a change as large as the limit is ruled out. *unsure*: neither; this is reported too.
"""

from dataclasses import dataclass
from enum import StrEnum

from fslab.analysis.campaign_comparison_lines import change_for_worse, percent
from fslab.analysis.campaign_comparison_model import CampaignComparison, ComparisonLine, LineOutcome
from fslab.stats.compare import pairs_needed
from fslab.units import Direction, first_of


class GateAnswer(StrEnum):
    """The gate's answer for one line."""

    FAILS = "fails"
    CLEAR = "clear"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateVerdict:
    """The gate's answers for a comparison, by line. ``needed``: trials per side needed; None if there are enough."""

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
    """Return the verdict. ``slower``: the limit as a fraction, 0.05 for 5 %; ``different``: any change fails.

    Metrics without a preferred direction can be different but not slower.
    """
    answers: dict[GateAnswer, list[ComparisonLine]] = {answer: [] for answer in GateAnswer}
    for line in found.lines:
        said = set()
        if slower is not None and line.better is not Direction.NEITHER:
            said.add(_slower(line, slower))
        if different:
            said.add(_different(line))
        for answer in (GateAnswer.FAILS, GateAnswer.UNSURE, GateAnswer.CLEAR):  # the most severe one counts
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
    """Return FAILS if B is significantly worse after Holm's correction, and the ratio reaches the limit.

    The *near* end of the interval does not have to pass the limit: a regression of twice the limit would then pass if
    the figures scatter. The correction limits false alarms to 5 % of the runs without a change, and the limit removes
    most of these.
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
    """Return whether A has values and B has none because trials failed. Invalid trials alone do not count as failed."""
    return bool(line.a.values) and line.b.broken


def _different(line: ComparisonLine) -> GateAnswer:
    """Return FAILS if the difference is significant after Holm's correction, UNSURE if only before it."""
    if _broken(line):
        return GateAnswer.FAILS
    if line.interval is None:
        return GateAnswer.UNSURE
    if line.outcome is LineOutcome.NOT_DETECTED:
        return GateAnswer.CLEAR
    return GateAnswer.FAILS if line.holds_together else GateAnswer.UNSURE


def _needed(found: CampaignComparison, unsure: list[ComparisonLine]) -> int | None:
    """Return the trials per side needed for significance after Holm's correction; None if there are enough."""
    if not unsure:
        return None
    # Holm compares the smallest p-value with 1/m of the level, the next with 1/(m − 1): what is significant is past.
    open_lines = sum(line.p_value is not None and not line.holds_together for line in found.lines)
    tested = open_lines or 1
    needed = pairs_needed(1 - (1 - found.coverage) / tested)
    have = min(min(len(line.a.values), len(line.b.values)) for line in unsure)
    return needed if have < needed else None


def failed_words(verdict: GateVerdict, limit: float | None) -> str:
    """Return the failures as ``2 of 12 comparisons are slower by 5.0 % or more: …``."""
    total = len(verdict.fails) + len(verdict.unsure) + len(verdict.clear)
    what = "differ" if limit is None else f"are slower by {percent(limit)} or more"
    what += ", or failed in B" if any(map(_broken, verdict.fails)) else ""
    return f"{len(verdict.fails)} of {total} comparisons {what}: {'; '.join(map(_told, verdict.fails))}"


def unsure_words(verdict: GateVerdict, limit: float | None) -> str:
    """Return which comparisons are inconclusive, in words."""
    what = "a difference" if limit is None else f"a slowdown of {percent(limit)}"
    some = first_of([f"{line.workload} on {line.stack} ({line.metric})" for line in verdict.unsure], 4)
    return f"inconclusive for {some}: {what} is neither shown nor ruled out"


def _told(line: ComparisonLine) -> str:
    return f"{line.workload} on {line.stack}, {line.metric}: {line.verdict}"
