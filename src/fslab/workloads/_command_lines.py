"""Command lines of a study: split into words by a shell's rules, but not run by a shell. Pure."""

import re
import shlex

# Up to the end of a line that is not quoted. Possessive: what was read is not read again in another way.
_COMMAND = re.compile(r"""(?:[^\\'"\n]|\\.|'[^']*+'|"(?:[^"\\]|\\.)*+")++""", re.DOTALL)


def split(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a text, one per line. A quoted string may span lines.

    ValueError: a quote is not closed, or the name of the program is empty.
    """
    if _COMMAND.sub("", text).strip("\n"):
        raise ValueError("a quote is not closed")
    found = [words for each in _COMMAND.findall(text) if (words := tuple(shlex.split(each)))]
    for command in found:
        if not command[0]:
            raise ValueError("a command needs the name of a program")
    return tuple(found)


def filled(words: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    """Return the words with each placeholder replaced, also inside a word. Other braces are not changed."""
    result = []
    for word in words:
        for name, value in values.items():
            word = word.replace(name, value)  # noqa: PLW2901
        result.append(word)
    return tuple(result)
