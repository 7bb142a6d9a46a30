"""What a tool left behind, and what its figures are. It may be anything: a link, a pipe, gigabytes, nonsense.

Whatever cannot be read is a failure of that trial, never of the campaign.
"""

import errno
import logging
from typing import Any

from fslab.errors import FslabError, NoSpaceError, ToolOutputError
from fslab.system import proc, untrusted_files
from fslab.units import format_size
from fslab.workloads import Commands, ParsedWorkload, Reading, ToolOutput

log = logging.getLogger("fslab.outcome")
LIMIT_BYTES = 64 << 20  # of one report file; the longest that we know has 3 MiB
# What reading a document raises whose parts are not of the promised kind.
NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def output(done: proc.Completed, commands: Commands, scratch: int) -> ToolOutput:
    """The streams and report files of a run; ``scratch`` is the descriptor of the directory that the tool was given.

    ToolOutputError for a report that is no regular file of that directory, or is beyond the limit.
    """
    files = {name: text for name in commands.outputs if (text := report(name, scratch)) is not None}
    return ToolOutput(stdout=done.stdout, stderr=done.stderr, files=files, duration_s=done.duration_s)


def report(name: str, scratch: int, *, limit_bytes: int | None = None) -> str | None:
    """The text of one report file; None if there is none."""
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


def reading(workload: ParsedWorkload[Any], done: proc.Completed, output: ToolOutput) -> Reading:
    """The tool's figures. Of a tool that failed, the workload may know better than its exit code why."""
    if done.returncode == 0:
        return _read(workload, output)
    try:
        _read(workload, output)
    except NoSpaceError:
        raise
    except FslabError as error:
        raise proc.failed(done) from error
    raise proc.failed(done)


def _read(workload: ParsedWorkload[Any], output: ToolOutput) -> Reading:
    try:
        return workload.read(output)
    except NONSENSE as error:
        log.debug("%s", workload.tool.name, exc_info=True)
        what = (
            f"{workload.tool.name}'s output is not as documented ({type(error).__name__}: {str(error)[:200]})"
        )
        raise ToolOutputError(what) from error
