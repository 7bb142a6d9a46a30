"""Decides whether a comparison passes: which lines fail a build, and which are inconclusive. Pure.

A gate with false alarms is switched off, and a gate that misses regressions is worse than none. So each line has one of
three answers. *fails*: the change is significant and measured to be at least as large as the limit, or the trials fail
in B but not in A. *clear*: a change as large as the limit is ruled out. *unsure*: neither; this is reported too.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log1p

from fslab.analysis.campaign_comparison_lines import change_for_worse, percent
from fslab.analysis.campaign_comparison_model import CampaignComparison, ComparisonLine, LineOutcome
from fslab.analysis.comparison_model import COARSE
from fslab.stats.compare import pairs_needed
from fslab.units import Direction, first_of


class GateAnswer(StrEnum):
    """The gate's answer for one line."""

    FAILS = "fails"
    CLEAR = "clear"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateVerdict:
    """The gate's answers for a comparison, by line.

    ``limit``: of a slowdown, as a fraction; None: any difference fails. ``detectable``: the largest among the smallest
    changes that the unsure lines would have shown; None if unknown. ``needed``: about how many trials each side needs,
    so that the unsure lines could be decided; None if unknown.
    """

    fails: tuple[ComparisonLine, ...]
    unsure: tuple[ComparisonLine, ...]
    clear: tuple[ComparisonLine, ...]
    limit: float | None
    detectable: float | None
    needed: int | None

    @property
    def answer(self) -> GateAnswer:
        """The most severe answer."""
        if self.fails:
            return GateAnswer.FAILS
        return GateAnswer.UNSURE if self.unsure else GateAnswer.CLEAR

    def as_document(self) -> dict[str, object]:
        document: dict[str, object] = {
            answer.value: [
                {"stack": line.stack, "workload": line.workload, "metric": line.metric} for line in lines
            ]
            for answer, lines in zip(GateAnswer, (self.fails, self.clear, self.unsure), strict=True)
        }
        return {
            "answer": self.answer.value, **document, "detectable": self.detectable, "trials_needed": self.needed,
        }  # fmt: skip


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
    unsure = answers[GateAnswer.UNSURE]
    return GateVerdict(
        fails=tuple(answers[GateAnswer.FAILS]),
        unsure=tuple(unsure),
        clear=tuple(answers[GateAnswer.CLEAR]),
        limit=None if different else slower,
        detectable=max((each.detectable for each in unsure if each.detectable is not None), default=None),
        needed=_needed(found, unsure, COARSE if slower is None else slower),
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
    """Return FAILS if the difference is significant after Holm's correction. UNSURE if only before it, or if none is
    shown and one of ``COARSE`` could be missed."""
    if _broken(line):
        return GateAnswer.FAILS
    if line.interval is None:
        return GateAnswer.UNSURE
    if line.outcome is LineOutcome.NOT_DETECTED:
        seen = line.detectable if line.detectable is not None else line.ruled_out
        return GateAnswer.CLEAR if seen is not None and seen <= COARSE else GateAnswer.UNSURE
    return GateAnswer.FAILS if line.holds_together else GateAnswer.UNSURE


def _needed(found: CampaignComparison, unsure: list[ComparisonLine], wanted: float) -> int | None:
    """Return how many trials each side needs: for significance after Holm's correction, and so that a change of
    ``wanted`` would be shown. None if there are enough, or if the spread is unknown."""
    if not unsure:
        return None
    # Holm compares the smallest p-value with 1/m of the level, the next with 1/(m − 1): what is significant is past.
    open_lines = sum(line.p_value is not None and not line.holds_together for line in found.lines)
    tested = open_lines or 1
    for_family = pairs_needed(1 - (1 - found.coverage) / tested)
    needed = max(for_family, *(_narrow_enough(line, wanted) for line in unsure))
    return needed if needed > min(map(_values, unsure)) else None


def _values(line: ComparisonLine) -> int:
    return min(len(line.a.values), len(line.b.values))


def _narrow_enough(line: ComparisonLine, wanted: float) -> int:
    """Return with how many values of each side a change of ``wanted`` would be shown, as far as the spread is known:
    an interval narrows with their square root."""
    if line.detectable is None:
        return 0
    return ceil(_values(line) * (log1p(line.detectable) / log1p(wanted)) ** 2)


def gate_words(verdict: GateVerdict) -> str:
    """Return the answer in one line: ``UNSURE: 6 of 6 figures; only differences above 75 % could be seen; about 40
    trials each are needed``."""
    total = len(verdict.fails) + len(verdict.unsure) + len(verdict.clear)
    few = f"; {len(verdict.unsure)} unsure" if verdict.unsure else ""
    match verdict.answer:
        case GateAnswer.FAILS:
            return f"FAILED: {len(verdict.fails)} of {total} figures {_failing(verdict)}{few}"
        case GateAnswer.CLEAR:
            what = f"a difference of {percent(COARSE)}"
            what = what if verdict.limit is None else f"a slowdown of {percent(verdict.limit)}"
            return f"PASSED: {total} of {total} figures; {what} is ruled out"
    seen = verdict.detectable
    told = f"UNSURE: {len(verdict.unsure)} of {total} figures"
    if seen is not None:
        told += f"; only differences above {percent(seen)} could be seen"
    return told + (f"; {remedy(verdict)}" if verdict.needed else "")


def remedy(verdict: GateVerdict) -> str:
    """Return what makes an unsure comparison sure."""
    if verdict.needed is None:
        return "more trials narrow the intervals"
    return f"about {verdict.needed} {verdict.unsure[0].sampled} each are needed"


def failed_words(verdict: GateVerdict) -> str:
    """Return the failures as ``2 of 12 comparisons are slower by 5.0 % or more: …``."""
    total = len(verdict.fails) + len(verdict.unsure) + len(verdict.clear)
    found = "; ".join(map(_told, verdict.fails))
    return f"{len(verdict.fails)} of {total} comparisons {_failing(verdict)}: {found}"


def _failing(verdict: GateVerdict) -> str:
    what = "differ" if verdict.limit is None else f"are slower by {percent(verdict.limit)} or more"
    return what + (", or failed in B" if any(map(_broken, verdict.fails)) else "")


def unsure_words(verdict: GateVerdict) -> str:
    """Return which comparisons are inconclusive, in words."""
    what = "a difference" if verdict.limit is None else f"a slowdown of {percent(verdict.limit)}"
    some = first_of([f"{line.workload} on {line.stack} ({line.metric})" for line in verdict.unsure], 4)
    return f"inconclusive for {some}: {what} is neither shown nor ruled out"


def _told(line: ComparisonLine) -> str:
    return f"{line.workload} on {line.stack}, {line.metric}: {line.verdict}"
