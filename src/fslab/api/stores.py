"""The store of results: campaigns, their trials and names, as values. ``api.results`` wraps them in objects."""

from fslab.campaign.journal import is_running
from fslab.campaign.liveness import as_it_is
from fslab.store.campaign import Campaign, CampaignEntry, CampaignStatus
from fslab.store.export import export
from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import AssignmentSummary, FleetSchedule, MemberMachine
from fslab.store.integrity import check_campaigns, database_faults
from fslab.store.roles import grant
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign

__all__ = [
    "AssignmentSummary",
    "Campaign",
    "CampaignEntry",
    "CampaignStatus",
    "FleetSchedule",
    "FleetStore",
    "MemberMachine",
    "Store",
    "as_it_is",
    "check_campaigns",
    "copy_campaign",
    "database_faults",
    "export",
    "grant",
    "is_running",
    "open_store",
]
