"""The room that a plan's images need, place by place. Pure: what is free there is not its matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fslab.cell import Cell
from fslab.plan.commands import Paths, medium_plan
from fslab.storage.media import MediumPlan
from fslab.storage.parsed_stack import parsed_stack


def media_of(cells: Sequence[Cell], paths: Paths) -> list[tuple[MediumPlan, int]]:
    """What each medium's slot needs, once however many cells use it, with its number of devices."""
    found: dict[str, tuple[MediumPlan, int]] = {}
    for cell in cells:
        slot, disks = cell.slot, parsed_stack(cell.stack).disks
        known = found.get(slot)
        if known is None or known[1] < disks:
            found[slot] = (medium_plan(cell, paths), disks)
    return list(found.values())


def space_of(media: Iterable[tuple[MediumPlan, int]]) -> dict[str, int]:
    """Bytes needed at the same time in each place: a directory, or ``memory``."""
    space = Counter[str]()
    for planned, disks in media:
        space.update({place: needed * disks for place, needed in planned.space.items()})
    return dict(space)
