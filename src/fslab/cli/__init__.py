"""The command line: one file per command. Commands parse arguments, call the library, and print.

Importing this package must stay cheap, so that ``fslab --help`` answers immediately: a command imports what it needs
when it runs.
"""

import logging
import sys
from functools import cached_property
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fslab import names
from fslab.cli import (
    campaigns,
    claims,
    clean,
    compare,
    doctor,
    explain,
    export,
    features,
    fleet,
    history,
    listing,
    plan,
    replicate,
    report,
    results,
    run,
    schema,
    serve,
    stores,
)
from fslab.cli.option_groups import App


class _CrashGroup(TyperGroup):
    """``fslab crash``. Its commands are loaded when it is used: their options are the fields of requests."""

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        from fslab.cli import crash

        found: Any = typer.main.get_command(crash.app)
        return dict(found.commands)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self._loaded)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return self._loaded.get(cmd_name)


app = App(
    name="fslab",
    help="Which Linux file system, with which options, suits your work and machine: with what confidence, and why.",
    epilog="Start with: fslab doctor. Then, as root: fslab run quick; without root: fslab run here.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("doctor", short_help="Show what can be measured here, and what is missing.")(doctor.doctor)
app.command("list", short_help="List studies, file systems, media, workloads and others.")(listing.listing)
app.command("plan", short_help="Show what a study would do; changes nothing.")(plan.plan)
app.command("run", short_help="Run a study, or finish an interrupted one.")(run.run)
app.command("results", short_help="Show a campaign's results.")(results.results)
app.command("report", short_help="Write an HTML report, or tables for a paper.", epilog=report.EPILOG)(
    report.report
)
app.command("serve", short_help="Serve the reports of the store to a browser, live.", epilog=serve.EPILOG)(
    serve.serve
)
app.command("compare", short_help="Compare campaigns, kernels, machines or stacks.", epilog=compare.EPILOG)(
    compare.compare
)
app.command(
    "explain", short_help="Show why stacks differ: kernel counters, ablation.", epilog=explain.EPILOG
)(explain.explain)
app.command(
    "history", short_help="Show a study over time, with its changes of level.", epilog=history.EPILOG
)(history.history)
app.add_typer(fleet.app, name="fleet", short_help="Run a study on many machines, and combine results.")
app.command("claims", short_help="Check claims against published and measured data.", epilog=claims.EPILOG)(
    claims.claims
)
app.command(
    "replicate", short_help="Write the replication page of a published study.", epilog=replicate.EPILOG
)(replicate.replicate)
app.command("export", short_help="Export trials as JSON, CSV or Parquet.")(export.export)
app.command("clean", short_help="Remove what a killed run left behind.")(clean.clean)
app.command("features", short_help="Test what file systems support, on scratch volumes.")(features.features)
app.add_typer(
    typer.Typer(
        cls=_CrashGroup,
        no_args_is_help=True,
        help="Make, check and replay crash states: disk contents after a power cut.",
    ),
    name="crash",
    short_help="Make, check and replay crash states.",
)
app.command("name", short_help="Give a campaign a name.")(campaigns.name)
app.command("note", short_help="Store a note with a campaign, or show it.")(campaigns.note)
app.command("delete", short_help="Delete campaigns with their trials.")(campaigns.delete)
app.add_typer(stores.app, name="store", short_help="Copy campaigns between stores; check a store.")
app.command("schema", short_help="Print the JSON Schema of study files.")(schema.schema)


def _print_version(wanted: bool) -> None:
    if wanted:
        from fslab import __version__

        typer.echo(f"fslab {__version__}")
        raise typer.Exit


class _Shown(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return names.shown(super().format(record))


@app.callback()
def main(
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help="Print each command to standard error as it is run; -vv: debug messages too.",
        ),
    ] = 0,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    del version
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Shown("%(message)s"))
    logging.getLogger("fslab").setLevel(level)
