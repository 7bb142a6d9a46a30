"""Lays a page out as one HTML file: templates, style, script and the chart library inside, nothing outside.

What comes from a study, a tool or a machine is text and stays text: every template escapes.
"""

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fslab.report.changes import ShownChange
from fslab.report.figures import palette
from fslab.report.figures.files import VEGA_LITE
from fslab.report.figures.styles import StackStyles
from fslab.report.page.model import HeatRow, Page, Part
from fslab.report.page.packing import packed

MOST_HEATS = 4  # tables that a heat map falls into, by which stacks a workload runs on
HEAT_ROWS = 60  # of the heat map that stand open
PACKED_FROM = 80  # workloads: from here on their sections are packed and open one by one
CHUNK = 25  # packed sections that are unpacked together


@dataclass(frozen=True, kw_only=True, slots=True)
class LivePage:
    """A page that is served: where all campaigns are listed, where events of a running one come from, and ``known``:
    how far that one was when the page was made, as its events tell it."""

    home: str
    events: str | None = None
    known: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A campaign in the list of them all."""

    id: str
    study: str
    title: str
    begun: str
    status: str
    cells: int
    trials: int


def listing(rows: Sequence[Listed], store: str, *, fleet: bool = False) -> str:
    """The list of campaigns, to tick two of; ``store``: where they are kept; ``fleet``: it is also a fleet's."""
    return _environment().get_template("listing.html.j2").render(
        rows=rows, store=store, fleet=fleet, css=static("report.css"), light=_css_variables(dark=False),
        dark=_css_variables(dark=True),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedMachine:
    """A machine of a fleet, as texts."""

    name: str
    state: str
    runs: str
    kernel: str
    cpu: str
    labels: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedSchedule:
    """A schedule of a fleet, as texts; ``problem``: why it could not be started the last time."""

    name: str
    study: str
    due: str
    last: str
    problem: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedPart:
    """What one machine did in a run; ``campaign`` has a page if it has trials."""

    machine: str
    campaign: str
    status: str
    trials: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedRun:
    """A run of a fleet: one study on several machines."""

    id: str
    study: str
    study_id: str
    by: str
    begun: str
    parts: tuple[ListedPart, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetPage:
    """What the page of a fleet shows; ``summary`` is its first sentence."""

    summary: str
    machines: tuple[ListedMachine, ...]
    schedules: tuple[ListedSchedule, ...]
    runs: tuple[ListedRun, ...]


def fleet(page: FleetPage) -> str:
    """The machines of a fleet and what they run; made anew every 10 s while it is looked at."""
    return _environment().get_template("fleet.html.j2").render(
        page=page, css=static("report.css"), light=_css_variables(dark=False), dark=_css_variables(dark=True)
    )  # fmt: skip


def changes(study: str, summary: str, found: Sequence[ShownChange]) -> str:
    """What changed over time on all machines, in words."""
    return _environment().get_template("changes.html.j2").render(
        study=study, summary=summary, changes=found, css=static("report.css"), light=_css_variables(dark=False),
        dark=_css_variables(dark=True),
    )  # fmt: skip


def replication(page: object, columns: Sequence[str], signs: Mapping[Any, str]) -> str:
    """The replication page of a study: ``page`` as ``fslab.claims`` has it, ``signs`` by verdict."""
    return _environment().get_template("replication.html.j2").render(
        page=page, columns=columns, signs=signs, css=static("report.css"), light=_css_variables(dark=False),
        dark=_css_variables(dark=True),
    )  # fmt: skip


def html(page: Page, live: LivePage | None = None, kept: Path | None = None) -> str:
    """The file's text; ``kept``: see ``library``."""
    environment = _environment()
    comparison = environment.get_template("comparison.html.j2")
    return environment.get_template("page.html.j2").render(
        page=page,
        live=live,
        parts=[
            _part(environment, each, f"{number}-" if number else "") for number, each in enumerate(page.parts)
        ],
        comparisons=[Markup(comparison.render(comparison=each)) for each in page.comparisons],  # noqa: S704
        light=_css_variables(dark=False),
        dark=_css_variables(dark=True),
        css=static("report.css"),
        script=static("report.js"),
        vega=library(kept),
    )


def static(name: str) -> Markup:
    """One of our own files, to stand in a page as it is."""
    text = resources.files("fslab.report.page").joinpath("static", name).read_text()
    return Markup(text)  # noqa: S704


@cache
def library(kept: Path | None = None) -> Markup:
    """Vega, Vega-Lite and vega-embed in one script, out of vl-convert: nothing is fetched.

    ``kept``: a directory of the user's own where the script is kept, for it takes two seconds to put together.
    """
    import vl_convert  # noqa: PLC0415 - 30 MB that only pages need

    file = None if kept is None else kept / f"vega-{metadata.version('vl-convert-python')}-{VEGA_LITE}.js"
    code = None if file is None else _own_text(file)
    if code is None:
        code = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE))
        if file is not None:
            _keep(code, file)
    return Markup(code.replace("</script", "<\\/script").replace("<!--", "<\\!--"))  # noqa: S704


def _own_text(file: Path) -> str | None:
    """What only this user could have written; None where there is no such file."""
    try:
        facts = file.stat(follow_symlinks=False)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022 or not stat.S_ISREG(facts.st_mode):
            return None
        return file.read_text(encoding="utf-8")
    except OSError:
        return None


def _keep(text: str, file: Path) -> None:
    """Whole or not at all; a disk that is full only costs time at the next report."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        try:
            Path(name).write_text(text, encoding="utf-8")
            Path(name).replace(file)
        finally:
            os.close(handle)
            Path(name).unlink(missing_ok=True)


def _part(environment: Environment, part: Part, prefix: str) -> Markup:
    macros: Any = environment.get_template("macros.html.j2").module
    many = len(part.sections) > PACKED_FROM
    sections = [str(macros.section(each, prefix)) for each in part.sections] if many else []
    text = environment.get_template("part.html.j2").render(
        part=part,
        prefix=prefix,
        slots=StackStyles.of(part.report.stacks).slot,
        limit=HEAT_ROWS,
        heats=_heats(part.heat),
        rest_of_heat=packed(
            "".join(str(macros.heatrow(row, range(len(row.tiles)))) for row in part.heat[HEAT_ROWS:])
        ),
        chunk=CHUNK,
        packed_sections=[
            packed(json.dumps(sections[start : start + CHUNK])) for start in range(0, len(sections), CHUNK)
        ],
    )
    return Markup(text)  # noqa: S704


def _heats(rows: Sequence[HeatRow]) -> list[tuple[list[int], list[HeatRow]]]:
    """The heat map as tables of rows on the same stacks, whose indices come first; one where these would be many."""
    tables: dict[tuple[int, ...], list[HeatRow]] = {}
    for row in rows:
        asked = tuple(index for index, tile in enumerate(row.tiles) if tile.asked)
        tables.setdefault(asked, []).append(row)
    if len(rows) > HEAT_ROWS or len(tables) > MOST_HEATS:
        return [(list(range(len(rows[0].tiles))), list(rows))]
    return [(list(stacks), alike) for stacks, alike in tables.items()]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fslab.report.page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["json"] = _json
    environment.filters["compact"] = lambda value: f"{value:.4g}"
    environment.filters["breaks"] = _breaks
    environment.filters["rows"] = _row_count
    return environment


def _json(value: Mapping[str, Any]) -> Markup:
    """JSON inside a script element: a ``<`` in a name must not end it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _breaks(options: str) -> Markup:
    """Options that may be broken after a comma or an equals sign, as headings of narrow columns are."""
    return Markup(str(escape(options)).replace(",", ",<wbr>").replace("=", "=<wbr>"))  # noqa: S704


def _row_count(spec: Mapping[str, Any]) -> int:
    """How many rows of data a figure has."""
    layers = [spec, *spec.get("layer", ()), *spec.get("spec", {}).get("layer", ())]
    return sum(len(layer["data"]["values"]) for layer in layers if "data" in layer)


def _css_variables(*, dark: bool) -> Markup:
    variables = palette.variables(dark=dark)
    return Markup("".join(f"--{name}:{colour};" for name, colour in variables.items()))  # noqa: S704
