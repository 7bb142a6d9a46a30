"""Reads the output of a tool and its figures. The output is untrusted: a link, a pipe, gigabytes, or not parseable.

Output that cannot be read fails its trial, never the campaign.
"""

import errno
from typing import Any

from fslab.errors import FslabError, NoSpaceError, ToolOutputError, UnsupportedError
from fslab.system import proc, signals, untrusted_files
from fslab.tracing import figures
from fslab.units import format_size
from fslab.workloads import Commands, ParsedWorkload, Reading, ToolOutput

LOG_LIMIT_BYTES = 256 << 20  # about six million operations
LIMIT_BYTES = 64 << 20  # of one report file; the longest one known has 3 MiB
READ_LIMIT_S = 60.0


def output(done: proc.Completed, commands: Commands, scratch: int) -> ToolOutput:
    """Return the streams and report files of a run. ``scratch``: a descriptor of the directory given to the tool.

    ToolOutputError if a report is not a regular file in that directory, or exceeds the limit.
    """
    files = {name: text for name in commands.outputs if (text := report(name, scratch)) is not None}
    return ToolOutput(stdout=done.stdout, stderr=done.stderr, files=files, duration_s=done.duration_s)


def report(name: str, scratch: int, *, limit_bytes: int | None = None) -> str | None:
    """Return the text of one report file; None if it does not exist. ToolOutputError as for ``output``."""
    limit = LIMIT_BYTES if limit_bytes is None else limit_bytes
    try:
        return untrusted_files.read(name, limit_bytes=limit, beneath=scratch).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        why = {
            errno.ELOOP: "the tool replaced its report file with a symbolic link, which is not followed",
            errno.EFBIG: f"the tool's report file is larger than {format_size(limit)}",
        }
        what = why.get(error.errno or 0, f"the tool's report file cannot be read: {error.strerror or error}")
        raise ToolOutputError(what, where=name) from error


def operations(name: str, scratch: int) -> list[tuple[float, float]] | None:
    """Return when each operation ended and how long it took, in seconds; None if the tool has logged none.

    ToolOutputError as for ``output``, or if the file is no such log.
    """
    text = report(name, scratch, limit_bytes=LOG_LIMIT_BYTES)
    try:
        return list(figures.logged_operations(text.splitlines())) if text else None
    except ValueError as error:
        raise ToolOutputError("is not a log of operations", where=name) from error


def reading(workload: ParsedWorkload[Any], done: proc.Completed, output: ToolOutput) -> Reading:
    """Return the tool's figures. If the tool failed, raise why: NoSpaceError or UnsupportedError if the workload finds
    that in the output, else the error for its exit status. ToolOutputError if that takes more than ``READ_LIMIT_S``: a
    study can say how to find figures, and a plug-in has its own parser."""
    what = f"{workload.tool.name}'s output was not read within {READ_LIMIT_S:.0f} s of CPU time"
    with signals.limited(
        READ_LIMIT_S, ToolOutputError(what, hint="if metrics have a 'pattern', simplify it")
    ):
        return _reading(workload, done, output)


def _reading(workload: ParsedWorkload[Any], done: proc.Completed, output: ToolOutput) -> Reading:
    if done.returncode == 0:
        return workload.read(output)
    try:
        workload.read(output)
    except (NoSpaceError, UnsupportedError):
        raise
    except FslabError as error:
        raise proc.failed(done) from error
    raise proc.failed(done)
