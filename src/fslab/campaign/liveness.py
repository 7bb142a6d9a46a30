"""How far a campaign is, whatever status is stored: without a process it does not run."""

import os

from fslab.campaign.journal import is_running
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store

USER = "user_id"  # of a campaign's settings: whose journals tell


def as_it_is(campaign: Campaign, store: Store) -> Campaign:
    """The campaign, ``interrupted`` if it says ``running`` and this user on this machine, who ran it, does not.

    Of other machines and other users nothing is known but what the store says.
    """
    if campaign.status is not CampaignStatus.RUNNING or not _ours(campaign) or is_running(campaign.id):
        return campaign
    # It may have ended since it was read: its status is stored before its process is done.
    status = store.campaign(campaign.id).status
    killed = status is CampaignStatus.RUNNING
    return campaign.model_copy(update={"status": CampaignStatus.INTERRUPTED if killed else status})


def _ours(campaign: Campaign) -> bool:
    machine, user = campaign.machine.get("hostname"), campaign.settings.get(USER)
    return machine in {None, os.uname().nodename} and user in {None, os.geteuid()}
