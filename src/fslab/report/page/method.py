"""Tables of a page: how it was measured, the trials not compared, and a publication's figures and conditions. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fslab.analysis.labels import medium_label
from fslab.analysis.usable_trials import is_usable
from fslab.cell import MachineSpec
from fslab.claims.model import PublishedTable, TableCell
from fslab.claims.publication_likeness import Condition
from fslab.machine.differences import MEASURED_ON_DEVICES, without
from fslab.names import shown
from fslab.report.model import Report
from fslab.report.page.model import PageCell, PageTable
from fslab.stopping_settings import Until
from fslab.store.campaign import Campaign
from fslab.trial_record import Severity, TrialRecord
from fslab.units import Unit, format_size, metric_text

MOST = 400  # maximum number of rows in the table of trials that are not compared


def tables(campaign: Campaign, trials: Sequence[TrialRecord], report: Report) -> Iterator[PageTable]:
    """Yield the tables in the order in which a reader needs them."""
    yield _pairs("Campaign", _campaign(campaign, report))
    yield _pairs("Machine", _machine(campaign, trials))
    versions: dict[str, set[str]] = {}
    for trial in trials:
        for name, version in trial.provenance.tools.items():
            versions.setdefault(name, set()).add(version or "unknown")
    if versions:
        found = {name: ", ".join(sorted(each)) for name, each in sorted(versions.items())}
        yield _pairs("Versions of the tools", found)
    for title, about in _devices(trials):
        yield _pairs(title, dict(_described(about)))
    unusable = [trial for trial in trials if not is_usable(trial)]
    if unusable:
        yield _unusable(unusable, report)


def _machine(campaign: Campaign, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """Return the facts of the host, as a trial on it has stored them, if there is one: when the campaign began, a trial
    of another campaign may have tuned settings."""
    on_host = [each for each in trials if each.cell.stack.machine == MachineSpec() and is_usable(each)]
    facts = next(filter(None, (each.provenance.machine for each in on_host)), campaign.machine)
    return {_words(name): _text(name, value) for name, value in facts.items() if _known(value)}


def _campaign(campaign: Campaign, report: Report) -> dict[str, str]:
    stopping = campaign.stopping
    counts = report.counts
    until = {
        Until.DECIDED: "until the ranking is clear, or stacks differ by less than",
        Until.PRECISE: "until each ratio is known to within ±",
        Until.CLAIMS: "until claims are decided, with a margin of",
    }
    told = {"name": campaign.name, "note": campaign.note}
    most = goal = ""
    if stopping.precision is not None:
        most, goal = f" to {stopping.most}", f", {until[stopping.until]} {stopping.precision * 100:g} %"
    return {
        "campaign": campaign.id,
        **{key: shown(text) for key, text in told.items() if text},
        "study": campaign.study_id,
        "started": f"{campaign.created:%Y-%m-%d %H:%M} UTC",
        "trials": f"{counts.stored} stored: {counts.usable} usable ({counts.with_warnings} with warnings), "
        f"{counts.invalid} invalid, {counts.failed} failed",
        "repeated": f"{stopping.trials}{most} times{goal}",
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
    labels = report.labels
    caption = f"Failed and invalid trials, which are not compared ({len(trials)})"
    if len(trials) > MOST:
        caption += f"; the first {MOST}"
    rows = (
        (
            trial.cell.workload.name,
            (
                labels.get(trial.cell.stack_id, trial.cell.stack.name),
                PageCell(text=str(trial.key.block + 1), sort=trial.key.block),
                trial.status_text if trial.status.value != "ok" else "invalid",
                _why(trial),
            ),
        )
        for trial in trials[:MOST]
    )
    return PageTable.of(caption, ("stack", "trial", "state", "reason"), rows)


def _why(trial: TrialRecord) -> str:
    invalid = [each.message for each in trial.validity if each.severity is Severity.INVALID]
    return "; ".join([*invalid, *([trial.error] if trial.error else [])]) or "no reason given"


def _pairs(caption: str, pairs: Mapping[str, str]) -> PageTable:
    return PageTable.of(caption, ("",), ((name, (text,)) for name, text in pairs.items()))


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


def publication_conditions(found: Sequence[Condition]) -> PageTable | None:
    """Return the table of the conditions; None if the publication states none."""
    if not found:
        return None
    rows = ((one.name, (one.theirs, one.here, one.near_word)) for one in found)
    return PageTable.of("Conditions", ("publication", "here", "alike"), rows)


def published_values(tables: Iterable[PublishedTable]) -> Iterator[PageTable]:
    """Yield a table with the values, in their units, of each published table of which some were measured."""
    for table in tables:
        rows = tuple(
            (f"{line.workload}, {metric_text(line.metric)}: {stack}", _fields(cell, line.unit))
            for line in table.lines
            if line.unit is not None
            for stack, cell in zip(table.stacks, line.cells, strict=True)
            if cell.printed_value is not None
        )
        if any(cell.measured_median is not None for line in table.lines for cell in line.cells):
            columns = ("published", "median here", "here ÷ published")
            yield PageTable(caption=f"Values of table {table.name}", columns=columns, rows=rows)


def _fields(cell: TableCell, unit: Unit) -> tuple[PageCell, ...]:
    printed, here = cell.printed_value, cell.measured_median
    ratio = here / printed if here is not None and printed else None
    return (PageCell.of(printed, unit), PageCell.of(here, unit), PageCell.ratio(ratio))
