"""Consent to what a study brings and fslab executes: commands with their scripts, and kernels and modules of guests.

``executed`` is the only list of it, and ``Consent.require`` the only gate. ``campaign.trial_loop`` and
``campaign.traced``, through which every trial of a study starts, pass it, wherever the campaign came from: a study, a
store, a fleet, an ablation. Must not use the terminal. ``places`` and ``changed_files`` are notes before a stored
campaign continues.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from fslab import feasibility, names
from fslab.cell import Cell
from fslab.errors import FslabError, UsageError
from fslab.storage import images, initial_content
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.campaign import Campaign
from fslab.store.store import Store
from fslab.study.inputs import InputPlace
from fslab.system import paths
from fslab.workloads import Job, parsed, text_key

# Placeholders for paths that are known only when a trial runs.
_JOB = Job(directory=Path("DIRECTORY"), scratch=Path("FILES"), seed=1)


class Kind(StrEnum):
    """What is executed. All run with the rights of fslab's user: a kernel of User-Mode Linux with its modules is a
    process of the host, and QEMU shows the host's files to its guest."""

    COMMAND = "command"
    SCRIPT = "script"
    KERNEL = "kernel of a guest"
    MODULES = "kernel modules of a guest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    """Something that a study brings and that is executed. ``what``: a command line, or a path as the study writes it.
    ``text``: of a script."""

    kind: Kind
    what: str
    text: str | None = None


def executed(cells: Iterable[Cell]) -> tuple[Executed, ...]:
    """Return everything that these cells bring and that is executed, each once."""
    # Not by name: in a manipulated store, two workloads may have one name.
    return tuple(dict.fromkeys(each for cell in cells for each in (*_of_workload(cell), *_of_stack(cell))))


def refuse(found: Sequence[Executed]) -> None:
    """Raise UsageError that these are not allowed."""
    told = "; ".join(f"{each.kind}: {names.visible(each.what)[:200]}" for each in found[:3])
    raise UsageError(
        f"the study brings programs that were not allowed ({told})",
        where="tool: command, after_mount, kernel, modules",
        hint="read them (fslab plan); if you trust them: --allow-commands, or allow_commands=True",
    )


@dataclass(kw_only=True, slots=True)
class Consent:
    """What the user allows to be executed: ``given``, and what ``ask`` does not refuse by raising an error.

    By default nothing is allowed. ``unseen``: ``ask`` allows everything, also what the user has not seen.
    """

    ask: Callable[[Sequence[Executed]], object] = refuse
    given: set[Executed] = field(default_factory=set)
    unseen: bool = False

    def require(self, cells: Iterable[Cell]) -> None:
        """Return if everything that the cells bring and that is executed is allowed. Asks for each once."""
        found = [each for each in executed(cells) if each not in self.given]
        if found:
            self.ask(found)
            self.given.update(found)

    def check_stored(self, cells: Iterable[Cell], store: Store) -> None:
        """Raise UsageError if everything is allowed unseen, but other users can have written what these cells of a
        store bring: who may add campaigns to a server can add cells with other programs than those of the study."""
        if self.unseen and store.is_shared and executed(cells):
            raise UsageError(
                "does not allow programs of a stored campaign that other users of the database can have changed",
                where="--allow-commands",
                hint="omit it to read and allow them on a terminal, or start a new campaign",
            )


def _of_workload(cell: Cell) -> Iterator[Executed]:
    feasibility.check_plugins(cell)
    workload = parsed(cell.workload)
    commands = workload.own_commands(replace(_JOB, directory=_directory(cell)))
    for argv in commands:
        yield Executed(kind=Kind.COMMAND, what=shlex.join(argv))
    parameters = cell.workload.parameters
    for key in workload.tool.files_of(parameters) if commands else ():
        yield Executed(kind=Kind.SCRIPT, what=str(parameters[key]), text=str(parameters.get(text_key(key))))


def _directory(cell: Cell) -> Path:
    """Return the directory of the commands. Where the study chooses the one above it, it has its name, which a shell of
    the study's could read as a command."""
    stack = parsed_stack(cell.stack)
    if stack.medium.formatted:
        return _JOB.directory
    return Path(_real(stack.medium_plan(paths.images()).device)) / _JOB.directory


def _of_stack(cell: Cell) -> Iterator[Executed]:
    if cell.stack.after_mount:
        argv = initial_content.command_argv(cell.stack.after_mount, str(_JOB.directory))
        yield Executed(kind=Kind.COMMAND, what=shlex.join(argv))
    machine = cell.stack.machine
    for kind, path in ((Kind.KERNEL, machine.kernel), (Kind.MODULES, machine.modules)):
        if path is not None:
            yield Executed(kind=kind, what=path)


def places(cells: Iterable[Cell]) -> list[str]:
    """Return notes on what a stored campaign overwrites and where it writes files and images, without images in fslab's
    own directory."""

    found: dict[str, None] = {}
    for cell in cells:
        feasibility.check_plugins(cell)
        stack = parsed_stack(cell.stack)
        planned = stack.medium_plan(paths.images())
        for device in planned.wipes:
            found[f"overwrites {names.shown(device)}"] = None
        if not stack.medium.formatted:
            found[f"writes files in {_shown(planned.device)}"] = None
        for place in planned.space:
            if place not in {images.MEMORY, str(paths.images())}:
                found[f"writes images in {_shown(place)}"] = None
    return list(found)


def _shown(written: str) -> str:
    """Return the path that a path of a study leads to, with links resolved, for a terminal."""
    return names.shown(_real(written))


def _real(written: str) -> str:
    return os.path.realpath(Path(written).expanduser())


def changed_files(campaign: Campaign) -> list[str]:
    """Return notes on files of a campaign's study that have changed. The campaign uses their stored text."""

    # Anywhere: what is read is only compared, and the user may have allowed other directories.
    place = InputPlace(base=Path(str(campaign.settings.directory)), more=(Path("/"),))
    found = []
    for path, text in campaign.settings.files.items():
        try:
            same = place.text_of(path) == text
        except FslabError:
            same = False
        if not same:
            found.append(f"'{path}' has changed since the campaign started: its stored text is used")
    return found
