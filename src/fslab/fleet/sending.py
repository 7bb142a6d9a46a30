"""Sends what an assignment has measured from the machine's own store to the fleet's, fenced by its epoch.

The machine's own store has each trial first, so that nothing is lost while the fleet's is away.
"""

from dataclasses import dataclass

from fslab.store.campaign import CampaignStatus
from fslab.store.fleet import FleetStore
from fslab.store.fleet_values import Assignment
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """``own``: the machine's own store, open."""

    own: Store
    fleet: FleetStore
    held: Assignment

    def trials(self) -> int:
        """How many trials of it the machine's own store has."""
        return self.own.count(self.held.campaign)

    def send(self, *, compare: bool) -> CampaignStatus | None:
        """Send the trials that the fleet's store does not have; the campaign's status, None if it has not begun.

        ``compare`` also compares those that are there already. FencedError where the assignment is another process's by
        now, StoreLostError where the fleet's store is away.
        """
        if not self.own.has(self.held.campaign):
            return None
        campaign, fence = self.own.campaign(self.held.campaign), self.fleet.fence(self.held)
        copy_campaign(self.own, self.fleet.store, campaign, fence=fence, only_new=not compare)
        return campaign.status
