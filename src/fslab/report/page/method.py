"""Describes how it was measured: the machine, versions, seeds, and the trials not compared, with reasons. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fslab.analysis.labels import medium_label
from fslab.analysis.usable_trials import is_usable
from fslab.machine.differences import MEASURED_ON_DEVICES, without
from fslab.names import shown
from fslab.report.model import Report
from fslab.report.page.model import PageCell, PageTable
from fslab.stopping_settings import Until
from fslab.store.campaign import Campaign
from fslab.trial_record import Severity, TrialRecord
from fslab.units import format_size

MOST = 400  # maximum number of rows in the table of trials that are not compared


def tables(campaign: Campaign, trials: Sequence[TrialRecord], report: Report) -> Iterator[PageTable]:
    """Yield the tables in the order in which a reader needs them."""
    yield _pairs("Campaign", _campaign(campaign, report))
    yield _pairs(
        "Machine",
        {_words(name): _text(name, value) for name, value in campaign.machine.items() if _known(value)},
    )
    versions: dict[str, set[str]] = {}
    for trial in trials:
        for name, version in trial.provenance.tools.items():
            versions.setdefault(name, set()).add(version or "unknown")
    if versions:
        found = {name: ", ".join(sorted(each)) for name, each in sorted(versions.items())}
        yield _pairs("Versions of the tools", found)
    for title, facts in _devices(trials):
        yield _pairs(title, dict(_described(facts)))
    unusable = [trial for trial in trials if not is_usable(trial)]
    if unusable:
        yield _unusable(unusable, report)


def _campaign(campaign: Campaign, report: Report) -> dict[str, str]:
    stopping = campaign.stopping
    counts = report.counts
    until = {
        Until.DECIDED: "until the ranking is clear, or stacks differ by less than",
        Until.PRECISE: "until each ratio is known to within ±",
        Until.CLAIMS: "until claims are decided, with a margin of",
    }
    told = {"name": campaign.name, "note": campaign.note}
    return {
        "campaign": campaign.id,
        **{key: shown(text) for key, text in told.items() if text},
        "study": campaign.study_id,
        "started": f"{campaign.created:%Y-%m-%d %H:%M} UTC",
        "trials": f"{counts.stored} stored: {counts.usable} usable ({counts.with_warnings} with warnings), "
        f"{counts.invalid} invalid, {counts.failed} failed",
        "repeated": f"{stopping.trials} times"
        if stopping.precision is None
        else f"{stopping.trials} to {stopping.most} times, {until[stopping.until]} {stopping.precision * 100:g} %",
        "order": f"each cell once per block, in a random order per block (seed {campaign.seed})",
        "settings": ", ".join(campaign.settings.set) or "those of the study",
    }


def _devices(trials: Sequence[TrialRecord]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what describes the device under the file systems, once for each medium (at most 8)."""
    shown: dict[str, Mapping[str, Any]] = {}
    for trial in trials:
        if trial.provenance.device:
            facts = without(trial.provenance.device, MEASURED_ON_DEVICES)
            shown.setdefault(medium_label(trial.cell.stack.medium), facts)
    for name, facts in list(shown.items())[:8]:
        yield f"Device under {name}", facts


def _described(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and texts of facts. Parts, such as the disks of a stripe, share the row of a fact: *1 / 2*."""
    for name, value in facts.items():
        listed = value if isinstance(value, list) else []
        parts = [dict(_described(each)) for each in listed if isinstance(each, Mapping)]
        for part in dict.fromkeys(part for each in parts for part in each):
            found = dict.fromkeys(each.get(part, "none") for each in parts)
            yield f"{_words(name)}: {part}", " / ".join(found)
        if not parts and _known(value):
            yield _words(name), _text(name, value)


def _unusable(trials: Sequence[TrialRecord], report: Report) -> PageTable:
    labels = {stack.id: stack.label for stack in report.stacks}
    caption = f"Failed and invalid trials, which are not compared ({len(trials)})"
    if len(trials) > MOST:
        caption += f"; the first {MOST}"
    return PageTable(
        caption=caption,
        columns=("stack", "trial", "state", "reason"),
        rows=tuple(
            (
                trial.cell.workload.name,
                (
                    PageCell(text=labels.get(trial.cell.stack_id, trial.cell.stack.name)),
                    PageCell(text=str(trial.key.block + 1), sort=trial.key.block),
                    PageCell(text=trial.status_text if trial.status.value != "ok" else "invalid"),
                    PageCell(text=_why(trial)),
                ),
            )
            for trial in trials[:MOST]
        ),
    )


def _why(trial: TrialRecord) -> str:
    invalid = [each.message for each in trial.validity if each.severity is Severity.INVALID]
    return "; ".join([*invalid, *([trial.error] if trial.error else [])]) or "no reason given"


def _pairs(caption: str, pairs: Mapping[str, str]) -> PageTable:
    return PageTable(
        caption=caption,
        columns=("",),
        rows=tuple((name, (PageCell(text=text),)) for name, text in pairs.items()),
    )


def _known(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def _words(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _text(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int | float):
        return format_size(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
