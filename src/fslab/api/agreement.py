"""What the user must agree to before a campaign runs: the study's own commands, and what the campaign overwrites."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from fslab import feasibility, names
from fslab.cell import Cell
from fslab.errors import FslabError
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.inputs import InputPlace
from fslab.system import paths
from fslab.workloads import Job, parsed


def own_commands(cells: Iterable[Cell]) -> list[str]:
    """Return the study's own command lines, without duplicates. DIRECTORY and FILES are placeholders for paths."""
    cells = list(cells)
    machines = (cell.stack.machine for cell in cells)
    booted = (shlex.join(argv) for each in machines for argv in MACHINES.get(each.type).own_commands(each))
    return list(dict.fromkeys([*commands_of_workloads(cells), *booted]))


def commands_of_workloads(cells: Iterable[Cell]) -> list[str]:
    """Return the command lines of the workloads, without the kernels that guests boot."""
    job = Job(directory=Path("DIRECTORY"), scratch=Path("FILES"), seed=1)
    found: dict[str, None] = {}
    for cell in cells:  # not by workload name: in a manipulated store, two workloads may have one name
        feasibility.check_plugins(cell)
        for argv in parsed(cell.workload).own_commands(job):
            found[shlex.join(argv)] = None
    return list(found)


def places(cells: Iterable[Cell]) -> list[str]:
    """Return notes on what a stored campaign overwrites and where it writes files, without fslab's own images."""

    found: dict[str, None] = {}
    for cell in cells:
        feasibility.check_plugins(cell)
        stack = parsed_stack(cell.stack)
        planned = stack.medium_plan(paths.images())
        for device in planned.wipes:
            found[f"overwrites {names.shown(device)}"] = None
        if not stack.medium.formatted:
            found[f"writes files in {names.shown(str(Path(planned.device).expanduser().absolute()))}"] = None
    return list(found)


def changed_files(settings: dict[str, object]) -> list[str]:
    """Return notes on files of a campaign's study that have changed. The campaign uses their stored text."""

    files, base = settings.get("files"), Path(str(settings.get("directory")))
    # Anywhere: what is read is only compared, and the user may have allowed other directories.
    place = InputPlace(base=base, more=(Path("/"),))
    found = []
    for path, text in files.items() if isinstance(files, dict) else ():
        try:
            same = place.text_of(path) == text
        except FslabError:
            same = False
        if not same:
            found.append(f"'{path}' has changed since the campaign started: its stored text is used")
    return found
