"""The lines of ``fslab plan`` about a study's claims: the trials within its budget, and the claims that they decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fslab.api import quiet
from fslab.units import counted, first_of, format_duration

if TYPE_CHECKING:
    from fslab.api.forecasts import Forecast

NAMED = 8


def lines(found: Forecast, limit_s: float | None) -> Iterator[str]:
    """Yield the lines that ``fslab plan`` prints."""
    if found.too_small:
        yield f"claims: {found.too_small}"
    elif found.blocks is not None:
        trials, cells = counted(round(found.blocks), "trial"), counted(found.cells, "cell")
        yield f"claims: the budget is enough for about {trials} of each of {cells}"
    if found.reference_spread is not None:
        yield quiet.words(found.reference_spread, found.block_s)
    if found.campaign is None:
        yield "claims: how many will be decided can be estimated after a first campaign, from its noise"
        return
    total = len(found.likely) + len(found.beyond) + len(found.at_limit) + len(found.untestable)
    within = f"within {format_duration(limit_s)}" if limit_s else "without a budget"
    yield f"claims: about {len(found.likely)} of {total} decided {within}, with the noise of campaign {found.campaign}"
    if found.beyond:
        named = [
            name if more_s is None else f"{name} ({format_duration(more_s)} more)"
            for name, more_s in found.beyond.items()
        ]
        yield f"  too noisy for that: {first_of(named, NAMED)}"
    if found.at_limit:
        yield f"  at the limit (closer to it than the margin): {first_of(found.at_limit, NAMED)}"
    if found.untestable:
        yield f"  not testable here: {first_of(found.untestable, NAMED)}"
