"""What the user must agree to before a campaign runs: what it executes of the study's own, and what it overwrites."""

from collections.abc import Iterable
from pathlib import Path

from fslab import feasibility, names
from fslab.campaign.consent import Consent, Executed, Kind, executed, refuse
from fslab.cell import Cell
from fslab.errors import FslabError
from fslab.storage.parsed_stack import parsed_stack
from fslab.study.inputs import InputPlace
from fslab.system import paths

__all__ = ["Consent", "Executed", "Kind", "changed_files", "executed", "places", "refuse"]


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
