"""Decides what a copied campaign has in the target: the plan and the status of the store that is further. Pure."""

from fslab.store.campaign import Campaign, CampaignStatus

_ENDED = frozenset({CampaignStatus.FINISHED, CampaignStatus.BUDGET_SPENT, CampaignStatus.FAILED})


def later(target: Campaign, source: Campaign, *, has_more: bool) -> Campaign:
    """Return the target's campaign with what the source has decided since: more trials, more runs, and its status.

    ``has_more``: the target has trials that the source does not have. A plan only grows, so the one with more
    extensions is the later one. The target keeps its status if it is further in anything. With the same plan, it also
    keeps ``finished``, and any end if the source says ``running``: that was read before the end, or the campaign
    continues there and will end again.
    """
    extended, run_again = _extent(source) > _extent(target), _runs(source) > _runs(target)
    settings: dict[str, object] = {}
    if extended:
        settings |= {"stopping": source.settings.stopping, "extended_from": source.settings.extended_from}
    if run_again:
        settings["runs"] = source.settings.runs
    ahead = has_more or _extent(source) < _extent(target) or _runs(source) < _runs(target)
    stale = target.status is CampaignStatus.FINISHED or (
        target.status in _ENDED and source.status is CampaignStatus.RUNNING
    )
    keeps = ahead or (stale and not extended and not run_again)
    status = target.status if keeps else source.status
    trials = source.trials if extended else target.trials
    return target.with_settings(**settings).model_copy(update={"trials": trials, "status": status})


def _extent(campaign: Campaign) -> tuple[int, int]:
    return len(campaign.settings.extended_from), campaign.stopping.most


def _runs(campaign: Campaign) -> int:
    return len(campaign.settings.runs)
