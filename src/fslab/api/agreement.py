"""What the user must agree to before a campaign runs: what it executes of the study's own, and what it overwrites."""

import os
from collections.abc import Iterable
from pathlib import Path

from fslab import feasibility, names
from fslab.campaign.consent import Consent, Executed, Kind, executed, refuse
from fslab.cell import Cell
from fslab.errors import FslabError
from fslab.storage import images
from fslab.storage.parsed_stack import parsed_stack
from fslab.store.campaign import Campaign
from fslab.study.inputs import InputPlace
from fslab.system import paths

__all__ = ["Consent", "Executed", "Kind", "changed_files", "executed", "places", "refuse"]


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
    """Return the path that a path of a study leads to, with links resolved."""
    return names.shown(os.path.realpath(Path(written).expanduser()))


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
