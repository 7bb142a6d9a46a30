"""What a program printed: whether it reports a full disk, and all of it on one line for a message. Pure.

The sentence of the line that says why must not be cut off.
"""

import os
import re

from fslab.errors import FULL_DISK

FIRST, LAST = 3, 5  # lines
LONGEST = 300  # characters of a line
_ERROR = re.compile(
    r"error|fail|fatal|invalid|illegal|cannot|can't|unable|must |too (?:small|large|many)", re.IGNORECASE
)
# Programs run in the C locale. Those written in Go have messages of their own, in lower case.
_FULL_DISK = re.compile("|".join(map(os.strerror, FULL_DISK)), re.IGNORECASE)
_USAGE = re.compile(r"\s*usage:", re.IGNORECASE)


def one_line(*outputs: str) -> str:
    """Return the first output that is not empty, with `` | `` between its lines.

    A usage text after a message is left out. Of a long output, the first and the last lines are kept, and between them
    the first line that reports an error.
    """
    text = next((output for output in outputs if output.strip()), "")
    lines = [line.strip()[:LONGEST] for line in text.splitlines() if line.strip()]
    usage = next((number for number, line in enumerate(lines) if _USAGE.match(line)), None)
    lines = lines[: usage or None]
    if len(lines) > FIRST + LAST:
        reason = [line for line in lines[FIRST:-LAST] if _ERROR.search(line)][:1]
        lines = [*lines[:FIRST], "…", *(line for each in reason for line in (each, "…")), *lines[-LAST:]]
    return " | ".join(lines)


def reports_full_disk(*outputs: str) -> bool:
    """Return whether one of the outputs contains the system's message for a full disk."""
    return any(map(_FULL_DISK.search, outputs))
