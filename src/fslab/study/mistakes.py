"""Collects the mistakes of a study, so that one run of fslab shows all of them, each with its place.

This module only collects and formats. The modules that read and check decide what is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fslab.errors import StudyError, similar
from fslab.units import counted

if TYPE_CHECKING:
    from fslab.study.source import Node

Path = tuple[str | int, ...]
SHORT_LIST = 10
_NEAREST = re.compile(r":? (did you mean '[^']*'\?)( known: .*)?$", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class SourcePosition:
    """The place of a value: a line of the file (``rank`` 0), or the ``rank``-th ``--set``, which sorts after it."""

    rank: int = 0
    line: int = 0
    origin: str

    def __str__(self) -> str:
        return f"{self.origin}:{self.line}" if self.line else self.origin


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One mistake: where it was written, at which key, and what is wrong."""

    place: SourcePosition
    path: Path
    what: str

    def __str__(self) -> str:
        text = ": ".join(part for part in (str(self.place), dotted(self.path), self.what) if part)
        # The input may contain line ends and terminal control codes: escape them, so that a mistake is one safe line.
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


MOST = 500


@dataclass(kw_only=True, slots=True)
class Mistakes:
    """All mistakes found so far. A mistake that several combinations have is kept once."""

    found: list[Mistake] = field(default_factory=list)

    def add(self, place: SourcePosition, path: Path, what: str) -> None:
        mistake = Mistake(place=place, path=path, what=what)
        if not self.many and mistake not in self.found:
            self.found.append(mistake)

    def at(self, node: Node, what: str) -> None:
        """Add what is wrong with a value of the study."""
        self.add(node.place, node.path, what)

    @property
    def many(self) -> bool:
        """Whether the maximum number is reached; further mistakes are left out."""
        return len(self.found) >= MOST

    def any_at(self, path: Path) -> bool:
        """Return whether a mistake is known at ``path`` or below it."""
        return any(mistake.path[: len(path)] == path for mistake in self.found)

    def raise_if_any(self, name: str) -> None:
        """Raise StudyError with all mistakes, one per line, in the order of the study's lines, then as found."""
        if self.found:
            lines = [f"\n  {mistake}" for mistake in sorted(self.found, key=lambda mistake: mistake.place)]
            lines += ["\n  … and more"] * self.many
            raise StudyError(f"{counted(len(self.found), 'mistake')} in the study {name}:{''.join(lines)}")


def dotted(path: Path) -> str:
    """Return a path as ``stacks.fs.mount_options.2``. Items of a list are numbered from 1, like claims."""
    return ".".join(str(part + 1 if isinstance(part, int) else part) for part in path)


def brief(message: str) -> str:
    """Return a message of ``errors.nearest``, without a long list of known names if it suggests a similar one."""

    def shorter(match: re.Match[str]) -> str:
        known = match[2] or ""
        return f" — {match[1]}{known if known.count(',') < SHORT_LIST else ''}"

    return _NEAREST.sub(shorter, message)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `` — did you mean 'ext4'?``; if none is so similar, those of many names that have a word of this one in
    common (``raid5``: md-raid5), or all."""
    names = sorted(known)
    near = similar(name, names)
    if near is not None:
        return f" — did you mean '{near}'?"
    words = {*re.split("[-_]", name)}
    alike = [each for each in names if words & {*re.split("[-_]", each)}] if len(names) > SHORT_LIST else []
    if alike:
        return f" — similar: {', '.join(alike)}"
    return f" — known: {', '.join(names)}" if names else " — there are none"
