"""What a program printed: whether it reports a full disk or a shortage, and all of it on one line for a message. Pure.

The sentence of the line that says why must not be cut off.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile

from fslab.errors import FULL_DISK, SHORTAGE

FIRST, LAST = 3, 5  # lines
LONGEST = 300  # characters of a line
PLACES = 3  # of a traceback
_ERROR = re.compile(
    r"error|fail|fatal|panic|abort|invalid|illegal|\bbad\b|wrong|unknown|unsupported|missing|denied|refused|locked"
    r"|cannot|can't|could not|unable|must |exceed|no such|not (?:supported|found|allowed|permitted|enough)"
    r"|too (?:small|large|big|long|many|few)",
    re.IGNORECASE,
)
# Programs run in the C locale. Those written in Go have messages of their own, in lower case.
_FULL_DISK = re.compile("|".join(map(os.strerror, FULL_DISK)), re.IGNORECASE)
_OF_SHORTAGE = ("can't allocate memory", "memory allocation failed", "out of memory", "malloc failed")
_SHORTAGE = re.compile("|".join((*map(os.strerror, SHORTAGE), *_OF_SHORTAGE)), re.IGNORECASE)
_TRACEBACK, _PLACE = "Traceback (most recent call last):", re.compile(r'\s+File "(?:.*/)?(.*)"(, line .*)')
_USAGE = re.compile(r"\s*usage:", re.IGNORECASE)


def one_line(*outputs: str) -> str:
    """Return what the outputs say, one after the other, with `` | `` between their lines.

    A usage text is left out if there is anything else. Of a traceback, the exception and its place are kept; of a long
    output, the first and the last lines, and between them the first line that reports an error.
    """
    lines_of = (_without_tracebacks(output.splitlines()) for output in outputs)
    texts = [[line.strip()[:LONGEST] for line in lines if line.strip()] for lines in lines_of]
    said = [list(takewhile(lambda line: not _USAGE.match(line), lines)) for lines in texts]
    return " | ".join(line for lines in (said if any(said) else texts) for line in _shortened(lines))


def _without_tracebacks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines; of a traceback of Python only the exception, with the last of the places that it came through:
    ``OSError: why (in app.py, line 9, in drive; _process.py, line 40, in main)``."""
    places: deque[str] | None = None
    for line in lines:
        if line == _TRACEBACK:
            places = deque(maxlen=PLACES)
        elif places is None or not line.startswith((" ", "\t")):
            yield f"{line} (in {'; '.join(reversed(places))})" if places else line
            places = None
        elif found := _PLACE.match(line):
            places.append(f"{found[1]}{found[2]}")


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= FIRST + LAST:
        return lines
    reason = [line for line in lines[FIRST:-LAST] if _ERROR.search(line)][:1]
    return [*lines[:FIRST], "…", *(line for each in reason for line in (each, "…")), *lines[-LAST:]]


def reports_full_disk(*outputs: str) -> bool:
    """Return whether one of the outputs contains the system's message for a full disk."""
    return any(map(_FULL_DISK.search, outputs))


def reports_shortage(*outputs: str) -> bool:
    """Return whether one of the outputs says that memory or descriptors ran out, whatever the data."""
    return any(map(_SHORTAGE.search, outputs))
