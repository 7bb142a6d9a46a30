"""Asks before a study runs commands of its own: they can do whatever the user can who runs fslab.

Names as well what a stored campaign writes to: the store need not be the user's own.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fslab import names
from fslab.cli.common import console
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
        help="Allow overwriting DEVICE, one of the study's, although it contains data, or is too large to be read "
        "whole within a minute and so not known to be blank. A stored campaign overwrites no other ones. Repeatable.",
    ),
]


def typed(kernel: str | None) -> frozenset[str]:
    """The programs that the user named on this command line: they need no further consent."""
    return frozenset() if kernel is None else frozenset({str(Path(kernel).expanduser().absolute())})


def own_commands(cells: Iterable[Cell]) -> list[str]:
    """The command lines that a study itself brings, each once; DIRECTORY and FILES stand in for places."""
    from fslab import feasibility
    from fslab.machine.kinds import REGISTRY as MACHINES
    from fslab.workloads import Job, parsed

    job = Job(directory=Path("DIRECTORY"), scratch=Path("FILES"), seed=1)
    found: dict[str, None] = {}
    for cell in cells:  # of a store by hand, two workloads may have one name
        feasibility.check_plugins(cell)
        own = parsed(cell.workload).own_commands(job)
        for argv in (*own, *MACHINES.get(cell.stack.machine.type).own_commands(cell.stack.machine)):
            found[shlex.join(argv)] = None
    return list(found)


def check(cells: Iterable[Cell], *, allowed: bool, typed: Collection[str] = ()) -> None:
    """Print which commands there are, but for those ``typed`` by the user; UsageError unless they are allowed, or a
    person says yes on a terminal."""
    lines = [line for line in own_commands(cells) if line not in {shlex.quote(each) for each in typed}]
    if not lines:
        return
    user = "root, not confined" if os.geteuid() == 0 else "this user, not confined"
    screen = console(stderr=True)
    screen.print(f"The study runs commands of its own, as {user}:")
    for line in lines:
        screen.print(f"  {names.shown(line)}", markup=False, highlight=False, soft_wrap=True)
    if allowed:
        return
    if sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm("Run them?", err=True):
        return
    raise UsageError(
        "the study's own commands were not allowed", where="tool: command",
        hint="read them above; to run them without being asked: --allow-commands",
    )  # fmt: skip


def places(cells: Iterable[Cell]) -> list[str]:
    """What a stored campaign overwrites and where it makes files, as notes; its own images are left out."""
    from fslab.storage.parsed_stack import parsed_stack
    from fslab.system import paths

    found: dict[str, None] = {}
    for cell in cells:
        stack = parsed_stack(cell.stack)
        planned = stack.medium_plan(paths.images())
        for device in planned.wipes:
            found[f"overwrites {names.shown(device)}"] = None
        if not stack.medium.formatted:
            found[f"makes files in {names.shown(str(Path(planned.device).expanduser().absolute()))}"] = None
    return list(found)


def changed_files(settings: dict[str, object]) -> list[str]:
    """Files of a campaign's study whose text is another one now, as notes: what is stored is what runs."""
    from fslab.errors import FslabError
    from fslab.study.inputs import text_of

    files, base = settings.get("files"), settings.get("directory")
    found = []
    for path, text in files.items() if isinstance(files, dict) else ():
        try:
            same = text_of(Path(str(base)) / Path(path).expanduser()) == text
        except FslabError:
            same = False
        if not same:
            found.append(f"'{path}' has changed since the campaign started: its stored text is used")
    return found
