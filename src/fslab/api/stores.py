"""The store of results: campaigns, their trials and names, as values. ``api.results`` wraps them in objects."""

from fslab.store.fleet import FleetStore, open_store
from fslab.store.fleet_values import AssignmentSummary, FleetSchedule, MemberMachine
from fslab.store.integrity import CheckedCampaign, check_campaigns, database_faults
from fslab.store.roles import grant
from fslab.store.store import Store
from fslab.store.transfer import CopiedCampaign, copy_campaign

__all__ = [
    "AssignmentSummary",
    "CheckedCampaign",
    "CopiedCampaign",
    "FleetSchedule",
    "FleetStore",
    "MemberMachine",
    "Store",
    "check_campaigns",
    "copy_campaign",
    "database_faults",
    "grant",
    "open_store",
]
