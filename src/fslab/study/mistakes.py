"""Collects every mistake of a study, so that one run of fslab shows them all, each with its place.

It only collects and words; what is a mistake is decided by the modules that read and check.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from fslab.errors import NEAR, StudyError

Path = tuple[str | int, ...]

SHORT_LIST = 10
_NEAREST = re.compile(r":? (did you mean '[^']*'\?)( known: .*)?$", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class SourcePosition:
    """Where something was written: a line of the file, or the ``rank``-th --set (which comes after it)."""

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
        # What was written may hold line ends and terminal codes; a mistake is one harmless line.
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


MOST = 500


@dataclass(kw_only=True, slots=True)
class Mistakes:
    """All mistakes found so far. The same one (reached by several combinations) is kept once."""

    found: list[Mistake] = field(default_factory=list)

    def add(self, place: SourcePosition, path: Path, what: str) -> None:
        mistake = Mistake(place=place, path=path, what=what)
        if not self.many and mistake not in self.found:
            self.found.append(mistake)

    @property
    def many(self) -> bool:
        """Whether there are so many that more are left out."""
        return len(self.found) >= MOST

    def any_at(self, path: Path) -> bool:
        """Whether something is known to be wrong at ``path`` or below it."""
        return any(mistake.path[: len(path)] == path for mistake in self.found)

    def sorted(self) -> list[Mistake]:
        """In the order of the lines, then as found."""
        return sorted(self.found, key=lambda mistake: mistake.place)

    def raise_if_any(self, name: str) -> None:
        """StudyError with all mistakes, one to a line."""
        if not self.found:
            return
        count = "1 mistake" if len(self.found) == 1 else f"{len(self.found)} mistakes"
        lines = "\n".join(f"  {mistake}" for mistake in self.sorted())
        lines += "\n  … and more" * self.many
        raise StudyError(f"{count} in the study {name}:\n{lines}")


def dotted(path: Path) -> str:
    """``stacks.fs.mount_options.2``: the key, with the items of a list numbered from 1, as claims are."""
    return ".".join(str(part + 1 if isinstance(part, int) else part) for part in path)


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` is most likely a misspelling of, if there is one."""
    close = get_close_matches(name, sorted(known), n=1, cutoff=NEAR)
    return close[0] if close else None


def brief(message: str) -> str:
    """A message made with ``errors.nearest``, less a long list of known names where a near one was found."""

    def shorter(match: re.Match[str]) -> str:
        known = match[2] or ""
        return f" — {match[1]}{known if known.count(',') < SHORT_LIST else ''}"

    return _NEAREST.sub(shorter, message)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`` — did you mean 'ext4'?``, or the known names when none is near."""
    names = sorted(known)
    near = meant(name, names)
    if near is not None:
        return f" — did you mean '{near}'?"
    return f" — known: {', '.join(names)}" if names else " — there are none"
