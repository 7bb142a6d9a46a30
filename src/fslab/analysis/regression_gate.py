"""Decides whether a comparison passes: which lines fail a build, and which are unsure. Pure.

A gate with false alarms is switched off, and a gate that misses regressions is worse than none. So each line has one of
three answers. *fails*: the change is significant and measured to be at least as large as the limit, or the trials fail
in B but not in A, or a rate is 0 in B. *clear*: a change as large as the limit is ruled out. *unsure*: neither; this is
reported too. What holds only if trials are independent is unsure, and so is a comparison whose B lacks a cell of A.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fslab.analysis.campaign_comparison_lines import CampaignComparison, ComparisonLine, change_for_worse
from fslab.answers.model import INDEPENDENCE_LEAST, Answer, Verdict
from fslab.answers.ratio import size_until
from fslab.answers.verdict_words import percent
from fslab.cell import grouped
from fslab.stopping_settings import MARGIN
from fslab.units import Direction, counted, first_of


class GateAnswer(StrEnum):
    FAILS = "fails"
    CLEAR = "clear"
    UNSURE = "unsure"


_SEVERITY = (GateAnswer.FAILS, GateAnswer.UNSURE, GateAnswer.CLEAR)


@dataclass(frozen=True, kw_only=True, slots=True)
class GateVerdict:
    """The gate's answers for a comparison, by line.

    ``limit``: of a slowdown, as a fraction; None: any difference fails. ``margin``: the difference that is ruled out
    where any fails. ``needed``: about how many trials each side needs, so that the unsure lines that have a ratio are
    decided; None if unknown. ``absent``: cells of A that B lacks. ``same_stack``: A and B are one stack.
    """

    fails: tuple[ComparisonLine, ...]
    unsure: tuple[ComparisonLine, ...]
    clear: tuple[ComparisonLine, ...]
    limit: float | None
    margin: float
    needed: int | None
    absent: tuple[str, ...]
    same_stack: bool = False

    @property
    def total(self) -> int:
        return len(self.fails) + len(self.unsure) + len(self.clear)

    @property
    def answer(self) -> GateAnswer:
        if self.fails:
            return GateAnswer.FAILS
        return GateAnswer.UNSURE if self.unsure or self.absent else GateAnswer.CLEAR

    def as_document(self) -> dict[str, object]:
        lines = {
            answer.value: [
                {name: getattr(line, name) for name in ("stack", "workload", "metric")} for line in own
            ]
            for answer, own in zip(GateAnswer, (self.fails, self.clear, self.unsure), strict=True)
        }
        return {
            "answer": self.answer.value, **lines, "absent": list(self.absent), "trials_needed": self.needed,
        }  # fmt: skip


def judge(found: CampaignComparison, *, slower: float | None, different: bool) -> GateVerdict:
    """Return the verdict. ``slower``: the limit as a fraction, 0.05 for 5 %; ``different``: any change fails.

    Metrics without a preferred direction can be different but not slower.
    """

    def answer(line: ComparisonLine) -> GateAnswer | None:
        """Return the most severe answer; None if none was asked for. A stack is not slower than itself."""
        said = [_different(line)] if different else []
        if slower is not None and line.better is not Direction.NEITHER:
            said.append(_slower(line, slower))
        if said and found.same_stack and not line.is_broken and line.answer.verdict is not Verdict.MISSING:
            return GateAnswer.CLEAR
        return min(said, key=_SEVERITY.index, default=None)

    answers = grouped(found.lines, answer)
    fails, unsure, clear = (tuple(answers.get(each, ())) for each in _SEVERITY)
    limit = None if different else slower
    return GateVerdict(
        fails=fails, unsure=unsure, clear=clear, limit=limit, needed=_needed(unsure, limit), absent=found.only_a,
        margin=max((line.answer.margin for line in found.lines), default=MARGIN), same_stack=bool(found.same_stack),
    )  # fmt: skip


def _slower(line: ComparisonLine, limit: float) -> GateAnswer:
    """Return FAILS if B is significantly worse after Holm's correction, also if trials resemble the ones before them,
    and the ratio reaches the limit.

    The *near* end of the interval does not have to pass the limit: a regression of twice the limit would then pass if
    the figures scatter. The correction limits false alarms to 5 % of the runs without a change, and the limit removes
    most of these.
    """
    answer = line.answer
    if line.is_broken:
        return GateAnswer.FAILS
    if answer.counted is not None and answer.ratio is None:
        return _of_counts(answer)
    if answer.ratio is None or answer.interval is None:
        return GateAnswer.UNSURE
    if _is_firm(answer) and change_for_worse(answer.ratio, line.better) >= limit:
        return GateAnswer.FAILS
    widest = answer.interval_if_correlated or answer.interval
    worst = widest.high if line.better is Direction.LOWER else widest.low
    return GateAnswer.CLEAR if change_for_worse(worst, line.better) < limit else GateAnswer.UNSURE


def _is_firm(answer: Answer) -> bool:
    """Return whether a difference holds, and not only if trials are independent: that is no verdict."""
    return bool(answer.holds) and not answer.fragile


def _of_counts(answer: Answer) -> GateAnswer:
    """Return the answer of counts with zeros, which have no ratio: any significant increase fails."""
    if _is_firm(answer):
        return GateAnswer.FAILS if answer.winner == answer.under else GateAnswer.CLEAR
    return GateAnswer.CLEAR if answer.verdict is Verdict.NONE_SEEN else GateAnswer.UNSURE


def _different(line: ComparisonLine) -> GateAnswer:
    """Return FAILS if the difference is significant after Holm's correction. UNSURE if only before it, or if neither a
    difference nor a tie within the margin is shown, or either only if trials are independent."""
    answer = line.answer
    if line.is_broken or _is_firm(answer):
        return GateAnswer.FAILS
    wide, most = answer.interval_if_correlated, 1 + answer.margin
    alike = answer.verdict is Verdict.ALIKE and (wide is None or (1 / most <= wide.low and wide.high <= most))
    return GateAnswer.CLEAR if alike or answer.verdict is Verdict.NONE_SEEN else GateAnswer.UNSURE


def _needed(unsure: Sequence[ComparisonLine], limit: float | None) -> int | None:
    """Return about how many trials each side needs, so that every unsure line with values is decided; None if this is
    unknown."""
    totals = [_enough(each, limit) for each in unsure if not _has_no_ratio(each)]
    known = [each for each in totals if each is not None]
    return max(known) if known and len(known) == len(totals) else None


def _has_no_ratio(line: ComparisonLine) -> bool:
    """Return whether more trials cannot help: a side has no value, or a value is 0."""
    return line.answer.verdict in {Verdict.MISSING, Verdict.NO_RATIO}


def _enough(line: ComparisonLine, limit: float | None) -> int | None:
    """Return with how many values of each side the interval ends before the limit. Without a limit: with how many a
    difference or a tie is shown."""
    answer = line.answer
    unproven = answer.winner == answer.under and not _is_firm(answer)
    if (answer.holds and answer.fragile) or (limit is None and answer.verdict is Verdict.ALIKE):
        return INDEPENDENCE_LEAST
    further = min(answer.n) + answer.further if answer.further else None
    if limit is None or unproven or answer.interval is None:
        return further
    return size_until(answer, 1 + limit if line.better is Direction.LOWER else 1 - limit) or further


def gate_words(verdict: GateVerdict) -> str:
    """Return the answer in one line: ``UNSURE: 6 of 6 figures; about 40 trials each are needed``."""
    total = verdict.total
    unsure = [f"{len(verdict.unsure)} unsure"] if verdict.unsure else []
    few = "".join(f"; {each}" for each in [*unsure, *_absent(verdict)])
    match verdict.answer:
        case GateAnswer.FAILS:
            return f"FAILED: {len(verdict.fails)} of {total} figures {_failing(verdict)}{few}"
        case GateAnswer.CLEAR:
            return f"PASSED: {total} of {total} figures; {_clear_words(verdict)}"
    return f"UNSURE: {len(verdict.unsure)} of {total} figures; {remedy(verdict)}"


def _clear_words(verdict: GateVerdict) -> str:
    """Return what is ruled out. Of counts of events, nothing is: that none was seen is all that is known."""
    if verdict.same_stack:
        return "A and B are the same stack"
    none = sum(line.answer.verdict is Verdict.NONE_SEEN for line in verdict.clear)
    told = [f"no event in {none} of them"] if none else []
    if none < len(verdict.clear):
        slower = None if verdict.limit is None else f"a slowdown of {percent(verdict.limit)} is ruled out"
        told.insert(0, slower or f"a difference of {percent(verdict.margin)} is ruled out")
    return ", ".join(told)


def remedy(verdict: GateVerdict) -> str:
    """Return what makes an unsure comparison sure, or why more trials do not."""
    without = sum(map(_has_no_ratio, verdict.unsure))
    told = []
    if verdict.needed is not None:
        told.append(f"about {verdict.needed} {verdict.unsure[0].sampled} each are needed")
    elif without < len(verdict.unsure):
        told.append("more trials narrow the intervals")
    if without:
        told.append(f"{without} without a ratio: a side has no usable value, or a value is 0")
    return "; ".join([*told, *_absent(verdict)])


def _absent(verdict: GateVerdict) -> list[str]:
    return [f"B lacks {counted(len(verdict.absent), 'cell')} of A"] if verdict.absent else []


def failed_words(verdict: GateVerdict) -> str:
    """Return the failures as ``2 of 12 comparisons are slower by 5.0 % or more: …``."""
    found = "; ".join(
        f"{line.workload} on {line.stack}, {line.metric}: {line.verdict}" for line in verdict.fails
    )
    return f"{len(verdict.fails)} of {verdict.total} comparisons {_failing(verdict)}: {found}"


def _failing(verdict: GateVerdict) -> str:
    what = "differ" if verdict.limit is None else f"are slower by {percent(verdict.limit)} or more"
    failed = ", or failed in B" * any(line.b.broken for line in verdict.fails)
    return what + failed + ", or are 0 in B" * any(line.has_stopped for line in verdict.fails)


def unsure_words(verdict: GateVerdict) -> str:
    what = "a difference" if verdict.limit is None else f"a slowdown of {percent(verdict.limit)}"
    figures = [f"{line.workload} on {line.stack} ({line.metric})" for line in verdict.unsure]
    some = first_of([*figures, *verdict.absent], 4)
    return f"not decided for {some}: {what} is neither shown nor ruled out"
