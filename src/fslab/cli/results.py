"""``fslab results`` and ``export``: show a campaign's results, or write its trials as CSV, JSON or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fslab.cli.common import CampaignArgument, JsonOption, StoreOption, console, open_store, print_json
from fslab.errors import UsageError
from fslab.store import Format

if TYPE_CHECKING:
    from fslab.api.results import CampaignResults
    from fslab.store.store import Store


def results(
    campaign: CampaignArgument = "last",
    *,
    listing: bool = False,
    everything: bool = False,
    baseline: str | None = None,
    notes: bool = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a campaign's results: for each workload the best stack or a tie, the ratio, and its confidence interval.

    --all prints a table of all figures, also those of single jobs and percentiles, each as the median of the usable
    trials ± half their range. --notes and --baseline print the table of the most important figures.

    Parameters:
        listing --list: Only list all campaigns of the store.
        everything --all: Print every figure of every stack, with its spread.
        baseline STACK: Compare each stack with STACK (a name or a file system) instead of with the best of each row.
        notes: Print each warning in full: its evidence, where it applies, what to do.
    """
    with open_store(store) as opened:
        if listing:
            _show_campaigns(opened, as_json=as_json)
            return
        from fslab.api.results import CampaignResults

        found = CampaignResults(opened.campaign(campaign), opened)
        if as_json:
            print_json(found.document(baseline=baseline, everything=everything))
        else:
            show(found, baseline, notes=notes, everything=everything)


def show(
    found: CampaignResults, baseline: str | None = None, *, notes: bool = False, everything: bool = False
) -> None:
    """Print the conclusion of a campaign; with ``everything``, ``notes`` or a ``baseline`` the whole report."""
    from fslab.report import conclusion_terminal, terminal

    report = found.report(baseline=baseline, everything=everything)
    if everything or notes or baseline is not None:
        terminal.show(report, console(), notes=notes)
    else:
        conclusion_terminal.show(report, found.conclusion(), console())


def _done(row: dict[str, Any]) -> str:
    """Return ``10 of 24`` or ``26 of 24–240``; only the number of trials if the campaign is finished.

    A finished campaign has fewer trials than planned if it did not need the others, or they were not possible.
    """
    if row["status"] == "finished":
        return str(row["trials"])
    most = f"–{row['planned_most']}" if row["planned_most"] > row["planned"] else ""
    return f"{row['trials']} of {row['planned']}{most}"


def _show_campaigns(store: Store, *, as_json: bool) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from fslab.api.study_campaigns import list_campaigns
    from fslab.report.terminal_width import wrapped

    rows: list[dict[str, Any]] = [
        {
            "campaign": campaign.id,
            "name": campaign.name,
            "note": campaign.note,
            "study": campaign.study_id,
            "status": campaign.status.value.replace("_", " "),
            "trials": trials,
            "planned": campaign.planned()[0],
            "planned_most": campaign.planned()[1],
            "title": campaign.study_title,
        }
        for campaign, trials in list_campaigns(store)
    ]
    if as_json:
        print_json(rows)
        return
    texts = [{**row, "trials": _done(row), "name": row["name"] or ""} for row in rows]
    columns = ["campaign", "study", "status", "trials", *["name"] * any(row["name"] for row in rows)]
    # Titles are shown only if nothing needs to be folded: the study's name says nearly the same.
    shown = ((title, *(str(each[title]) for each in texts)) for title in (*columns, "title"))
    widths = [max(map(cell_len, column)) for column in shown]
    if sum(widths) + 2 * len(columns) <= console().width:
        columns.append("title")
    elif sum(widths[: len(columns)]) + len(columns) > console().width:  # no column would be readable
        for each in texts:
            told = {**each, "trials": f"{each['trials']} trials"}
            line = " · ".join(str(told[title]) for title in columns if told[title])
            console().print(wrapped(line, console().width))
        return
    table = Table(box=None, pad_edge=False)
    for title in columns:
        table.add_column(title, no_wrap=title == "campaign", overflow="fold")
    for each in texts:
        table.add_row(*(Text(str(each[title]), style="dim" if title == "title" else "") for title in columns))
    console().print(table)


def export(
    campaign: CampaignArgument = "last",
    *,
    form: Format | None = None,
    output: Path | None = None,
    store: StoreOption = None,
) -> None:
    """Export every trial of a campaign: its stack, workload, figures, warnings and provenance.

    Parameters:
        form --format -f: csv, parquet: one row per figure. Default: by the ending of --output, else json.
        output --output -o: Write to this file, replacing it; '-', the default, is standard output. Parquet needs a
            file.
    """
    from fslab.store.export import export as write

    output = None if str(output) == "-" else output
    form = form or _format_of(output)
    if form is Format.PARQUET and output is None:
        raise UsageError(
            "Parquet needs a file", where="--format parquet", hint="name one: --output trials.parquet"
        )
    with open_store(store) as opened:
        write(opened, opened.campaign(campaign).id, form, output)


def _format_of(output: Path | None) -> Format:
    """Return the format for the suffix of the output file; JSON if the suffix is unknown."""
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    return Format(suffix) if suffix in set(Format) else Format.JSON
