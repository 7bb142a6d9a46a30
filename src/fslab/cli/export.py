"""``fslab export``: export a campaign's trials as CSV, JSON or Parquet."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fslab.cli.common import CampaignArgument, StoreOption


class ExportFormat(StrEnum):
    """The formats of an export."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def export(
    campaign: CampaignArgument = "last",
    form: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, parquet: one row per figure. Default: by the ending of --output, else json.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file, replacing it; default: standard output. Parquet needs a file.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Export every trial of a campaign: its stack, workload, figures, warnings and provenance."""
    from fslab.errors import UsageError
    from fslab.store.export import export as write
    from fslab.store.store import Store

    form = form or _format_of(output)
    if form is ExportFormat.PARQUET and output is None:
        raise UsageError(
            "Parquet needs a file", where="--format parquet", hint="name one: --output trials.parquet"
        )
    with Store.open(store, create=False) as opened:
        write(opened, opened.campaign(campaign).id, form.value, output)


def _format_of(output: Path | None) -> ExportFormat:
    """Return the format for the suffix of the output file; JSON if the suffix is unknown."""
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    return ExportFormat(suffix) if suffix in set(ExportFormat) else ExportFormat.JSON
