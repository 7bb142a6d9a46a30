"""Asks before anything is executed that a study brings, because it has all rights of the user who runs fslab.

Also defines the options ``--wipe`` and ``--allow-commands``. ``--wipe`` is needed for stored campaigns too, because the
store may contain campaigns of other users.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fslab import names
from fslab.cli.common import say
from fslab.errors import UsageError
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.campaign.consent import Consent, Executed


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """What the user allows on the command line.

    Parameters:
        wipe DEVICE: Allow overwriting DEVICE, which the study must name, although it contains data or is too large to
            be read completely within a minute. A stored campaign overwrites only devices given here. Repeatable.
        allow_commands: Run what the study brings without asking: its commands and scripts (tool: command), and kernels
            and modules of guests. They are not confined; 'fslab plan' shows them.
    """

    wipe: list[str] | None = None
    allow_commands: bool = False

    @property
    def devices(self) -> frozenset[str]:
        """The devices that may be overwritten."""
        return frozenset(self.wipe or ())


def of_user(*, allowed: bool = False, kernel: str | None = None, modules: str | None = None) -> Consent:
    """Return a consent that shows what the study brings and asks on a terminal, unless it is ``allowed``.

    ``kernel``, ``modules``: what the user named on this command line needs no further consent.
    """
    from fslab.campaign.consent import Consent, Executed, Kind

    typed = {
        Executed(kind=kind, what=str(Path(path).expanduser().absolute()))
        for kind, path in ((Kind.KERNEL, kernel), (Kind.MODULES, modules))
        if path is not None
    }
    return Consent(ask=_say if allowed else _ask, given=typed)


def lines(found: Sequence[Executed], columns: int, *, texts: bool = True) -> Iterator[str]:
    """Yield all that is executed, numbered, with every character visible and no line longer than ``columns``.

    ``texts``: with the text of scripts.
    """
    user = "root, unconfined" if os.geteuid() == 0 else "this user, unconfined"
    yield f"The study brings {counted(len(found), 'program')}, executed as {user}:"
    for number, each in enumerate(found, start=1):
        yield from _wrapped(f"{number}/{len(found)} {each.kind}: {names.visible(each.what)}", columns, "    ")
        written = [] if each.text is None else each.text.split("\n")
        if not texts:
            written = []
        for line, text in enumerate(written, start=1):
            yield from _wrapped(f"{line:6}/{len(written)} | {names.visible(text)}", columns, " " * 8)
    yield f"end of the {counted(len(found), 'program')}"


def _say(found: Sequence[Executed]) -> None:
    for line in lines(found, _columns(), texts=False):
        say(line, err=True)


def _ask(found: Sequence[Executed]) -> None:
    """Show everything, page by page on a terminal, and ask. Raises UsageError unless the user agrees on a terminal."""
    shown = list(lines(found, _columns()))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        for line in shown:
            say(line, err=True)
    elif _paged(shown, shutil.get_terminal_size().lines) and typer.confirm("Run them?", err=True):
        return
    raise UsageError(
        "the programs that the study brings were not allowed",
        where="tool: command, after_mount, kernel, modules",
        hint="read them above; if you trust them: --allow-commands",
    )


def _paged(shown: Sequence[str], rows: int) -> bool:
    """Print lines with a pause before any of them leaves the screen. Return False if the user refuses to read on."""
    page = max(1, rows - 2)
    for start in range(0, len(shown), page):
        if start and not typer.confirm(
            f"line {start} of {len(shown)}: show the next lines?", default=True, err=True
        ):
            return False
        for line in shown[start : start + page]:
            say(line, err=True)
    return True


def _columns() -> int:
    """Return the columns of the terminal; no limit for a file or a pipe."""
    return max(40, shutil.get_terminal_size().columns - 1) if sys.stderr.isatty() else sys.maxsize


def _wrapped(text: str, columns: int, indent: str) -> Iterator[str]:
    """Yield a text in lines that a terminal shows as one row each."""
    row, width = "", 0
    for character in text:
        wide = names.columns_of(character)
        if width + wide > columns:
            yield row
            row, width = indent, len(indent)
        row, width = row + character, width + wide
    yield row
