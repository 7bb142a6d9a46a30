"""The most important warnings of a report, with what to do about each. Pure."""

import re
from collections.abc import Iterator, Sequence
from math import expm1, log
from statistics import median

from fslab.answers.model import INDEPENDENCE_LEAST, percent
from fslab.cell import Frozen
from fslab.report.crash_safety import unsafe_leaders
from fslab.report.model import Note, Report
from fslab.report.row_words import of_differences
from fslab.store.campaign import CampaignStatus
from fslab.units import listed

# Order of the warnings. Invalid and failed trials come first, because they are not compared.
_STATES = {"invalid": ("is invalid", "are invalid"), "failed": ("failed", "failed")}
# The command of a failed step is long, and what it says comes last.
_COMMAND = re.compile(r"^([^:]*: ).*?: (?=\S+ (?:exited|was ended by signal) \d)")
_WEIGHTS = {"invalid": 0, "failed": 1, "warning": 2, "unknown": 3, "unsupported": 4}


class ConclusionWarning(Frozen):
    """A warning that affects the conclusion. ``hint``: what to do about it."""

    what: str
    hint: str | None = None


def of_campaign(report: Report) -> list[ConclusionWarning]:
    found = []
    counts = report.counts
    if report.status is not CampaignStatus.FINISHED:
        state = report.status.value.replace("_", " ")
        missing = f" of {counts.planned}" if counts.stored < counts.planned else ""
        found.append(
            ConclusionWarning(
                what=f"{state}: {counts.stored}{missing} trial{'s' * (counts.planned != 1)} stored",
                hint=None
                if report.status is CampaignStatus.RUNNING
                else f"fslab run --resume {report.in_commands}",
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
    return [
        *_unsafe(report), *_same(report), *found, *_trust(report), *_uncorrected(report), *_independence(report),
    ]  # fmt: skip


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
    seen = f": differences below about {percent(expm1(median(widths)))} are not seen" if widths else ""
    why = listed([note.summary or note.kind.replace("_", " ") for note in found])
    yield ConclusionWarning(
        what=f"this machine was busy in {trials} of {stored} trials{seen} ({why})",
        hint="measure in a quiet hour, or for longer",
    )


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
        promises = f"broke up to {broken:g} promise{'s' * (broken != 1)} after power cuts ({cuts})"
        yield ConclusionWarning(
            what=f"{stack} has the best median in {listed(leads)}, but {promises}",
            hint="use it only for data that may be lost",
        )


def _independence(report: Report) -> list[ConclusionWarning]:
    sure = [item for row in report.rows for item in row.answers if item.holds]
    fragile = sum(item.fragile for item in sure)
    what = f"{of_differences(fragile, len(sure), 'holds', 'hold')} only if trials are independent"
    run = "a new campaign with" if report.counts.as_needed else f"fslab run --resume {report.in_commands}"
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


def weightiest(report: Report) -> list[Note]:
    """Return the notes that affect the results, the most severe first. Notes of mere information are omitted."""
    trusted = not _disturbances(report)
    found = [note for note in report.notes if note.severity in _WEIGHTS and (trusted or not note.by_others)]
    return sorted(found, key=lambda note: (_WEIGHTS[note.severity], -note.trials))


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
    return " on ".join(names[0] for names in (works, stacks) if len(names) == 1)
