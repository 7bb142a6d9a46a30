"""What tools themselves say to the input that they would get (``Workload.checks``), before anything is made."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from fslab.cell import Cache, Cell
from fslab.errors import ToolTimeoutError, UsageError
from fslab.machine.planned_machine import here
from fslab.storage.parsed_stack import parsed_stack
from fslab.system import proc, untrusted_files
from fslab.system.temporary import TemporaryDirectory
from fslab.system.tool_messages import one_line
from fslab.workloads import Check, Job, parsed

LIMIT_S = 20.0
_AT_ONCE = 8


def refused_by_tools(cells: Sequence[Cell]) -> list[UsageError]:
    """Return what the installed tools refuse, each different input once, with the tool's own sentence.

    The programs of a guest are the host's: one answer is enough. Nothing is asked for a described machine.
    """
    asked = {} if here().described else {check: cell for cell in cells for check in _checks(cell)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(_refusal, asked))
    found = zip(asked.items(), answers, strict=True)
    errors = [_error(cell, check, told) for (check, cell), told in found if told is not None]
    return list({str(error): error for error in errors}.values())


def _checks(cell: Cell) -> list[Check]:
    filesystem = parsed_stack(cell.stack).filesystem
    raw = filesystem is not None and not filesystem.mounted
    job = Job(
        directory=Path(), scratch=Path(), seed=1, cold=cell.cache is Cache.COLD,
        device=Path("device") if raw else None,
    )  # fmt: skip
    return [check for check in parsed(cell.workload).checks(job) if here().has_program(check.argv[0])]


@lru_cache(maxsize=1024)
def _refusal(check: Check) -> tuple[str, str] | None:
    """Return the output and the errors of a tool that refuses its input. It runs in a directory of its own."""
    with TemporaryDirectory("check") as made:
        if check.file is not None:
            untrusted_files.write_new(made.path / check.file, check.text.encode())
        try:
            done = proc.run(check.argv, cwd=made.path, timeout_s=LIMIT_S, check=False)
        except ToolTimeoutError as error:
            return "", error.what
    # Too old for this check: then the trial shows what it refuses.
    too_old = f"unrecognized option '{check.argv[1]}'" in done.stderr
    if done.returncode == 0 or too_old:
        return None
    return (
        done.stdout,
        done.stderr if done.returncode > 0 else f"{done.stderr}ended by signal {-done.returncode}",
    )


def _error(cell: Cell, check: Check, told: tuple[str, str]) -> UsageError:
    output, errors = told
    place = parsed(cell.workload).place_of(f"{output}\n{errors}")
    return UsageError(
        f"{check.argv[0]} refuses it: {one_line(errors, output) or 'it does not say why'}",
        where=place or f"workload '{cell.workload.name}'",
        hint="correct it; nothing was made or changed",
    )
