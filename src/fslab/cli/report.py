"""``fslab report`` and ``serve``: one HTML file of campaigns, tables and figures for a paper, and live pages."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab import names, safe_output
from fslab.cli.common import StoreOption, open_store, say
from fslab.errors import InterruptedBySignal, UsageError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.api.results import CampaignResults
    from fslab.report.page.model import Page


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
        campaigns CAMPAIGN: Campaigns: ids, beginnings of ids, names, 'last' or 'last~1'. Several are compared
            (html).
        output --output -o FILE: The file; '-' is standard output. Default: CAMPAIGN.html, or for md and latex standard
            output.
        form --format -f: html: a page; md, latex: only tables.
        figures DIRECTORY: Also write every figure to DIRECTORY, as SVG and PNG.

    Examples:
        fslab report                                 the last campaign, as CAMPAIGN.html in this directory
        fslab report last -o results.html --figures figures
        fslab report last~1 last -o kernels.html     two campaigns compared, then each of them
        fslab report last --format latex > table.tex

    Exit codes:
        0  written
        2  invalid options, or a file cannot be written
        7  no such campaign
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
    hint = f"{instead}name it {file.with_suffix(_ENDINGS[form][0]).name}"
    raise UsageError(f"format {form.value} does not match the ending '{ending}'", where=str(file), hint=hint)


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
    from fslab.report.figures import paper
    from fslab.report.page import assemble

    written = paper.write(assemble.figures(page), directory)
    say(f"{counted(len({path.stem for path in written}), 'figure')} in {directory}", err=True)


def _put(text: str, output: Path | None) -> None:
    if output is None or str(output) == "-":
        safe_output.to_standard_output(text)
        return
    safe_output.replace(output, text)
    say(f"report: {output.resolve()}")


def serve(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8765,
    name: list[str] | None = None,
    store: StoreOption = None,
) -> None:
    """Show the campaigns of the store in a browser: the same pages as fslab report, updated while
    a campaign runs.

    The server is read-only. It listens on this machine only, where all users can read the pages, unless --host gives
    another address: then the printed URL contains a token, and requests without it are rejected. Connections are not
    encrypted: use a proxy with TLS, or ssh -L.

    Stop it with Ctrl-C.

    Parameters:
        host ADDRESS: The address to listen on.
        port: The port; 0 takes any that is free.
        name HOST: Another host name that browsers may use for this server. Repeatable.

    Examples:
        fslab serve                                  http://127.0.0.1:8765/, for all users of this machine
        fslab serve --host 0.0.0.0                   for others too, with a token that it prints
    """
    from fslab.serve import app

    with open_store(store) as opened:
        if not opened.campaigns():
            say(f"{opened.path} has no campaign yet; the first is shown when it starts", err=True)
    try:
        app.run(store, host=host, port=port, names=name or [], announce=say)
    except InterruptedBySignal:
        return  # the normal way to stop it
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "invalid host name"
        hint = "give an address of this machine, such as --host 127.0.0.1, and a free --port"
        raise UsageError(
            f"cannot listen on this address: {why}", where=f"{host}:{port}", hint=hint
        ) from error
