"""The part of ``fslab plan`` about a study's claims: the trials within its budget, and the claims that they are likely
to decide at the known noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fslab.api import quiet
from fslab.cell import Frozen
from fslab.units import format_duration

if TYPE_CHECKING:
    from fslab.plan.model import Plan
    from fslab.study.model import Study

NAMED = 8


class Forecast(Frozen):
    """Claims that a budget is likely to decide. ``campaign``: the campaign whose noise is used; None if there is none.

    ``block_s``: seconds for one trial of each cell. ``reference_spread``: the current variation of a fixed loop's
    speed. ``likely``: ids of claims. ``beyond``: ids of claims that need more than the budget, with the further
    seconds that each one needs; None if unknown.
    """

    cells: int
    blocks: float | None
    block_s: float = 0.0
    reference_spread: float | None = None
    too_small: str | None = None
    campaign: str | None = None
    likely: tuple[str, ...] = ()
    beyond: dict[str, float | None] = {}
    at_limit: tuple[str, ...] = ()
    untestable: tuple[str, ...] = ()


def forecast(study: Study, plan: Plan, memory_bytes: int | None, store: str | None = None) -> Forecast | None:
    """Return the forecast for a study; None if its trials are not run for claims."""
    from fslab.campaign import claims_budget, launch

    if not study.for_claims:
        return None
    possible = [cell for cell in plan.cells if cell.id not in plan.impossible]
    about = launch.claimed_cells(study, possible, memory_bytes)
    limit_s = study.limit_s
    known = Forecast(
        cells=len(about),
        blocks=None if limit_s is None else claims_budget.blocks_of(about, limit_s),
        block_s=claims_budget.block_s(about),
        reference_spread=quiet.now(),
        too_small=claims_budget.too_small(about, limit_s),
    )
    return _by_noise(study, known, limit_s, store)


def _by_noise(study: Study, known: Forecast, limit_s: float | None, url: str | None) -> Forecast:
    """Complete the forecast with the noise of the study's last campaign, if there is one."""
    from fslab.api.claims import of_campaign
    from fslab.claims.model import ClaimVerdict, OpenReason
    from fslab.errors import FslabError
    from fslab.store.store import Store

    try:
        with Store.open(url, create=False) as opened:
            of_study = [one for one in opened.campaigns() if one.study_id == study.id]
            if not of_study:
                return known
            found = of_campaign(of_study[-1], opened)
            taken_s = sum(record.duration_s for record in opened.trials(of_study[-1].id))
    except FslabError:
        return known
    likely, beyond, at_limit, untestable = [], {}, [], []
    answers = [(one.id, one.measured) for one in found.claims if one.measured is not None]
    left_s = None if limit_s is None else limit_s - taken_s
    for name, answer in sorted(answers, key=lambda pair: pair[1].more_s or 0.0):
        if answer.verdict is ClaimVerdict.UNKNOWN:
            untestable.append(name)
        elif answer.reason is OpenReason.AT_LIMIT:
            at_limit.append(name)
        elif answer.verdict is not ClaimVerdict.OPEN:
            likely.append(name)
        elif answer.more_s is not None and (left_s is None or answer.more_s <= left_s):
            likely.append(name)
            left_s = None if left_s is None else left_s - answer.more_s
        else:
            beyond[name] = answer.more_s
    return known.model_copy(
        update={
            "campaign": of_study[-1].id, "likely": tuple(likely), "beyond": beyond, "at_limit": tuple(at_limit),
            "untestable": tuple(untestable),
        }
    )  # fmt: skip


def lines(found: Forecast, limit_s: float | None) -> Iterator[str]:
    """Yield the lines that ``fslab plan`` prints."""
    if found.too_small:
        yield f"claims: {found.too_small}"
    elif found.blocks is not None:
        yield f"claims: the budget is enough for about {found.blocks:.0f} trials of each of {found.cells} cells"
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
        yield f"  too noisy for that: {_few(named)}"
    if found.at_limit:
        yield f"  at the limit (more trials do not help): {_few(found.at_limit)}"
    if found.untestable:
        yield f"  not testable here: {_few(found.untestable)}"


def _few(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
