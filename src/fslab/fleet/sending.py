"""Sends the trials of an assignment from the machine's own store to the fleet's store, fenced by its epoch.

Each trial is first stored in the machine's own store, so that nothing is lost while the fleet's store is unavailable.
"""

from dataclasses import dataclass

from fslab.store.campaign import CampaignStatus
from fslab.store.fleet import FleetStore
from fslab.store.fleet_values import Assignment
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """``own``: the machine's own store, opened."""

    own: Store
    fleet: FleetStore
    held: Assignment

    def trials(self) -> int:
        """Return the number of the assignment's trials in the machine's own store."""
        return self.own.count(self.held.campaign)

    def send(self, *, compare: bool) -> CampaignStatus | None:
        """Send the trials that the fleet's store does not have. Returns the campaign's status, None if not started.

        ``compare``: also compare the trials that are there already. Raises FencedError if another process took the
        assignment over or it was cancelled, StoreLostError if the fleet's store is unavailable.
        """
        if not self.own.has(self.held.campaign):
            return None
        campaign, fence = self.own.campaign(self.held.campaign), self.fleet.fence(self.held)
        copy_campaign(self.own, self.fleet.store, campaign, fence=fence, only_new=not compare)
        return campaign.status
