"""The user's own command: prepared, timed and cleaned up like any tool, with metrics read from its output.

Builds the commands; starts no process. The commands run as the user who runs fslab, which is root for most stacks, and
without confinement, or as a user that the study names. Such a study therefore runs only with consent
(``Workload.own_commands``).
"""

import re
from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Any, ClassVar

from fslab.errors import SIZES_HINT, NoSpaceError, ToolOutputError
from fslab.system.tool_messages import one_line, reports_full_disk
from fslab.system.tools import Tool
from fslab.system.users import PRLIMIT, SETPRIV
from fslab.trial_record import Metric
from fslab.units import Direction, Unit, parse_duration, parse_size
from fslab.workloads import Commands, Job, Reading, RunsAs, ToolOutput, Workload
from fslab.workloads._command_parameters import CommandParameters, filled, split

_FLUSHED = '"$@" && sync -f .'
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?![\d,])")


class OwnCommand(Workload[CommandParameters]):
    """Always has the metric ``time``, besides the metrics that the study declares. A time says nothing of the stack if
    the command ends after a fixed time, as it may with metrics: it has no direction, unless the study asks for it."""

    summary = "your own command, timed, with metrics read from its output"
    tools: ClassVar[tuple[Tool, ...]] = ()
    Parameters = CommandParameters

    def metrics(self, parameters: CommandParameters) -> tuple[Metric, ...]:
        """Return the declared metrics, and the time of the command."""
        better = Direction.LOWER if _ranks_time(parameters) else Direction.NEITHER
        return (*parameters.declared, Metric(name="time", unit=Unit.SECONDS, better=better))

    def headline(self, parameters: CommandParameters) -> tuple[str, ...]:
        """Return the first three declared metrics, and the time if it ranks the stacks."""
        named = tuple(metric.name for metric in parameters.declared[:3])
        return named if named and not _ranks_time(parameters) else (*named, "time")

    def tools_of(self, parameters: CommandParameters) -> tuple[Tool, ...]:
        return (*((SETPRIV,) if parameters.user else ()), *((PRLIMIT,) if parameters.limits else ()))

    def runs_as(self, parameters: CommandParameters) -> RunsAs:
        return RunsAs(user=parameters.user, limits=parameters.limits)

    def commands(self, parameters: CommandParameters, job: Job) -> Commands:
        """Return the commands with the placeholders filled in."""
        name = f"files/{parameters.file}"
        values = {
            "{directory}": str(job.directory),
            "{file}": str(job.scratch / name),
            "{seed}": str(job.seed),
        }
        if parameters.runtime is not None:
            values["{runtime}"] = str(ceil(job.clock_s(parse_duration(parameters.runtime))))

        def several(text: str) -> tuple[tuple[str, ...], ...]:
            return tuple(filled(words, values) for words in split(text))

        (run,) = several(parameters.run)
        return Commands(
            prepare=several(parameters.prepare),
            run=("sh", "-c", _FLUSHED, "fslab", *run) if parameters.sync else run,
            cleanup=several(parameters.cleanup),
            inputs={} if parameters.file_text is None else {name: parameters.file_text},
        )

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with this run time if the command has a place for it."""
        return {"runtime": runtime, **raw} if "{runtime}" in str(raw.get("run")) else dict(raw)

    def why_whole(self, parameters: CommandParameters) -> str | None:
        """Return why not, unless the study says that it can."""
        return (
            None
            if parameters.interruptible
            else "a command is measured in slices only with 'interruptible: true'"
        )

    def own_commands(self, parameters: CommandParameters, job: Job) -> tuple[tuple[str, ...], ...]:
        commands = self.commands(parameters, job)
        return (*commands.prepare, commands.run, *commands.cleanup)

    def read(self, parameters: CommandParameters, output: ToolOutput) -> Reading:
        """Return the time, and each metric's last match. ToolOutputError if a metric has no match. To find one may take
        as long as the study's pattern likes."""
        if reports_full_disk(output.stderr, output.stdout):
            raise NoSpaceError("the command: no space left on device", hint=SIZES_HINT)
        return Reading(
            metrics={
                "time": output.duration_s,
                **{metric.name: _figure(parameters, metric.name, output) for metric in parameters.declared},
            },
            measured_s=output.duration_s,
            flushed=True if parameters.sync else None,
            drops=None,
        )

    def space_bytes(self, parameters: CommandParameters) -> int:
        return parse_size(parameters.space)

    def expected_s(self, parameters: CommandParameters) -> float:
        return parse_duration(parameters.takes)


def _ranks_time(parameters: CommandParameters) -> bool:
    return parameters.rank_time or not (parameters.declared or "{runtime}" in parameters.run)


def _figure(parameters: CommandParameters, name: str, output: ToolOutput) -> float | None:
    if output.figures is not None:
        return output.figures.get(name)
    pattern = parameters.pattern(name)
    # Only the last one is kept: of a long output, all of them would take gigabytes.
    found = deque(pattern.finditer(output.stdout), 1) or deque(pattern.finditer(output.stderr), 1)
    if not found:
        told = one_line(output.stdout, output.stderr) or "nothing"
        raise ToolOutputError(f"metric '{name}': no match of '{pattern.pattern}' in the output: {told}")
    written = found[0][1] or ""
    number = written.rstrip(",")
    try:
        return float(number.replace(",", "") if _THOUSANDS.match(number) else number) * parameters.factor(
            name
        )
    except ValueError as error:
        hint = "a comma may only separate thousands: run the command with LC_ALL=C" if "," in number else None
        raise ToolOutputError(f"metric '{name}': '{written}' is not a number", hint=hint) from error
