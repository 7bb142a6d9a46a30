"""The command line: one file per verb. Verbs parse what was typed, call the stages, and print.

Importing this must stay cheap (``fslab --help`` answers at once): a verb imports what it needs when it runs.
"""

import logging
import sys
from typing import Annotated

import typer

from fslab import names
from fslab.cli import (
    campaigns,
    claims,
    clean,
    compare,
    crash,
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

app = typer.Typer(
    name="fslab",
    help="Which Linux file system, with which options, for my work, on my machine: with what confidence, and why.",
    epilog="Start with: fslab doctor, then: fslab run quick. As another user than root: fslab run here.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("doctor", short_help="What can be measured here, and what is missing.")(doctor.doctor)
app.command("list", short_help="Studies, file systems, media, workloads, probes.")(listing.listing)
app.command("plan", short_help="What a study would do; touches nothing.")(plan.plan)
app.command("run", short_help="Run a study, or finish an interrupted one.")(run.run)
app.command("results", short_help="Show a campaign's results.")(results.results)
app.command("report", short_help="One HTML file; tables and figures for a paper.", epilog=report.EPILOG)(
    report.report
)
app.command("serve", short_help="The reports of the store in a browser, live.", epilog=serve.EPILOG)(
    serve.serve
)
app.command("compare", short_help="Two campaigns, kernels, machines or stacks.", epilog=compare.EPILOG)(
    compare.compare
)
app.command(
    "explain", short_help="Why: what the kernel counted, and what a switch changes.", epilog=explain.EPILOG
)(explain.explain)
app.command("history", short_help="A study over time: levels and their changes.", epilog=history.EPILOG)(
    history.history
)
app.add_typer(fleet.app, name="fleet", short_help="One study on many machines.")
app.command("claims", short_help="Check claims against published and measured data.", epilog=claims.EPILOG)(
    claims.claims
)
app.command(
    "replicate", short_help="A publication's claims and what they are here: a page.", epilog=replicate.EPILOG
)(replicate.replicate)
app.command("export", short_help="Trials as JSON, CSV or Parquet.")(export.export)
app.command("clean", short_help="Undo what a killed run left behind.")(clean.clean)
app.command("features", short_help="What file systems can do, tried on scratch volumes.")(features.features)
app.add_typer(crash.app, name="crash", short_help="Crash states: make, judge and replay them.")
app.command("name", short_help="Give a campaign a name.")(campaigns.name)
app.command("note", short_help="Keep a note with a campaign.")(campaigns.note)
app.command("delete", short_help="Delete campaigns with their trials.")(campaigns.delete)
app.add_typer(stores.app, name="store", short_help="Copy campaigns between stores; check a store.")
app.command("schema", short_help="The study language, for editors and people.")(schema.schema)


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
        typer.Option("--verbose", "-v", count=True, help="Show each command as it is run; -vv: everything."),
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
