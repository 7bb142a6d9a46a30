"""The conclusion of a report in words: one sentence for all metrics, and the most important warnings. Pure.

Stacks have the study's own names. ``analysis.standings`` decides which stack is best in a metric; this module must not.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import expm1, log
from statistics import median

from fslab.analysis.standings import Standing, StandingCertainty, standing
from fslab.analysis.table_rows import why_same
from fslab.answers.model import INDEPENDENCE_LEAST
from fslab.answers.verdict_words import alike_margin, counted_words, needs_text, percent
from fslab.cell import Frozen
from fslab.claims.claim_words import summary
from fslab.claims.model import EvaluatedClaim
from fslab.report.crash_safety import unsafe_leaders, unsafe_stacks, verdict
from fslab.report.model import Note, Report, Row
from fslab.report.row_words import alike_margins, of_differences, row_name
from fslab.store.campaign import CampaignStatus
from fslab.units import Direction, counted, first_of, format_duration, listed, ratio_text

MOST_WARNINGS = 5
MANY = 3
_DECIDED = frozenset({StandingCertainty.BEST, StandingCertainty.ALIKE})
UNTIL_THEN = "Until then, keep what you have"


class ConclusionWarning(Frozen):
    """A warning that affects the conclusion. ``hint``: what to do about it."""

    what: str
    hint: str | None = None


class Conclusion(Frozen):
    """The conclusion of a report. ``sentence``: what power cuts broke, if a workload cuts power, and who is best.

    ``claims``: how many of the study's claims have which verdict; None without claims. ``more``: number of notes that
    are not among the ``warnings``.
    """

    sentence: str
    standings: tuple[Standing, ...]
    warnings: tuple[ConclusionWarning, ...]
    claims: str | None = None
    more: int = 0


def conclude(report: Report, claims: Sequence[EvaluatedClaim] = ()) -> Conclusion:
    """Return the conclusion. The rows of the report must compare each stack with the best, not with a baseline."""
    standings = tuple(_standing(row, report) for row in report.rows if any(s.values for s in row.summaries))
    notes = weightiest(report)
    lost = [note for note in notes if _loses_a_cell(note)]
    rest = [note for note in notes if note not in lost]
    told = [[important(note, report.counts.stored) for note in some] for some in (lost, rest)]
    shown = tuple([*_unsafe(report), *told[0], *of_campaign(report), *told[1]][:MOST_WARNINGS])
    among = sum(each in shown for some in told for each in some)
    return Conclusion(
        sentence=" ".join(filter(None, (verdict(report), _sentence(report, standings), _apart(standings)))),
        standings=standings,
        warnings=shown,
        claims=f"Claims: {said[0].lower()}{said[1:]}" if (said := claims and summary(claims)) else None,
        more=len(report.notes) - among,
    )


def _standing(row: Row, report: Report) -> Standing:
    label_of = report.labels
    have = {label_of[item.stack] for item in row.summaries if item.values}
    same = {stack.label for stack in report.stacks if stack.same_as in have}
    measured = {
        label_of[item.stack]: item
        for item in row.summaries
        if item.values and label_of[item.stack] not in same
    }
    medians = {label: item.median for label, item in measured.items()}
    return standing(row, medians, len(next(iter(measured.values())).values))


def _sentence(report: Report, standings: Sequence[Standing]) -> str:
    """Return the answer, such as ``Take ext4: best or alike in 7 of 9 metrics. Behind by up to:
    btrfs 8.12 × (synced), xfs 1.41 × (files). 2 of 9 metrics need more trials: about 40 s.``"""
    if not standings:
        return "No usable trial is stored yet." if report.counts.stored else "No trial is stored yet."
    judged = [each for each in standings if each.certainty is not StandingCertainty.SINGLE]
    if not judged:
        if _waits(report):
            return f"No ranking yet: {counted(0, 'complete block')}."
        if any(each.not_compared for each in standings):
            return "Nothing to compare: the stacks ran on different kinds of machines."
        if all(each.better is Direction.NEITHER for each in standings):
            return "No stack is better: these metrics have no preferred direction."
        return "Nothing to compare: each metric was measured on one stack only."
    if all(each.certainty is StandingCertainty.OPEN and each.n < each.needed for each in judged):
        n = 0 if _waits(report) else min(each.n for each in judged)
        needed = max(each.needed for each in judged)
        return f"No ranking yet: {counted(n, 'complete block')}; {needed} needed."
    if len(judged) == 1:
        return _of_one(judged[0])
    compared = [each for each in judged if each.certainty is not StandingCertainty.COUNTED]
    if len(compared) == 1:
        return f"{compared[0].workload}: {_of_one(compared[0])}"
    told = (
        [*_recommended(compared, len(judged), report), *_undecided(compared, len(judged))]
        if compared
        else ["The counts show no difference"]
    )
    return " ".join(f"{text}." for text in told or ["Nothing can be compared: not all values are positive"])


def _apart(standings: Sequence[Standing]) -> str:
    """Return the stacks that the sentence says nothing about, because the best ones ran on another kind of machine."""
    judged = [each for each in standings if each.certainty is not StandingCertainty.SINGLE]
    names = dict.fromkeys(name for each in judged for name in each.not_compared)
    return f"Not compared (other machine): {first_of([*names], MANY)}." if names else ""


def _waits(report: Report) -> bool:
    """Return whether a planned cell has no trial yet."""
    return any(
        each.planned and not (each.n_usable or each.n_invalid or each.n_failed)
        for row in report.rows
        for each in row.summaries
    )


def _of_one(only: Standing) -> str:
    if only.certainty is StandingCertainty.BEST:
        return f"{only.labels[0]} is best."
    if only.certainty is StandingCertainty.ALIKE:
        return f"{listed(only.labels)} are alike ({alike_margin(only.margin)})."
    if only.certainty is StandingCertainty.COUNTED:
        return f"{listed(only.labels)}: {counted_words(only.counted)}."
    if only.certainty is StandingCertainty.NOT_COMPARABLE:
        return f"{listed(only.labels)} cannot be compared: not all values are positive."
    return f"{listed(only.labels)}: {needs_text(only.further, only.further_s)}. {UNTIL_THEN}."


def _recommended(known: Sequence[Standing], total: int, report: Report) -> Iterator[str]:
    """Yield sentences: the stack that is best or alike most often, where it is behind, and how far the others are.

    No stack is named while more metrics are open than decided: a few of them are no reason to recommend one. Nor is one
    that was measured in at most half of the metrics: in the others, it is unknown. ``total``: the number of metrics,
    with those of which only counts are known.
    """
    decided = [each for each in known if each.certainty in _DECIDED]
    alike = [each for each in decided if each.certainty is StandingCertainty.ALIKE]
    if len(alike) == len(known) and len({frozenset(each.labels) for each in alike}) == 1:
        margin = alike_margins(alike)
        yield f"{listed(sorted(alike[0].labels))} are alike ({margin}) in {_share(len(known), total)}"
        return
    behind = _behind(known)
    unsafe = unsafe_stacks(report)
    measured = Counter(label for each in known for label in (*each.labels, *each.worse))
    mostly = {label for label, count in measured.items() if 2 * count > len(known)} - unsafe
    wins = Counter(label for each in decided for label in each.labels if label in mostly)
    if wins and not _mostly_open(known):
        order = [stack.label for stack in report.stacks]
        # The stack with the most wins; of several, the one that is least behind elsewhere.
        chosen = min(
            wins, key=lambda label: (-wins[label], behind.get(label, (1.0, ""))[0], order.index(label))
        )
        alone = all(each.labels == (chosen,) for each in decided if chosen in each.labels)
        own = f", up to {_factor(behind.pop(chosen))} behind elsewhere" if chosen in behind else ""
        yield f"Recommended: {chosen}, {'best' if alone else 'best or alike'} in {_share(wins[chosen], total)}{own}"
    others = sorted(behind, key=lambda label: -behind[label][0])
    if others:
        shown = others if len(others) <= MANY else others[:1]
        rest = f", {len(others) - len(shown)} others by less" if len(others) > MANY else ""
        yield f"Behind by up to: {', '.join(f'{label} {_factor(behind[label])}' for label in shown)}{rest}"


def _behind(known: Sequence[Standing]) -> dict[str, tuple[float, str]]:
    """Return for each stack that is worse somewhere the largest factor to the best, and where."""
    found: dict[str, tuple[float, str]] = {}
    for each in known:
        for label, factor in zip(each.worse, each.costs, strict=True):
            if factor is not None:
                found[label] = max(found.get(label, (1.0, "")), (factor, row_name(each, known)))
    return found


def _factor(cost: tuple[float, str]) -> str:
    return f"{ratio_text(cost[0])[0]} × ({cost[1]})"


def _undecided(known: Sequence[Standing], total: int) -> Iterator[str]:
    """Yield how many metrics need more trials, and about how long these take together."""
    needing = [each for each in known if each.certainty is StandingCertainty.OPEN]
    if not needing:
        return
    longest: dict[str, float | None] = {}
    for each in needing:  # the metrics of a workload come from the same trials
        before = longest.get(each.workload, 0.0)
        unknown = before is None or each.further_s is None
        longest[each.workload] = None if unknown else max(before or 0.0, each.further_s or 0.0)
    seconds = [each for each in longest.values() if each is not None]
    time = format_duration(sum(seconds)) if seconds and len(seconds) == len(longest) else ""
    if len(needing) == len(known):
        needed = f"about {time} more" if time else "more trials needed"
        yield f"No clear winner yet in any of {total} metrics ({needed})"
        yield UNTIL_THEN
    else:
        verb = "needs" if len(needing) == 1 else "need"
        yield f"{len(needing)} of {total} metrics {verb} more trials{f': about {time}' if time else ''}"
        if _mostly_open(known):
            yield UNTIL_THEN


def _mostly_open(known: Sequence[Standing]) -> bool:
    count = Counter(each.certainty for each in known)
    return count[StandingCertainty.OPEN] > sum(count[each] for each in _DECIDED)


def _share(count: int, total: int) -> str:
    return f"all {total} metrics" if count == total else f"{count} of {total} metrics"


# Order of the warnings. Invalid and failed trials come first, because they are not compared.
_STATES = {"invalid": ("is invalid", "are invalid"), "failed": ("failed", "failed")}
# The command of a failed step is long, and what it says comes last.
_COMMAND = re.compile(r"^([^:]*: ).*?: (?=\S+ (?:exited|was ended by signal) \d|cannot be run)")
_WEIGHTS = {"invalid": 0, "failed": 1, "warning": 2, "unknown": 3, "unsupported": 4}


def finish(report: Report) -> str:
    """Return the command that finishes the campaign."""
    return f"fslab run --resume {report.in_commands}"


def of_campaign(report: Report) -> list[ConclusionWarning]:
    return [
        *_same(report), *_planned(report), *_trust(report), *_uncorrected(report),
        *_independence(report),
    ]  # fmt: skip


def _planned(report: Report) -> Iterator[ConclusionWarning]:
    """Yield whether trials are missing, and whether a user who knew the results added some."""
    counts = report.counts
    if report.status is not CampaignStatus.FINISHED:
        state, is_running = report.status.value.replace("_", " "), report.status is CampaignStatus.RUNNING
        missing = f" of {counts.planned}" if counts.stored < counts.planned else ""
        yield ConclusionWarning(
            what=f"{state}: {counts.stored}{missing} trial{'s' * (counts.planned != 1)} stored",
            hint=None if is_running or not report.resumable else finish(report),
        )
    if report.extended_from:
        was = ", ".join(map(str, report.extended_from))
        yield ConclusionWarning(
            what=f"trials were added (planned: {was} each): 95 % CIs are valid only for a number fixed beforehand",
            hint="--precision accounts for interim analyses",
        )


def _disturbances(report: Report) -> Sequence[Note]:
    """Return the warnings that come from outside the trials, if one of them concerns half of the trials."""
    found = [note for note in report.notes if note.by_others and note.severity == "warning"]
    return found if any(2 * note.trials >= report.counts.stored for note in found) else ()


def _trust(report: Report) -> Iterator[ConclusionWarning]:
    """Yield one warning instead of those that most trials share: what this machine can show while it is disturbed."""
    if not (found := _disturbances(report)):
        return
    trials, stored = max(note.trials for note in found), report.counts.stored
    widths = [
        log(item.interval.high / item.interval.low) / 2
        for row in report.rows
        for item in row.answers
        if item.interval is not None and item.interval.low > 0
    ]
    half = "in half of the comparisons, " if len(widths) > 1 else ""
    seen = f": {half}differences below about {percent(expm1(median(widths)))} are not seen" if widths else ""
    why = listed([note.summary or note.kind.replace("_", " ") for note in found])
    yield ConclusionWarning(
        what=f"this machine was busy in {trials} of {stored} trials{seen} ({why})",
        hint="measure in a quiet hour, or for longer",
    )


def _same(report: Report) -> Iterator[ConclusionWarning]:
    """Yield a warning for each stack that is the same as an earlier one, and therefore not compared with it."""
    for stack in report.stacks:
        if stack.same_as is not None:
            yield ConclusionWarning(
                what=f"{stack.same_as} and {stack.label} are the same stack here ({why_same(stack.changed)})",
                hint="they are not compared with each other; their difference is noise",
            )


def _unsafe(report: Report) -> Iterator[ConclusionWarning]:
    """Yield a warning for each stack with the best rate that is not safe. The conclusion requires this warning."""
    for stack, leads, why in unsafe_leaders(report):
        yield ConclusionWarning(
            what=f"{stack} has the best median in {listed(leads)}, but {why}",
            hint="use it only for data that may be lost",
        )


def _independence(report: Report) -> Iterator[ConclusionWarning]:
    differing = [item for row in report.rows for item in row.answers if item.differs]
    if fragile := sum(1 for item in differing if item.holds and item.fragile):
        what = f"{of_differences(fragile, len(differing), 'holds', 'hold')} only if trials are independent"
        anew = report.counts.as_needed or not report.resumable
        run = "a new campaign with" if anew else finish(report)
        hint = f"run {INDEPENDENCE_LEAST} blocks to check: {run} --trials {INDEPENDENCE_LEAST}"
        yield ConclusionWarning(what=what, hint=hint)


def _uncorrected(report: Report) -> Iterator[ConclusionWarning]:
    """Yield a warning with the number of differences from the best that Holm correction over the row rejects."""
    differing = [item for row in report.rows for item in row.answers if item.differs]
    if unsure := sum(not item.holds for item in differing):
        what = f"{of_differences(unsure, len(differing), 'is', 'are')} not significant after Holm correction"
        yield ConclusionWarning(what=what, hint="run more trials")


def weightiest(report: Report) -> list[Note]:
    """Return the notes that affect the results, the most severe first. Notes of mere information are omitted."""
    trusted = not _disturbances(report)
    found = [note for note in report.notes if note.severity in _WEIGHTS and (trusted or not note.by_others)]
    return sorted(found, key=lambda note: (_WEIGHTS[note.severity], -note.trials))


def _loses_a_cell(note: Note) -> bool:
    """Return whether a cell has no value because of it, so that a stack is missing from a row."""
    return note.severity in _STATES and any(place.count == place.of for place in note.places)


def important(note: Note, stored: int) -> ConclusionWarning:
    """Return a note as a warning: ``too short (3 of 75 trials)``, or for failures ``3 of 75 trials failed: …``."""
    kind = note.kind.replace(":", ", ").replace("_", " ")
    text = note.summary or f"{kind}: {' '.join(note.message.split())}"
    where = _where(note)
    if note.severity in _STATES and note.trials:
        place = f" ({where})" if where else ""
        why = _COMMAND.sub(r"\1", text.removeprefix("failed, ").removeprefix("invalid: "))
        what = f"{note.trials} of {stored} trials {_STATES[note.severity][note.trials > 1]}{place}: {why}"
    else:
        place = f", {where}" if where else ""
        what = f"{text} ({note.trials} of {stored} trials{place})" if note.trials else text
    return ConclusionWarning(what=what, hint=note.hint)


def _where(note: Note) -> str:
    stacks = list(dict.fromkeys(place.stack for place in note.places))
    works = list(dict.fromkeys(place.workload for place in note.places))
    if note.severity in _STATES and len(works) > 1 and len(stacks) > 1:
        return first_of([f"{place.workload} on {place.stack}" for place in note.places], MANY)
    return " on ".join(names[0] for names in (works, stacks) if len(names) == 1)
