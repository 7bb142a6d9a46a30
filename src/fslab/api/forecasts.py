"""Forecasts: the claims of a study that its budget is likely to decide, at the noise known so far. Runs nothing."""

from fslab.api import quiet
from fslab.api.claims import of_campaign
from fslab.campaign import claims_budget, launch
from fslab.cell import Frozen
from fslab.claims.model import ClaimVerdict, OpenReason
from fslab.errors import FslabError
from fslab.plan.model import Plan
from fslab.store.store import Store
from fslab.study.model import Study


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
    """Return the forecast for a study; None if its trials are not run for claims, or none of them is possible here."""
    if not study.for_claims:
        return None
    possible = [cell for cell in plan.cells if cell.id not in plan.impossible]
    about = launch.claimed_cells(study, possible, memory_bytes)
    if not about:
        return None
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
    try:
        with Store.open(url, create=False) as opened:
            of_study = opened.campaigns(study.id)
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
