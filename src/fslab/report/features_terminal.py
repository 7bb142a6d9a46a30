"""Shows the table of features in a terminal: a row per feature, a column per file system, and explanatory notes.

Tests nothing. The results come from the examinations, the documented values from a data file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fslab.features import ALSO_NOT, Examination, Feature, FeatureFinding, Support, in_order
from fslab.units import format_size

DOCUMENTED = "ext-generations.documented.json"
TITLE_WIDTH = 24
COLUMN_WIDTH = 14
TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"))
MIB = 1 << 20
LARGE_BYTES = 1 << 30
# Tolerance, as a share: documented values are rounded, or include overhead of the value.
ABOUT = 0.05
_STYLE = {Support.YES: "green", Support.NO: "red", Support.UNKNOWN: "yellow", Support.VALUE: ""}


def documented() -> dict[str, Any]:
    """Return what the documentation states about the file systems of the study ``ext-generations``, with sources."""
    text = files("fslab").joinpath("studies", DOCUMENTED).read_text("utf-8")
    return dict(json.loads(text))


def word(finding: FeatureFinding) -> str:
    """Return the finding as a short text for a table."""
    match finding.answer:
        case Support.YES | Support.NO:
            return finding.answer.value
        case Support.UNKNOWN:
            return "?"
        case Support.VALUE:
            more = finding.at_least and not isinstance(finding.value, str)
            return f"{'≥ ' if more else ''}{amount(finding.value, finding.unit)}"


def amount(value: float | str | None, unit: str | None) -> str:
    """Return a value with its unit in a readable form."""
    if isinstance(value, str) or value is None:
        return str(value)
    match unit:
        case "B":
            # A limit is often a byte or a block below a round number. Show the round number.
            return format_size(-(-value // MIB) * MIB if value > LARGE_BYTES else value)
        case "ns":
            scale, name = next((each for each in TIMES if value >= each[0]), (1, "ns"))
            return f"{value / scale:g} {name}"
        case "%":
            return f"{value:g} %"
        case None:
            return f"{value:,}"
        case _:
            return f"{value:,} {unit}"


def show(found: Sequence[Examination], console: Console, *, details: bool) -> None:
    for part in parts(found, console.width, details=details):
        console.print(part, soft_wrap=False)


def parts(found: Sequence[Examination], width: int, *, details: bool) -> Iterator[RenderableType]:
    """Yield tables with as many file systems as fit, then the notes, then the documented values."""
    across = max((width - TITLE_WIDTH) // COLUMN_WIDTH, 1)
    for start in range(0, len(found), across):
        yield from _table(found[start : start + across])
        yield Text("")
    if len({each.kernel for each in found if each.findings}) > 1:
        yield Text("results of different kernels; choose one machine for all with --on", style="dim")
    yield from _notes(found, details=details)
    yield from _beside_the_documentation(found)


def _columns(found: Sequence[Examination], **title: Any) -> Table:
    table = Table(box=None, pad_edge=False, **title)
    table.add_column("", min_width=TITLE_WIDTH - 2)  # a plug-in can have a longer title
    for each in found:
        table.add_column(Text(each.filesystem), max_width=COLUMN_WIDTH - 1, no_wrap=True)
    return table


def _table(found: Sequence[Examination]) -> Iterator[RenderableType]:
    table = _columns(found)
    table.add_row(Text("kernel", style="dim"), *(Text(_kernel(each), style="dim") for each in found))
    group = None
    for feature in in_order():
        if not any(feature.name in each.findings for each in found):
            continue
        if feature.group is not group:
            group = feature.group
            table.add_row(Text(group.value, style="bold"))
        table.add_row(f" {feature.title}", *(_cell(each, feature) for each in found))
    yield table


def _kernel(each: Examination) -> str:
    release = (each.kernel or "–").split("-")[0]
    return release if each.machine == "host" else f"{release} {each.machine}"


def _cell(each: Examination, feature: Feature) -> Text:
    finding = each.findings.get(feature.name)
    if finding is None:
        return Text("–", style="dim")
    return Text(f"{word(finding)}{' *' if finding.switch else ''}", style=_STYLE[finding.answer])


def _notes(found: Sequence[Examination], *, details: bool) -> Iterator[RenderableType]:
    for each in found:
        if each.not_possible:
            yield Text.assemble((f"{each.filesystem} ", "bold"), f"not possible here: {each.not_possible}")
    titles = {feature.name: feature.title for feature in in_order()}
    said: dict[str, list[str]] = {}
    for each in found:
        for name, finding in each.findings.items():
            if text := _note(finding, details=details):
                said.setdefault(f"{titles[name]}: {text}", []).append(each.filesystem)
    for text, names in said.items():
        yield Text.assemble((f"{', '.join(names)} ", "bold"), text)


def _note(finding: FeatureFinding, *, details: bool) -> str | None:
    if finding.switch:
        detail = f" ({finding.detail})" if finding.detail else ""
        return f"{word(finding)} with {finding.switch}, no without{detail} *"
    if finding.answer is Support.NO and (finding.detail or "").startswith(ALSO_NOT):
        return f"no with this kernel, {finding.detail}"
    if finding.answer is Support.UNKNOWN or details:
        return finding.detail
    return None


def _beside_the_documentation(found: Sequence[Examination]) -> Iterator[RenderableType]:
    data = documented()
    known = [each for each in found if each.filesystem in data["filesystems"]]
    names = [name for name in data["features"] if any(name in each.findings for each in known)]
    if not names:
        return
    titles = {feature.name: feature.title for feature in in_order()}
    table = _columns(known, title=data["title"], title_justify="left", title_style="bold")
    for name in names:
        said = (data["filesystems"][each.filesystem].get(name) for each in known)
        row = (_beside(each.findings.get(name), one) for each, one in zip(known, said, strict=True))
        table.add_row(f" {titles[name]}", *row)
    yield Text("")
    yield table
    yield Text("≠: the test above found otherwise. For the sources of this table: --json.", style="dim")


def _beside(finding: FeatureFinding | None, said: Mapping[str, Any] | None) -> Text:
    if said is None:
        return Text("–", style="dim")
    text = said.get("answer") or amount(said["value"], said.get("unit"))
    if finding is None or agrees(finding, said) is not False:
        return Text(text)
    return Text(f"{text} ≠", style="yellow")


def agrees(finding: FeatureFinding, said: Mapping[str, Any]) -> bool | None:
    """Return whether the finding agrees with the documented value; None if the test has no result."""
    if finding.answer is Support.UNKNOWN:
        return None
    if "answer" in said:
        return bool(finding.answer.value == said["answer"])
    if not isinstance(finding.value, int | float):
        return False
    return finding.at_least or bool(abs(finding.value - said["value"]) <= ABOUT * said["value"])
