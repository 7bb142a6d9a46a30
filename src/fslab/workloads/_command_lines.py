"""Command lines of a study: split into words as a shell would, never given to one. Pure."""

import shlex


def split(text: str) -> tuple[tuple[str, ...], ...]:
    """The commands of a text, one on each line; a quoted string may span lines. ValueError for an open quote."""
    found: list[tuple[str, ...]] = []
    begun = ""
    for line in text.split("\n"):
        begun += line
        try:
            words = shlex.split(begun)
        except ValueError:
            begun += "\n"
            continue
        found += [tuple(words)] if words else []
        begun = ""
    if begun.strip():
        raise ValueError("a quote is not closed")
    for command in found:
        if not command[0]:
            raise ValueError("a command needs the name of a program")
    return tuple(found)


def filled(words: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    """The words with each placeholder replaced, also within a word; other braces stay."""
    result = []
    for word in words:
        for name, value in values.items():
            word = word.replace(name, value)  # noqa: PLW2901
        result.append(word)
    return tuple(result)
