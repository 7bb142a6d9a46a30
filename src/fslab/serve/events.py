"""Sends a campaign's progress from the store to its page: server-sent events (HTML standard, section 9.2)."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio

from fslab.api.stores import CampaignStatus, Store
from fslab.units import counted

EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignProgress:
    """Progress of a campaign: the number of stored trials, its status, and whether a process runs it."""

    trials: int
    status: str
    running: bool

    @property
    def text(self) -> str:
        """The progress in words."""
        return f"{self.status}, {counted(self.trials, 'trial')} stored"


def state_of(url: str | None, campaign_id: str, is_running: Callable[[str], bool]) -> CampaignProgress:
    """Read the current progress from the store. StoreError if there is no such campaign."""
    with Store.open(url, create=False) as store:
        campaign = store.campaign(campaign_id)
        running = campaign.status is CampaignStatus.RUNNING and is_running(campaign.id)
        if not running:  # read again: a process stores the status before it exits
            campaign = store.campaign(campaign.id)
        trials = store.count(campaign.id)
    killed = campaign.status is CampaignStatus.RUNNING and not running
    status = "interrupted" if killed else campaign.status.value.replace("_", " ")
    return CampaignProgress(trials=trials, status=status, running=running)


async def events(read: Callable[[], CampaignProgress]) -> AsyncIterator[str]:
    """Yield a message at once, then one for every change, until no process runs the campaign."""
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
