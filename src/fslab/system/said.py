"""What a program printed, on one line for a message: the sentence that says why must not be cut off. Pure."""

import re

FIRST, LAST = 3, 5  # lines
LONGEST = 300  # characters of a line
_ERROR = re.compile(
    r"error|fail|fatal|invalid|illegal|cannot|can't|unable|must |too (?:small|large|many)", re.IGNORECASE
)
_USAGE = re.compile(r"\s*usage:", re.IGNORECASE)


def said(*outputs: str) -> str:
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
