"""Asks before a study runs its own commands, because they have all rights of the user who runs fslab.

Also defines the options ``--allow-commands`` and ``--wipe``. ``--wipe`` is needed for stored campaigns too, because the
store may contain campaigns of other users.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab.cli.common import say
from fslab.errors import UsageError

if TYPE_CHECKING:
    from fslab.cell import Cell

AllowOption = Annotated[
    bool,
    typer.Option(
        "--allow-commands",
        help="Run the study's own commands (tool: command) and kernels (on: uml) without asking. They are not "
        "confined; 'fslab plan' shows them.",
    ),
]
WipeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DEVICE",
        help="Allow overwriting DEVICE, which the study must name, although it contains data or is too large to be "
        "read completely within a minute. A stored campaign overwrites only devices given here. Repeatable.",
    ),
]


def typed(kernel: str | None) -> frozenset[str]:
    """Return the programs that the user named on this command line. They need no further consent."""
    return frozenset() if kernel is None else frozenset({str(Path(kernel).expanduser().absolute())})


def check(cells: Iterable[Cell], *, allowed: bool, typed: Collection[str] = ()) -> None:
    """Print the study's own commands, except those ``typed`` by the user. Raises UsageError unless they are ``allowed``
    or the user agrees on a terminal."""
    from fslab.api.agreement import own_commands

    lines = [line for line in own_commands(cells) if line not in {shlex.quote(each) for each in typed}]
    if not lines:
        return
    user = "root, unconfined" if os.geteuid() == 0 else "this user, unconfined"
    say(f"The study runs these commands as {user}:", err=True)
    for line in lines:
        say(f"  {line}", err=True)
    if allowed:
        return
    if sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm("Run them?", err=True):
        return
    raise UsageError(
        "the commands in the study were not allowed", where="tool: command",
        hint="read them above; if you trust them: --allow-commands",
    )  # fmt: skip
