"""Sends what an assignment has measured from the machine's own store to the fleet's, fenced by its epoch.

The machine's own store has each trial first, so that nothing is lost while the fleet's is away.
"""

from fslab.store.campaign import CampaignStatus
from fslab.store.fleet import Assignment, FleetStore
from fslab.store.store import Store
from fslab.store.transfer import copy_campaign


def send(own: str, fleet: FleetStore, held: Assignment, *, compare: bool) -> CampaignStatus | None:
    """Send the trials that the fleet's store does not have; the campaign's status, None if it has not begun.

    ``compare`` also compares those that are there already. FencedError where the assignment is another process's by
    now, StoreLostError where the fleet's store is away.
    """
    with Store.open(own, create=True) as source:
        found = [each for each in source.campaigns() if each.id == held.campaign]
        if not found:
            return None
        copy_campaign(source, fleet.store, found[0], fence=fleet.fence(held), only_new=not compare)
        return found[0].status


def trials(own: str, held: Assignment) -> int:
    """How many trials of it the machine's own store has."""
    with Store.open(own, create=True) as source:
        return source.count(held.campaign)
