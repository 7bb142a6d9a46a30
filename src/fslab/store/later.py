"""Decides what a copied campaign has in the target: the plan and the status of the store that is further. Pure."""

from fslab.store.campaign import Campaign, CampaignStatus

_ENDED = frozenset({CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT, CampaignStatus.FAILED})
_PLAN = ("stopping", "extended_from")  # settings that ``Campaign.extended`` changes


def later(target: Campaign, source: Campaign, *, has_more: bool) -> Campaign:
    """Return the target's campaign with what the source has decided since: more trials, more runs, and its status.

    ``has_more``: the target has trials that the source does not have. A plan only grows, so the one with more
    extensions is the later one. The target keeps its status if it is further in anything. With the same plan, it also
    keeps ``finished``, and any end if the source says ``running``: that was read before the end, or the campaign
    continues there and will end again.
    """
    extended, run_again = _extent(source) > _extent(target), len(source.runs) > len(target.runs)
    settings = dict(target.settings)
    if extended:
        settings |= {name: source.settings[name] for name in _PLAN if name in source.settings}
    if run_again:
        settings["runs"] = source.settings["runs"]
    ahead = has_more or _extent(source) < _extent(target) or len(source.runs) < len(target.runs)
    stale = target.status is CampaignStatus.FINISHED or (
        target.status in _ENDED and source.status is CampaignStatus.RUNNING
    )
    keeps = ahead or (stale and not extended and not run_again)
    return target.model_copy(
        update={
            "trials": source.trials if extended else target.trials,
            "settings": settings,
            "status": target.status if keeps else source.status,
        }
    )


def _extent(campaign: Campaign) -> tuple[int, int]:
    return len(campaign.extended_from), campaign.stopping.most
