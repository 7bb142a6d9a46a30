"""The actual status of a campaign: one that is stored as running but has no process was interrupted."""

import os

from fslab.campaign import undo_journal
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store


def is_running(campaign: str, store: Store) -> bool:
    """Return whether a process of this machine runs the campaign: by its journal, if that is where ours are, or by its
    lock in the store."""
    return undo_journal.is_running(campaign) or store.is_running(campaign)


def as_it_is(campaign: Campaign, store: Store) -> Campaign:
    """Return the campaign; as ``interrupted`` if it is stored as ``running`` but no process runs it.

    Only campaigns of this user on this machine can be checked. Others keep the stored status.
    """
    if campaign.status is not CampaignStatus.RUNNING or not _ours(campaign) or is_running(campaign.id, store):
        return campaign
    # It may have ended since it was read: its process stores the status before it releases the lock.
    status = store.status(campaign.id)
    killed = status is CampaignStatus.RUNNING
    return campaign.model_copy(update={"status": CampaignStatus.INTERRUPTED if killed else status})


def _ours(campaign: Campaign) -> bool:
    machine, user = campaign.machine.get("hostname"), campaign.settings.user_id
    return machine in {None, os.uname().nodename} and user in {None, os.geteuid()}
