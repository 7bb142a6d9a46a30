"""``fslab export``: export a campaign's trials as CSV, JSON or Parquet."""

from pathlib import Path

from fslab.cli.common import CampaignArgument, StoreOption, open_store
from fslab.errors import UsageError
from fslab.store.export_format import Format


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
        output --output -o: Write to this file, replacing it; default: standard output. Parquet needs a file.
    """
    from fslab.store.export import export as write

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
