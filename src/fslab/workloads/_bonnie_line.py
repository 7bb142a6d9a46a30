"""The line of figures that bonnie++ prints, format 1.98. Shared by nothing but ``bonnie``."""

import re

from fslab.errors import ToolOutputError
from fslab.system.tool_messages import one_line
from fslab.workloads import ToolOutput

FORMAT = "1.98"
_FIELDS = 50
_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def fields(output: ToolOutput) -> list[str]:
    lines = output.stdout.strip().splitlines()
    fields = lines[-1].split(",") if lines else []
    if len(fields) != _FIELDS or fields[0] != FORMAT:
        told = one_line(output.stderr, output.stdout) or "nothing"
        raise ToolOutputError(f"bonnie++ printed no CSV line of format {FORMAT}; it printed: {told}")
    return fields


def number(field: str, test: str) -> float | None:
    if not field or field.startswith("+"):
        return None
    try:
        return float(field)
    except ValueError as error:
        raise ToolOutputError(f"bonnie++ reports '{field}' for {test}, which is not a number") from error


def latency_ns(field: str, test: str) -> float | None:
    match = re.fullmatch(r"(\d+)(us|ms|s)", field)
    if field and match is None:
        raise ToolOutputError(f"bonnie++ reports '{field}' as the latency of {test}, which is not a time")
    return float(match[1]) * _NS[match[2]] if match else None
