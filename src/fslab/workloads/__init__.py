"""The contract of a workload: one tool, its parameters, its commands, its metrics. One file per tool;
each application (``fslab.applications``) is a tool as well.

A workload never starts a process and never touches a disk. It returns the commands to run (so that ``fslab plan`` can
print them) and parses their output. Contract: prepare → run → cleanup.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from pydantic import ValidationError

from fslab.applications import REGISTRY as APPLICATIONS
from fslab.applications import Application
from fslab.cell import WorkloadSpec
from fslab.errors import SIZES_HINT, FslabError, NoSpaceError, ToolOutputError
from fslab.filesystem_abilities import Needs
from fslab.registry import Registry
from fslab.scaling import Changes
from fslab.system.tool_messages import one_line, reports_full_disk
from fslab.system.tools import Tool
from fslab.trial_record import Metric
from fslab.workloads._contract import BLOCK_BYTES as BLOCK_BYTES
from fslab.workloads._contract import MOST_AT_ONCE as MOST_AT_ONCE
from fslab.workloads._contract import SECTOR_BYTES as SECTOR_BYTES
from fslab.workloads._contract import Check as Check
from fslab.workloads._contract import Commands as Commands
from fslab.workloads._contract import Job as Job
from fslab.workloads._contract import Parameters as Parameters
from fslab.workloads._contract import Reading as Reading
from fslab.workloads._contract import RunsAs as RunsAs
from fslab.workloads._contract import Switchable as Switchable
from fslab.workloads._contract import Text as Text
from fslab.workloads._contract import ToolOutput as ToolOutput
from fslab.workloads._contract import Traits as Traits
from fslab.workloads._contract import check_sectors as check_sectors
from fslab.workloads._contract import flags as flags
from fslab.workloads._contract import is_known as is_known
from fslab.workloads._contract import long_options as long_options
from fslab.workloads._contract import mistake as mistake
from fslab.workloads._contract import nearly_all_flushed as nearly_all_flushed
from fslab.workloads._contract import other_output as other_output
from fslab.workloads._contract import stored_bytes as stored_bytes
from fslab.workloads._contract import text_key as text_key
from fslab.workloads._contract import total as total
from fslab.workloads._contract import why_of as why_of

log = logging.getLogger("fslab.outcome")


# Raised when parts of a document are not of the documented type.
NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
P = TypeVar("P", bound=Parameters)
R = TypeVar("R")
Given = ParamSpec("Given")
DISK_BYTES_PER_S = 200e6  # of a disk whose speed is not known, for the estimate of a plan


class Workload(ABC, Generic[P]):
    """One tool. The registry sets ``name`` from the file's name."""

    name: str
    summary: ClassVar[str]
    tools: ClassVar[tuple[Tool, ...]]
    Parameters: type[P]
    # It cuts the power of its virtual disk or makes it fail: in a guest, the disk's server runs in the guest too.
    drives_disk: ClassVar[bool] = False
    # Values of the key 'log' of this disk with which it can run; empty: any.
    disk_logs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def metrics(self, parameters: P) -> tuple[Metric, ...]:
        """Return every metric that a run with these parameters yields, the headline metrics first."""

    @abstractmethod
    def headline(self, parameters: P) -> tuple[str, ...]:
        """Return the names of the metrics that a table shows, usually one to three, the most important first."""

    def headline_first(self, parameters: P, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """Return those of the headline in its order, then the others in the order of ``metrics``."""
        places = {name: place for place, name in enumerate(self.headline(parameters))}
        return tuple(sorted(metrics, key=lambda metric: places.get(metric.name, len(places))))

    @abstractmethod
    def commands(self, parameters: P, job: Job) -> Commands:
        """Return the exact command lines. Pure."""

    @abstractmethod
    def read(self, parameters: P, output: ToolOutput) -> Reading:
        """Parse the tool's output. ``NONSENSE`` or ToolOutputError if it does not have the expected format. Pure.

        Also called if the exit status was not 0. NoSpaceError if the output shows that no space was left; the caller
        (``ParsedWorkload.read``) knows that from stderr.
        """

    @abstractmethod
    def space_bytes(self, parameters: P) -> int:
        """Return the space that the workload needs on the file system under test."""

    def guesses_space(self, parameters: P) -> bool:  # noqa: ARG002
        """Return whether ``space_bytes`` is a guess because the study does not say it."""
        return False

    def written_bytes(self, parameters: P) -> int:
        """Return how much the measured run may write, apart from metadata: by default all files, if it writes."""
        return 0 if self.traits(parameters).writes is False else self.space_bytes(parameters)

    def memory_bytes(self, parameters: P) -> int:
        """Return the memory that the tool allocates for its requests: one buffer for each request in flight."""
        found = self.traits(parameters)
        return max(found.request_bytes, default=0) * (found.parallel or 1)

    @abstractmethod
    def expected_s(self, parameters: P) -> float:
        """Return a rough duration of prepare and run, for the plan's estimate."""

    def moved_bytes(self, parameters: P) -> float:  # noqa: ARG002
        """Return the bytes for which ``expected_s`` counts the time that a disk takes at DISK_BYTES_PER_S."""
        return 0.0

    def waits(self, parameters: P) -> float:
        """Return how many requests of a fixed amount of work wait for the disk one after the other, at random places;
        0 if unknown, or if the time is fixed. For the plan's estimate on media whose speed is known."""
        return self.traits(parameters).syncs or 0.0

    def files_of(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the keys that name a file whose text is part of the workload."""
        return tuple(key for key in keys if key.rpartition(".")[2] in self.Parameters.file_keys)

    def of(self, raw: Mapping[str, Any]) -> "Workload[Any]":  # noqa: ARG002
        """Return the workload for these parameters: another one if the tool has several forms of parameters."""
        return self

    def with_runtime(self, raw: Mapping[str, Any], runtime: str) -> dict[str, Any]:
        """Return the parameters, with this run time added if the tool takes one and the parameters do not set it."""
        return {"runtime": runtime, **raw} if "runtime" in self.Parameters.model_fields else dict(raw)

    def tools_of(self, parameters: P) -> tuple[Tool, ...]:  # noqa: ARG002
        """Return the programs that a run with these parameters needs."""
        return self.tools

    def own_commands(self, parameters: P, job: Job) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        """Return the command lines that the study defines. They run with all rights of fslab's user."""
        return ()

    def runs_as(self, parameters: P) -> RunsAs:  # noqa: ARG002
        """Return the user and the resource limits of all commands, if the study sets them. Pure."""
        return RunsAs()

    def traits(self, parameters: P) -> Traits:  # noqa: ARG002
        """Return what the workload does, as far as the parameters determine it. Pure."""
        return Traits()

    def why_whole(self, parameters: P) -> str | None:  # noqa: ARG002
        """Return why runs of it cannot be measured in slices (``campaign.time_slices``): frozen again and again.

        None if they can: if nothing in it goes by the clock but a run time that ``Job.turns`` multiplies, and it is
        known over which time its figures are. That is: from its first I/O on, for as long as it says; or as ``Reading``
        says (``windows``, ``marks``, ``whole_run``). Its clock goes on while it is frozen, and so does
        ``ToolOutput.duration_s``. Pure.
        """
        return f"it is not known what {self.name}'s figures mean if it is frozen in between"

    def needs(self, parameters: P) -> Needs:  # noqa: ARG002
        """Return what the workload requires of the file system under test; by default nothing special. Pure."""
        return Needs()

    def why_files(self, parameters: P) -> str | None:  # noqa: ARG002
        """Return why it works on files only; None if it can work on a block device instead (``Job.device``). Pure."""
        return f"{self.name} works on files"

    def notices(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002
        """Return what the workload does otherwise than the parameters say, one sentence each, for ``fslab plan``."""
        return ()

    def checks(self, parameters: P, job: Job) -> tuple[Check, ...]:  # noqa: ARG002
        """Return the commands by which the tool itself checks what a run would give it. Both directories of the job are
        the one in which they run. Pure."""
        return ()

    def place_of(self, parameters: P, told: str) -> str | None:  # noqa: ARG002
        """Return the file and line of what the tool refuses in a check, if its output shows it. Pure."""
        return None

    def with_includes(self, name: str, text: str, read: Callable[[str], str]) -> str:  # noqa: ARG002
        """Return the text of the user's file ``name``, with the files that it includes in their places. ``read``
        returns the text of a file by its path, written as ``name`` is. Raises FslabError."""
        return text

    def reader_of(self, key: str, keys: Mapping[str, Any]) -> "Workload[Any]":  # noqa: ARG002
        """Return the workload that reads the file named by ``key``, one of the ``keys`` of this one."""
        return self

    def scaled(self, parameters: P, factor: float) -> Changes:  # noqa: ARG002
        """Return the keys that change for ``factor`` times as much work: file sizes, counts and run times.

        Request sizes and the number of threads do not change. No value becomes smaller than what the tool needs to run
        and to report a figure. Pure.
        """
        return {}

    def unscaled(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002
        """Return what ``scaled`` leaves as it is although it may be an amount of work, in words for ``fslab plan``."""
        return ()

    def parse_parameters(self, raw: Mapping[str, Any]) -> P:
        """Return the validated parameters. pydantic's ValidationError lists all mistakes.

        Also calls the methods that a plan calls. If one of them fails, the parameters are a mistake in the study.
        """
        found = self.Parameters.model_validate(dict(raw))
        try:
            for question in (self.metrics, self.headline, self.traits, self.needs, self.tools_of):
                question(found)
            for amount in (self.space_bytes, self.memory_bytes, self.expected_s):
                amount(found)
        except (ValueError, ArithmeticError) as error:
            wrong = mistake((), dict(raw), str(error))
            raise ValidationError.from_exception_data(self.name, [wrong]) from error
        return found


def _bound(
    method: Callable[Concatenate[Any, Any, Given], R],
) -> Callable[Concatenate["ParsedWorkload[Any]", Given], R]:
    """Return a method of a workload for a ``ParsedWorkload``, which has the parameters."""

    def call(self: "ParsedWorkload[Any]", /, *args: Given.args, **more: Given.kwargs) -> R:
        found: R = getattr(self.tool, method.__name__)(self.parameters, *args, **more)
        return found

    return call


@dataclass(frozen=True, kw_only=True)
class ParsedWorkload(Generic[P]):
    """The workload of a cell with its parsed parameters. All code that asks about a cell's workload uses this class."""

    tool: Workload[P]
    parameters: P

    # Cached: evaluating claims and comparing campaigns call these two thousands of times.

    @cached_property
    def _metrics(self) -> tuple[Metric, ...]:
        return self.tool.metrics(self.parameters)

    @cached_property
    def _traits(self) -> Traits:
        return self.tool.traits(self.parameters)

    def metrics(self) -> tuple[Metric, ...]:
        return self._metrics

    def traits(self) -> Traits:
        return self._traits

    headline = _bound(Workload.headline)
    commands = _bound(Workload.commands)
    runs_as = _bound(Workload.runs_as)
    notices = _bound(Workload.notices)
    checks = _bound(Workload.checks)
    place_of = _bound(Workload.place_of)
    unscaled = _bound(Workload.unscaled)
    tools = _bound(Workload.tools_of)
    why_whole = _bound(Workload.why_whole)
    needs = _bound(Workload.needs)
    why_files = _bound(Workload.why_files)
    space_bytes = _bound(Workload.space_bytes)
    guesses_space = _bound(Workload.guesses_space)
    written_bytes = _bound(Workload.written_bytes)
    memory_bytes = _bound(Workload.memory_bytes)
    expected_s = _bound(Workload.expected_s)
    moved_bytes = _bound(Workload.moved_bytes)
    waits = _bound(Workload.waits)

    def own_commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """Return the study's own command lines, as root would type them."""
        shown = self.runs_as().shown
        return tuple(shown(argv) for argv in self.tool.own_commands(self.parameters, job))

    def read(self, output: ToolOutput) -> Reading:
        """Parse the tool's output. ToolOutputError if that fails, or if a figure is negative, infinite, no number, or
        not declared; NoSpaceError if stderr shows that reason."""
        if reports_full_disk(output.stderr):
            with suppress(ToolOutputError, *NONSENSE):  # some tools report the place, or another reason
                self.tool.read(self.parameters, output)
            raise NoSpaceError(f"{self.tool.name}: no space left on device", hint=SIZES_HINT)
        try:
            return self._checked(self.tool.read(self.parameters, output))
        except NONSENSE as error:
            log.debug("%s", self.tool.name, exc_info=True)
            printed = f"; it printed: {told}" if (told := one_line(output.stderr)) else ""
            why = f"{type(error).__name__}: {str(error)[:200]}"
            what = f"{self.tool.name}'s output is not as documented ({why}){printed}"
            raise ToolOutputError(what) from error

    def _checked(self, found: Any) -> Reading:
        """Return what ``read`` returned. ToolOutputError if it is none, or has figures that none can be."""
        if not isinstance(found, Reading):
            what = f"{self.tool.name}: its 'read' returns a {type(found).__name__}, not a Reading"
            raise ToolOutputError(what)
        strange = [name for name, value in found.metrics.items() if not 0 <= (value or 0.0) < inf]
        if strange:
            what = f"{self.tool.name} reported a negative number or no finite one: {', '.join(strange)}"
            raise ToolOutputError(what)
        if unknown := found.metrics.keys() - {each.name for each in self.metrics()}:
            named = ", ".join(sorted(unknown))
            raise ToolOutputError(
                f"{self.tool.name}: its 'read' returns what its 'metrics' do not declare: {named}"
            )
        return found


def _of_application(application: Application) -> type[Workload[Any]]:
    """Return the tool that measures an application."""
    from fslab.workloads._application import tool_of  # noqa: PLC0415 - it needs this module

    return tool_of(application)


REGISTRY: Registry[Workload[Any]] = Registry(
    "workload", __name__, Workload, group="fslab.workloads", source=APPLICATIONS, of_source=_of_application
)


def parsed(spec: WorkloadSpec) -> ParsedWorkload[Any]:
    """Return the workload of a cell. Only this function parses the parameters of cells, each once."""
    return _parsed(REGISTRY.get(spec.tool), json.dumps(spec.parameters))


def parsed_if_known(spec: WorkloadSpec) -> ParsedWorkload[Any] | None:
    """Return the workload of a cell; None if fslab does not know the tool or no longer accepts the parameters."""
    try:
        return parsed(spec)
    except (FslabError, ValidationError):
        return None


def traits_of(spec: WorkloadSpec) -> Traits:
    """Return the traits of a cell's workload; empty if ``parsed_if_known`` returns None."""
    known = parsed_if_known(spec)
    return known.traits() if known else Traits()


@lru_cache(maxsize=4096)
def _parsed(tool: Workload[Any], parameters: str) -> ParsedWorkload[Any]:
    raw = json.loads(parameters)
    form = tool.of(raw)
    return ParsedWorkload(tool=form, parameters=form.parse_parameters(raw))
