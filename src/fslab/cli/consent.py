"""Asks before anything is executed that a study brings, because it has all rights of the user who runs fslab.

Also defines the options ``--wipe`` and ``--allow-commands``. ``--wipe`` is needed for stored campaigns too, because the
store may contain campaigns of other users.
"""

from __future__ import annotations

import os
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

_USUAL = os.terminal_size((80, 24))  # of a terminal that does not say its size
_QUESTION_COLUMNS = 64  # of the longest question


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """What the user allows on the command line.

    Parameters:
        wipe DEVICE: Allow overwriting DEVICE, which the study must name, although it contains data or is too large to
            be read completely within a minute. A stored campaign overwrites only devices given here. Repeatable.
        allow_commands: Run what the study brings without asking: its commands and scripts (tool: command), and kernels
            and modules of guests. They are not confined; 'fslab plan' shows them. Not for a stored campaign on a
            server, which other users can have changed.
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
    return Consent(ask=_say if allowed else _ask, given=typed, unseen=allowed)


def lines(found: Sequence[Executed], columns: int, *, texts: bool = True) -> Iterator[str]:
    """Yield all that is executed, numbered, with every character visible and no line longer than ``columns``.

    ``texts``: with the text of scripts.
    """
    user = "root, unconfined" if os.geteuid() == 0 else "this user, unconfined"
    yield from _wrapped(f"The study brings {counted(len(found), 'program')}, executed as {user}:", columns)
    for number, each in enumerate(found, start=1):
        yield from _wrapped(f"{number}/{len(found)} {each.kind}: {names.visible(each.what)}", columns, 4)
        written = each.text.split("\n") if texts and each.text is not None else []
        for line, text in enumerate(written, start=1):
            yield from _wrapped(f"{line:6}/{len(written)} | {names.visible(text)}", columns, 8)
    yield from _wrapped(f"end of the {counted(len(found), 'program')}", columns)


def _say(found: Sequence[Executed]) -> None:
    for line in lines(found, _columns(_terminal()), texts=False):
        say(line, err=True)


def _ask(found: Sequence[Executed]) -> None:
    """Show everything, page by page on a terminal, and ask. Raises UsageError unless the user agrees on a terminal."""
    terminal = _terminal()
    shown = list(lines(found, _columns(terminal)))
    if terminal is None or not sys.stdin.isatty():
        for line in shown:
            say(line, err=True)
    elif _paged(shown, terminal) and typer.confirm("Run them?", err=True):
        return
    what = "the programs that the study brings were not allowed"
    hint = "read them above; if you trust them: --allow-commands"
    raise UsageError(what, where="tool: command, after_mount, kernel, modules", hint=hint)


def _paged(shown: Sequence[str], terminal: os.terminal_size) -> bool:
    """Print lines with a pause before any of them leaves the screen. Return False if the user refuses to read on."""
    page = max(1, terminal.lines - 1 - -(-_QUESTION_COLUMNS // terminal.columns))
    for start in range(0, len(shown), page):
        if start and not typer.confirm(
            f"line {start} of {len(shown)}: show the next lines?", default=True, err=True
        ):
            return False
        for line in shown[start : start + page]:
            say(line, err=True)
    return True


def _terminal() -> os.terminal_size | None:
    """Return the size of the terminal at standard error; None if there is none. Not by COLUMNS and LINES, which can be
    those of another terminal, and not by standard output, which can be a file."""
    try:
        found = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return None
    return os.terminal_size((found.columns or _USUAL.columns, found.lines or _USUAL.lines))


def _columns(terminal: os.terminal_size | None) -> int:
    """Return how long a line may be; no limit for a file or a pipe."""
    return sys.maxsize if terminal is None else max(2, terminal.columns - 1)


def _wrapped(text: str, columns: int, indent: int = 0) -> Iterator[str]:
    """Yield a text in lines that a terminal shows as one row each. ``indent``: of those after the first."""
    blanks = " " * min(indent, columns // 2)
    row, width = "", 0
    for character in text:
        wide = names.columns_of(character)
        if width + wide > columns:
            yield row
            row, width = blanks, len(blanks)
        row, width = row + character, width + wide
    yield row
