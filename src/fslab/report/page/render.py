"""Renders a page as one HTML file, with templates, style, script and the chart library inside. It loads nothing.

Text from a study, a tool or a machine must stay text: every template escapes it.
"""

import contextlib
import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from fslab import safe_output
from fslab.claims.claim_words import NOT_PRINTED, claim_verdict_words, scoped_words
from fslab.errors import FslabError
from fslab.names import study_id
from fslab.report.figures import styles
from fslab.report.figures.paper import VEGA_LITE
from fslab.report.figures.styles import StackStyles
from fslab.report.fleet_terminal import ShownChange
from fslab.report.page.model import HeatRow, Page, Part
from fslab.report.page.sections import packed
from fslab.store.campaign import Campaign
from fslab.store.fleet_values import AssignmentSummary, FleetSchedule, MemberMachine
from fslab.units import format_duration, metric_text

MOST_HEATS = 4  # maximum number of tables of a heat map, one per set of stacks
HEAT_ROWS = 60  # rows of the heat map that are visible at first
PACKED_FROM = 80  # workloads; with more, their sections are packed and open one by one
CHUNK = 25  # packed sections that are unpacked together


@dataclass(frozen=True, kw_only=True, slots=True)
class LivePage:
    """What only a page that a server serves has.

    ``events``: the URL of the events of a running campaign. ``known``: the progress of that campaign when the page was
    made, in the words of its events.
    """

    events: str | None = None
    known: str = ""


def listing(rows: Sequence[tuple[Campaign, int]], store: str, *, fleet: bool = False) -> str:
    """Return the list of campaigns with their numbers of trials, from which a user selects those to compare.

    ``store``: where they are stored. ``fleet``: whether the store is also that of a fleet.
    """
    return _template("listing").render(rows=rows, store=store, fleet=fleet)


def fleet(
    summary: str,
    machines: Sequence[MemberMachine],
    schedules: Sequence[FleetSchedule],
    runs: Sequence[Sequence[AssignmentSummary]],
) -> str:
    """Return the page with the machines of a fleet and their runs. A browser reloads it every 10 s.

    ``summary``: its first sentence. ``runs``: the assignments of each run.
    """
    return _template("fleet").render(summary=summary, machines=machines, schedules=schedules, runs=runs)


def changes(study: str, summary: str, found: Sequence[ShownChange]) -> str:
    """Return the page with the changes over time on all machines, in words."""
    return _template("changes").render(study=study, summary=summary, changes=found)


def html(page: Page, live: LivePage | None = None, kept: Path | None = None) -> str:
    """Return the text of the file. ``kept``: see ``library``."""
    comparison = _template("comparison")
    return _template("page").render(
        page=page,
        live=live,
        parts=[_part(each, f"{number}-" if number else "") for number, each in enumerate(page.parts)],
        comparisons=[Markup(comparison.render(comparison=each)) for each in page.comparisons],  # noqa: S704
        script=static("report.js"),
        vega=library(kept),
    )


def static(name: str) -> Markup:
    """Return one of fslab's own files, for inclusion in a page without escaping."""
    text = resources.files("fslab.report.page").joinpath("static", name).read_text()
    return Markup(text)  # noqa: S704


@cache
def library(kept: Path | None = None) -> Markup:
    """Return Vega, Vega-Lite and vega-embed in one script, from vl-convert. Downloads nothing.

    ``kept``: a directory of the user in which the script is cached, because building it takes two seconds.
    """
    import vl_convert  # noqa: PLC0415 - 30 MB that only pages need

    file = None if kept is None else kept / f"vega-{metadata.version('vl-convert-python')}-{VEGA_LITE}.js"
    code = None if file is None else _own_text(file)
    if code is None:
        code = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE))
        with contextlib.suppress(FslabError):  # a full disk only costs time at the next report
            if file is not None:
                safe_output.make_directory(file.parent)
                safe_output.replace(file, code)
    return Markup(code.replace("</script", "<\\/script").replace("<!--", "<\\!--"))  # noqa: S704


def _own_text(file: Path) -> str | None:
    """Return the text of a file that only this user can have written; None if there is no such file."""
    try:
        facts = file.stat(follow_symlinks=False)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022 or not stat.S_ISREG(facts.st_mode):
            return None
        return file.read_text(encoding="utf-8")
    except OSError:
        return None


def _part(part: Part, prefix: str) -> Markup:
    macros: Any = _template("macros").module
    many = len(part.sections) > PACKED_FROM
    sections = [str(macros.section(each, prefix)) for each in part.sections] if many else []
    text = _template("part").render(
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
    """Return the heat map as tables: the indices of the stacks, and the rows on these stacks.

    If there would be too many rows or tables, it is one table with all stacks.
    """
    tables: dict[tuple[int, ...], list[HeatRow]] = {}
    for row in rows:
        asked = tuple(index for index, tile in enumerate(row.tiles) if tile.asked)
        tables.setdefault(asked, []).append(row)
    if len(rows) > HEAT_ROWS or len(tables) > MOST_HEATS:
        return [(list(range(len(rows[0].tiles))), list(rows))]
    return [(list(stacks), alike) for stacks, alike in tables.items()]


def _template(name: str) -> Template:
    return _environment().get_template(f"{name}.html.j2")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fslab.report.page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["json"] = _json
    environment.filters["compact"] = lambda value: f"{value:.4g}"
    environment.filters["breaks"] = _breaks
    environment.filters["duration"] = format_duration
    environment.filters["metric"] = metric_text
    environment.filters["minute"] = lambda moment: f"{moment:%Y-%m-%d %H:%M}"
    environment.filters["command_line"] = shlex.join
    environment.filters["study_id"] = study_id
    environment.filters["verdict"] = lambda answer, *, printed=False: (
        NOT_PRINTED if answer is None else claim_verdict_words(answer, printed=printed)
    )
    environment.filters["scoped"] = scoped_words
    environment.globals |= {
        "css": static("report.css"),
        "light": _css_variables(dark=False),
        "dark": _css_variables(dark=True),
    }
    return environment


def _json(value: Mapping[str, Any]) -> Markup:
    """Return JSON for a script element. Escapes ``<``, which could end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _breaks(options: str) -> Markup:
    """Return options with a possible line break after commas and equals signs, for headings of narrow columns."""
    return Markup(str(escape(options)).replace(",", ",<wbr>").replace("=", "=<wbr>"))  # noqa: S704


def _css_variables(*, dark: bool) -> Markup:
    variables = styles.variables(dark=dark)
    return Markup("".join(f"--{name}:{colour};" for name, colour in variables.items()))  # noqa: S704
