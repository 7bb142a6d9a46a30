"""The command line. Commands parse arguments, call the library, and print.

Importing this package must stay cheap, so that ``fslab --help`` answers immediately: a command imports what it needs
when it runs.
"""

import logging
import sys
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fslab import names, safe_output
from fslab.cli import (
    claims,
    compare,
    doctor,
    explain,
    features,
    fleet,
    listing,
    plan,
    report,
    results,
    run,
    stores,
)
from fslab.cli.option_groups import App
from fslab.errors import UsageError


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


class _Group(TyperGroup):
    """``fslab`` itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse to let root install completion where another user could have put links: typer follows them."""
        if any(each.startswith("--install-completion") for each in args):
            safe_output.check_place(Path.home() / ".bash_completions", "HOME")
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command. Raises BrokenPipeError, for which Click exits with 1, even after a signal."""
        streams = sys.stdout, sys.stderr
        try:
            return super().main(*args, **options)
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):
                sys.stdout, sys.stderr = streams
                raise end.__context__ from None
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run a command. An argument that pydantic refuses is described in the words of study files."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValueError) and hasattr(error.__cause__, "errors"):
                from fslab.study.fields import describe

                error.message = describe(error.__cause__.errors()[0]).removesuffix(".")
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command. UsageError for a study in its place, with what was meant."""
        if self.get_command(ctx, args[0]) is None:
            from fslab import shipped_studies

            if args[0] in shipped_studies():
                raise UsageError(f"'{args[0]}' is a study", hint=f"run it: fslab run {args[0]}")
        return super().resolve_command(ctx, args)


app = App(
    name="fslab",
    cls=_Group,
    help="Which Linux file system, with which options, suits your work and machine: with what confidence, and why.",
    epilog="Start with: fslab doctor. Then, as root: fslab run quick; without root: fslab run here.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add(
    ("doctor", "Show what can be measured here, and what is missing.", doctor.doctor),
    ("list", "List studies, file systems, media, workloads and others.", listing.listing),
    ("plan", "Show what a study would do; changes nothing.", plan.plan),
    ("run", "Run a study, or finish an interrupted one.", run.run),
    ("results", "Show a campaign's results.", results.results),
    ("report", "Write an HTML report, or tables for a paper.", report.report),
    ("serve", "Serve the reports of the store to a browser, live.", report.serve),
    ("compare", "Compare campaigns, kernels, machines or stacks.", compare.compare),
    ("explain", "Show why stacks differ: kernel counters, ablation.", explain.explain),
    ("history", "Show a study over time, with its changes of level.", compare.history),
    ("claims", "Check claims against published and measured data.", claims.claims),
    ("replicate", "Write the replication page of a published study.", claims.replicate),
    ("export", "Export trials as JSON, CSV or Parquet.", results.export),
    ("clean", "Remove what a killed run left behind.", run.clean),
    ("features", "Test what file systems support, on scratch volumes.", features.features),
    ("name", "Give a campaign a name.", stores.name),
    ("note", "Store a note with a campaign, or show it.", stores.note),
    ("delete", "Delete campaigns with their trials.", stores.delete),
    ("schema", "Print the JSON Schema of study files.", listing.schema),
)
app.add_typer(fleet.app, name="fleet", short_help="Run a study on many machines, and combine results.")
app.add_typer(
    typer.Typer(
        cls=_CrashGroup,
        no_args_is_help=True,
        help="Make, check and replay crash states: disk contents after a power cut.",
    ),
    name="crash",
    short_help="Make, check and replay crash states.",
)
app.add_typer(stores.app, name="store", short_help="Copy campaigns between stores; check a store.")


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
