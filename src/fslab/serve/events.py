"""Tells a page that its campaign went on: server-sent events (HTML standard, section 9.2), out of the store."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio

from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignProgress:
    """How far a campaign is: ``trials`` stored, its status, and whether somebody runs it."""

    trials: int
    status: str
    running: bool

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.status}, {self.trials} trials stored"


def state_of(url: str | None, campaign_id: str, is_running: Callable[[str], bool]) -> CampaignProgress:
    """As it is in the store now. StoreError if there is no such campaign."""
    with Store.open(url, create=False) as store:
        campaign = store.campaign(campaign_id)
        running = campaign.status is CampaignStatus.RUNNING and is_running(campaign.id)
        if not running:  # it may have ended since: its status is stored before its process is done
            campaign = store.campaign(campaign.id)
        trials = store.count(campaign.id)
    killed = campaign.status is CampaignStatus.RUNNING and not running
    status = "interrupted" if killed else campaign.status.value.replace("_", " ")
    return CampaignProgress(trials=trials, status=status, running=running)


async def events(read: Callable[[], CampaignProgress]) -> AsyncIterator[str]:
    """A message at once, then one for every change, until no process runs the campaign."""
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
