"""Pastes the files that a job file of fio includes into its text, and yields its lines with their places. Pure.

The text is stored with the study: each included file stands between two comments that keep its name and lines.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from fslab.errors import FslabError

_MOST_NESTED = 10
_MOST_CHARACTERS = 1 << 20
BEGIN, END = ";; fslab: from ", ";; fslab: end"
INCLUDE = re.compile(r"\s*include[ \t]+(\S(?:.*\S)?)\s*")


def with_includes(name: str, text: str, read: Callable[[str], str], _nested: int = 0) -> str:
    """Return the text with the files that it includes in their places. ``read`` returns the text of a file by its path
    from the directory of the job file. Raises FslabError, with file and line, for a file that cannot be included."""
    lines: list[str] = []
    characters = 0
    for at, line in enumerate(text.split("\n"), start=1):
        found = INCLUDE.fullmatch(re.split("[;#]", line, maxsplit=1)[0])
        new = [line] if found is None else _included(f"{name}:{at}", name, found[1], read, _nested)
        lines += new
        characters += sum(len(each) + 1 for each in new)
        if characters > _MOST_CHARACTERS:
            raise FslabError(f"{name}: with the files that it includes, it is longer than 1 MiB")
    return "\n".join(lines)


def _included(place: str, name: str, written: str, read: Callable[[str], str], nested: int) -> list[str]:
    if nested == _MOST_NESTED:
        raise FslabError(f"{place}: includes are nested more than {_MOST_NESTED} deep")
    path = str(PurePosixPath(name).parent / written)
    try:
        inner = read(path)
    except FslabError as error:
        what = f"include {written}: {error.what}; put the file there, or paste its lines"
        raise FslabError(f"{place}: {what}") from error
    return [f"{BEGIN}{path}", with_includes(path, inner, read, nested + 1), END]


def placed_lines(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each line, without comments, with its place. A marker of an included file has no place."""
    within = [(name, 0)]
    for line in text.split("\n"):
        if line.startswith(BEGIN):
            within.append((line.removeprefix(BEGIN), 0))
            yield "", BEGIN
            continue
        if line == END and len(within) > 1:
            within.pop()
            within[-1] = (within[-1][0], within[-1][1] + 1)
            yield "", END
            continue
        file, at = within[-1] = (within[-1][0], within[-1][1] + 1)
        kept = re.split("[;#]", line, maxsplit=1)[0].strip(" \t\r")
        if kept:
            yield f"{file}:{at}", kept
