"""The conclusion of a report in words: one sentence for all metrics, and the most important warnings. Pure.

Stacks have the study's own names. ``analysis.standings`` decides which stack is best in a metric; this module must not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from fslab.analysis.standings import MeasuredRow, Standing, StandingCertainty, standing
from fslab.answers.model import INDEPENDENCE_LEAST
from fslab.answers.words import SPEEDS, alike_margin, needs_text
from fslab.cell import Frozen
from fslab.report.model import Note, Report, Row
from fslab.report.safety import unsafe_leaders, verdict
from fslab.report.words import of_differences
from fslab.store.campaign import CampaignStatus
from fslab.units import listed

MOST_WARNINGS = 5
UNTIL_THEN = "Until then, keep the default of your distribution"
# Order of the warnings. Invalid and failed trials come first, because they are not compared.
_STATES = {"invalid": ("is invalid", "are invalid"), "failed": ("failed", "failed")}
_WEIGHTS = {"invalid": 0, "failed": 1, "warning": 2, "unknown": 3, "unsupported": 4}


class ConclusionWarning(Frozen):
    """A warning that affects the conclusion. ``hint``: what to do about it."""

    what: str
    hint: str | None = None


class Conclusion(Frozen):
    """The conclusion of a report. ``sentence``: what power cuts broke, if a workload cuts power, and who is best.

    ``more``: number of notes that are not among the ``warnings``.
    """

    sentence: str
    standings: tuple[Standing, ...]
    warnings: tuple[ConclusionWarning, ...]
    more: int = 0


def conclude(report: Report) -> Conclusion:
    """Return the conclusion. The rows of the report must compare each stack with the best, not with a baseline."""
    standings = tuple(_standing(row, report) for row in report.rows if any(s.values for s in row.summaries))
    of_campaign = tuple(_of_campaign(report))
    found = [*of_campaign, *(_important(note, report.counts.stored) for note in _weightiest(report))]
    shown = tuple(found[:MOST_WARNINGS])
    notes = len(shown[len(of_campaign) :])
    return Conclusion(
        sentence=" ".join(filter(None, (verdict(report), _sentence(report, standings)))),
        standings=standings,
        warnings=shown,
        more=len(report.notes) - notes,
    )


def _standing(row: Row, report: Report) -> Standing:
    label_of = {stack.id: stack.label for stack in report.stacks}
    have = {label_of[item.stack] for item in row.summaries if item.values}
    same = {stack.label for stack in report.stacks if stack.same_as in have}
    measured = {
        label_of[item.stack]: item
        for item in row.summaries
        if item.values and label_of[item.stack] not in same
    }
    return standing(
        MeasuredRow(
            workload=row.workload, metric=row.metric, unit=row.unit, better=row.better, leader=row.leader,
            answers=row.answers, margin=report.margin, medians={label: item.median for label, item in measured.items()},
            n=len(next(iter(measured.values())).values),
        )
    )  # fmt: skip


def _sentence(report: Report, standings: Sequence[Standing]) -> str:
    """Return a sentence such as ``btrfs is slower in 21 of 32 metrics; ext4 and xfs are alike (± 10 %) in 30``."""
    if not standings:
        return "No usable trial is stored yet." if report.counts.stored else "No trial is stored yet."
    judged = [each for each in standings if each.certainty is not StandingCertainty.SINGLE]
    if not judged:
        if any(each.not_compared for each in standings):
            return "Nothing to compare: the stacks ran on different kinds of machines."
        return "Nothing to compare: each metric was measured on one stack only."
    if all(each.certainty is StandingCertainty.OPEN and each.n < each.needed for each in judged):
        n, needed = min(each.n for each in judged), max(each.needed for each in judged)
        return f"No ranking yet: {n} complete block{'s' * (n != 1)}; {needed} needed."
    if len(judged) == 1:
        return _of_one(judged[0])
    won_all = all(
        each.certainty is StandingCertainty.BEST and each.labels == judged[0].labels for each in judged
    )
    parts = [*_winners(judged), *(() if won_all else _losers(judged, report)), *_ties(judged)]
    # The statement about the most metrics comes first. Only the first statement gives the total.
    first, *others = (text for _, text in sorted(parts, key=lambda part: -part[0]))
    sentence = "; ".join((first, *(text.replace(f" of {len(judged)} metrics", "") for text in others)))
    return f"{sentence[0].upper() if sentence.startswith('no clear') else sentence[0]}{sentence[1:]}."


def _of_one(only: Standing) -> str:
    if only.certainty is StandingCertainty.BEST:
        return f"{only.labels[0]} is best."
    if only.certainty is StandingCertainty.ALIKE:
        return f"{listed(only.labels)} are alike ({alike_margin(only.margin)})."
    if only.certainty is StandingCertainty.NOT_COMPARABLE:
        return f"{listed(only.labels)} cannot be compared: not all values are positive."
    return f"{listed(only.labels)}: {needs_text(only.further, only.further_s)}. {UNTIL_THEN}."


def _winners(known: Sequence[Standing]) -> Iterator[tuple[int, str]]:
    """Yield a number of metrics and a text: the stack that is best most often, with the next two."""
    won = Counter(each.labels[0] for each in known if each.certainty is StandingCertainty.BEST).most_common(3)
    if won:
        first = f"{won[0][0]} is best in {_share(won[0][1], known)}"
        yield won[0][1], listed([first, *(f"{kind} in {count}" for kind, count in won[1:])])


def _losers(known: Sequence[Standing], report: Report) -> Iterator[tuple[int, str]]:
    """Yield a number of metrics and a text: the stack that is worse most often. Yield nothing for only two stacks."""
    slower = Counter(kind for each in known for kind in each.worse)
    word = "slower" if all(each.unit in SPEEDS for each in known) else "worse"
    if slower and len(report.stacks) > 2:
        kind, count = slower.most_common(1)[0]
        yield count, f"{kind} is {word} than the best in {_share(count, known)}"


def _ties(known: Sequence[Standing]) -> Iterator[tuple[int, str]]:
    sets = Counter(frozenset(each.labels) for each in known if each.certainty is StandingCertainty.ALIKE)
    if sets:
        group, count = sets.most_common(1)[0]
        order = list(dict.fromkeys(kind for each in known for kind in each.labels))
        names = listed(sorted(group, key=order.index))
        yield count, f"{names} are alike ({alike_margin(known[0].margin)}) in {_share(count, known)}"
    undecided = [each for each in known if each.certainty is StandingCertainty.OPEN]
    if len(undecided) == len(known):
        yield len(undecided), f"no clear winner yet in any of {len(known)} metrics. {UNTIL_THEN}"
    elif undecided:
        verb = "needs" if len(undecided) == 1 else "need"
        yield len(undecided), f"{len(undecided)} of {len(known)} metrics {verb} more trials"


def _share(count: int, known: Sequence[Standing]) -> str:
    total = len(known)
    return f"all {total} metrics" if count == total else f"{count} of {total} metrics"


def _of_campaign(report: Report) -> list[ConclusionWarning]:
    found = []
    counts = report.counts
    if report.status is not CampaignStatus.FINISHED:
        state = report.status.value.replace("_", " ")
        missing = f" of {counts.planned}" if counts.stored < counts.planned else ""
        found.append(
            ConclusionWarning(
                what=f"{state}: {counts.stored}{missing} trial{'s' * (counts.planned != 1)} stored",
                hint=f"fslab run --resume {report.campaign}",
            )
        )
    if report.extended_from:
        was = ", ".join(map(str, report.extended_from))
        found.append(
            ConclusionWarning(
                what=f"trials were added (planned: {was} each): 95 % CIs are valid only for a number fixed beforehand",
                hint="--precision accounts for interim analyses",
            )
        )
    return [*_unsafe(report), *_same(report), *found, *_uncorrected(report), *_independence(report)]


def _same(report: Report) -> Iterator[ConclusionWarning]:
    """Yield a warning for each stack that is the same as an earlier one, and therefore not compared with it."""
    for stack in report.stacks:
        if stack.same_as is not None:
            options = listed([f"'{option}'" for option in stack.changed])
            why = (
                f"the kernel dropped or changed {options}"
                if stack.changed
                else "their options have the same effect"
            )
            yield ConclusionWarning(
                what=f"{stack.same_as} and {stack.label} are the same stack here ({why})",
                hint="they are not compared with each other; their difference is noise",
            )


def _unsafe(report: Report) -> Iterator[ConclusionWarning]:
    """Yield a warning for each stack with the best rate that broke promises. The conclusion requires this warning."""
    for stack, leads, cuts, broken in unsafe_leaders(report):
        promises = f"broke {broken:g} promise{'s' * (broken != 1)} after power cuts ({cuts})"
        yield ConclusionWarning(
            what=f"{stack} has the best median in {listed(leads)}, but {promises}",
            hint="use it only for data that may be lost",
        )


def _independence(report: Report) -> list[ConclusionWarning]:
    sure = [item for row in report.rows for item in row.answers if item.holds]
    fragile = sum(item.fragile for item in sure)
    what = f"{of_differences(fragile, len(sure), 'holds', 'hold')} only if trials are independent"
    run = "a new campaign with" if report.counts.as_needed else f"fslab run --resume {report.campaign}"
    hint = f"run {INDEPENDENCE_LEAST} blocks to check: {run} --trials {INDEPENDENCE_LEAST}"
    return [ConclusionWarning(what=what, hint=hint)] if fragile else []


def _uncorrected(report: Report) -> list[ConclusionWarning]:
    """Return a warning with the number of differences from the best that Holm correction over the row rejects."""
    differing = [item for row in report.rows for item in row.answers if item.differs]
    unsure = sum(not item.holds for item in differing)
    if not unsure:
        return []
    what = f"{of_differences(unsure, len(differing), 'is', 'are')} not significant after Holm correction"
    return [ConclusionWarning(what=what, hint="run more trials")]


def _weightiest(report: Report) -> list[Note]:
    """Return the notes that affect the results, the most severe first. Notes of mere information are omitted."""
    found = [note for note in report.notes if note.severity in _WEIGHTS]
    return sorted(found, key=lambda note: (_WEIGHTS[note.severity], -note.trials))


def _important(note: Note, stored: int) -> ConclusionWarning:
    """Return a note as a warning: ``too short (3 of 75 trials)``, or for failures ``3 of 75 trials failed: …``."""
    kind = note.kind.replace(":", ", ").replace("_", " ")
    text = note.summary or f"{kind}: {' '.join(note.message.split())}"
    where = _where(note)
    if note.severity in _STATES and note.trials:
        place = f" ({where})" if where else ""
        why = text.removeprefix("failed, ").removeprefix("invalid: ")
        what = f"{note.trials} of {stored} trials {_STATES[note.severity][note.trials > 1]}{place}: {why}"
    else:
        place = f", {where}" if where else ""
        what = f"{text} ({note.trials} of {stored} trials{place})" if note.trials else text
    return ConclusionWarning(what=what, hint=note.hint)


def _where(note: Note) -> str:
    stacks = list(dict.fromkeys(place.stack for place in note.places))
    works = list(dict.fromkeys(place.workload for place in note.places))
    return " on ".join(names[0] for names in (works, stacks) if len(names) == 1)
