"""Sends a campaign's progress from the store to its page: server-sent events (HTML standard, section 9.2)."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio

from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.store import Store
from fslab.units import counted

EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignProgress:
    """Progress of a campaign: the number of stored trials, its status, and whether it runs."""

    trials: int
    status: str
    running: bool

    @property
    def text(self) -> str:
        """The progress in words."""
        return f"{self.status}, {counted(self.trials, 'trial')} stored"


def state_of(campaign: Campaign, store: Store) -> CampaignProgress:
    """Return the progress of a campaign, whose status is the actual one (``as_it_is``)."""
    return CampaignProgress(
        trials=store.count(campaign.id),
        status=campaign.status.value.replace("_", " "),
        running=campaign.status is CampaignStatus.RUNNING,
    )


async def events(read: Callable[[], CampaignProgress]) -> AsyncIterator[str]:
    """Yield a message at once, then one for every change, until the campaign has ended."""
    known = await anyio.to_thread.run_sync(read)
    yield _message(known)
    while known.running:
        await anyio.sleep(EVERY_S)
        state = await anyio.to_thread.run_sync(read)
        if state != known:
            known = state
            yield _message(state)


def _message(state: CampaignProgress) -> str:
    return f"data: {json.dumps({'text': state.text, 'over': not state.running})}\n\n"
