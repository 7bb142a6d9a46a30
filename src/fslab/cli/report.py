"""``fslab report``: write one HTML file of a campaign or of several compared, or tables and figures for a paper."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from fslab import names, safe_output
from fslab.cli.common import StoreOption, open_store, say
from fslab.errors import UsageError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.api.results import CampaignResults
    from fslab.report.page.model import Page

EPILOG = """\b
Examples:
  fslab report                                 the last campaign, as CAMPAIGN.html in this directory
  fslab report last -o results.html --figures figures
  fslab report last~1 last -o kernels.html     two campaigns compared, then each of them
  fslab report last --format latex > table.tex

\b
Exit codes:
  0  written
  2  invalid options, or a file cannot be written
  7  no such campaign
"""


class FigureFormat(StrEnum):
    """The formats of a report."""

    HTML = "html"
    MARKDOWN = "md"
    LATEX = "latex"


def report(
    campaigns: list[str] | None = None,
    *,
    output: Path | None = None,
    form: FigureFormat = FigureFormat.HTML,
    figures: Path | None = None,
    store: StoreOption = None,
) -> None:
    """Write the results as one HTML file that needs no server and no network. An existing file is replaced.

    The answer and its confidence come first. Below are each workload with every trial, latency and rate over time,
    the exact commands, the machine, and each excluded trial with the reason.

    Parameters:
        campaigns [CAMPAIGN]…: Campaigns: ids, beginnings of ids, names, 'last' or 'last~1'. Several are compared
            (html).
        output --output -o FILE: The file; '-' is standard output. Default: CAMPAIGN.html, or for md and latex standard
            output.
        form --format -f: html: a page; md, latex: only tables.
        figures DIRECTORY: Also write every figure to DIRECTORY, as SVG and PNG.
    """
    from fslab.api.pages import html_of, page_of, tables_of
    from fslab.campaign.liveness import as_it_is

    check_name(output, form)
    wanted = campaigns or ["last"]
    with open_store(store) as opened:
        chosen = [as_it_is(opened.campaign(name), opened) for name in wanted]
        if len({campaign.id for campaign in chosen}) < len(chosen):
            raise UsageError("a campaign is named twice", where=" ".join(wanted), hint="name each once")
        if form is not FigureFormat.HTML:
            if figures is not None:
                _write_figures(page_of(chosen, opened), figures)
            tables = tables_of(chosen, opened, latex=form is FigureFormat.LATEX)
            _put(names.shown(tables), output)
            return
        page = page_of(chosen, opened)
    if figures is not None:
        _write_figures(page, figures)
    _put(html_of(page), output or Path(f"{'-'.join(campaign.id for campaign in chosen)}.html"))


_ENDINGS = {
    FigureFormat.HTML: (".html", ".htm", ".xhtml"),
    FigureFormat.MARKDOWN: (".md", ".markdown"),
    FigureFormat.LATEX: (".tex",),
}


def check_name(file: Path | None, form: FigureFormat = FigureFormat.HTML) -> None:
    """Raise UsageError for a directory, and for a file whose ending is that of another format. UnsafeError for a file
    that root must not write.

    A name without an ending is valid. Called before anything that takes time.
    """
    if file is not None and os.path.isdir(file):  # noqa: PTH112 - never raises
        raise UsageError("is a directory", where=str(file), hint=f"name a file: {file / 'report.html'}")
    if file is not None:
        safe_output.check_place(file)
    ending = "" if file is None else file.suffix.lower()
    if file is None or ending in {"", *_ENDINGS[form]}:
        return
    fitting = next((each for each, endings in _ENDINGS.items() if ending in endings), None)
    instead = f"fslab report --format {fitting.value} -o {file.name}, or " if fitting else ""
    raise UsageError(
        f"format {form.value} does not match the ending '{ending}'",
        where=str(file),
        hint=f"{instead}name it {file.with_suffix(_ENDINGS[form][0]).name}",
    )


def conclude(found: CampaignResults, wanted: Path | None, *, quiet: bool) -> None:
    """Write the report of a run and print its path. If this fails (a full disk), the stored results are still valid."""
    from fslab.api.pages import default_file

    try:
        file = wanted or default_file(found.campaign)
        safe_output.make_directory(file.parent)
        found.write_report(file)
    except UsageError as error:
        say(f"no report: {error}", err=True)
        return
    if not quiet:
        say(f"report: {file.resolve()}")


def _write_figures(page: Page, directory: Path) -> None:
    from fslab.api.pages import write_figures

    written = write_figures(page, directory)
    say(f"{counted(len({path.stem for path in written}), 'figure')} in {directory}", err=True)


def _put(text: str, output: Path | None) -> None:
    if output is None or str(output) == "-":
        safe_output.to_standard_output(text)
        return
    safe_output.replace(output, text)
    say(f"report: {output.resolve()}")
