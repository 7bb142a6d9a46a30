"""Options that several verbs share, and how verbs print."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="FSLAB_STORE",
        help="Where results are kept: a file, or a database URL such as postgresql+psycopg://host/name. "
        "Default: fslab/store.sqlite in your data directory.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one value of the study, such as trials=3 or media.fast.size=2g. Repeatable.",
    ),
]
CampaignArgument = Annotated[
    str, typer.Argument(metavar="[CAMPAIGN]", help="Id of a campaign, the beginning of one, or 'last'.")
]


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def console(*, stderr: bool = False) -> Console:
    """A terminal to print to; plain text where the output is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)
