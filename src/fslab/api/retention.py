"""Finds the campaigns of a store that are old enough to be deleted. Deletes nothing."""

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from fslab.campaign.liveness import is_running
from fslab.names import study_id
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store


def outdated(
    store: Store, *, older_than_s: float, keep: int, studies: Collection[str] = ()
) -> list[Campaign]:
    """Return the campaigns older than ``older_than_s``, oldest first; of ``studies`` (ids or files; empty: of all).

    Omits the ``keep`` newest of each study on each machine, campaigns with a name, and campaigns that may be running,
    on this machine or according to the store.
    """
    wanted = {study_id(each) for each in studies}
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    newer: Counter[tuple[str, object]] = Counter()
    found = []
    for campaign in reversed(store.campaigns()):
        series = (campaign.study_id, campaign.machine.get("hostname"))
        newer[series] += 1
        if (
            newer[series] > keep
            and campaign.created < before
            and (not wanted or campaign.study_id in wanted)
            and campaign.name is None
            and campaign.status is not CampaignStatus.RUNNING
            and not is_running(campaign.id, store)
        ):
            found.append(campaign)
    return found[::-1]
