"""Tests of the served pages without a server: the status that they show for campaigns that are stored as running."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from tests.browser import campaigns

from fslab.campaign import liveness
from fslab.serve.app import Pages
from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

CAMPAIGN, TRIALS = campaigns.small()
ELSEWHERE: dict[str, dict[str, Any]] = {
    "another machine": {"machine": {"hostname": "elsewhere"}},
    "another user": {"settings": {liveness.USER: os.geteuid() + 1}},
}


def stored(tmp_path: Path, **changes: Any) -> Pages:
    """Return the pages of a store with one campaign that is stored as running, and that no process here runs."""
    url = str(tmp_path / "store.sqlite")
    campaign = CAMPAIGN.model_copy(update={"id": "c1", "status": CampaignStatus.RUNNING, **changes})
    with Store.open(url) as store:
        store.create_campaign(campaign)
        store.set_campaign_status("c1", CampaignStatus.RUNNING)
        for trial in TRIALS[:3]:
            store.add_trial(trial.model_copy(update={"key": trial.key.model_copy(update={"campaign": "c1"})}))
    return Pages(url=url)


def asked(**parameters: str) -> Request:
    return Request({"type": "http", "path_params": parameters, "query_string": b""})


def body(response: Any) -> str:
    return bytes(response.body).decode()


def first_event(pages: Pages) -> str:
    async def read() -> str:
        response = pages.events(asked(campaign="c1"))
        assert isinstance(response, StreamingResponse)
        async for text in response.body_iterator:
            return str(text)
        return ""

    return asyncio.run(read())


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_campaign_that_runs_elsewhere_is_running(tmp_path: Path, where: str) -> None:
    """On a shared store, only the machine and the user of a campaign know whether it still runs."""
    pages = stored(tmp_path, **ELSEWHERE[where])
    listing = body(pages.listing(asked()))
    assert "<td>running</td>" in listing
    assert '"over": false' in first_event(pages)
    assert "Running: 3 trials" in body(pages.campaign(asked(campaign="c1")))


def test_a_campaign_that_was_killed_is_interrupted_on_every_page(tmp_path: Path) -> None:
    pages = stored(tmp_path)
    assert "<td>interrupted</td>" in body(pages.listing(asked()))
    assert first_event(pages) == 'data: {"text": "interrupted, 3 trials stored", "over": true}\n\n'
    page = body(pages.campaign(asked(campaign="c1")))
    assert "Interrupted: 3 trials" in page
    assert "Running: " not in page
    assert "data-events" not in page


def test_a_campaign_that_ends_between_two_looks_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that finishes between the read of its status and the check of its process is not "interrupted"."""
    pages = stored(tmp_path)

    def ends(_: str) -> bool:
        with Store.open(pages.url) as another:
            another.set_campaign_status("c1", CampaignStatus.FINISHED)
        return False

    monkeypatch.setattr(liveness, "is_running", ends)
    assert "<td>finished</td>" in body(pages.listing(asked()))


def test_a_page_is_made_again_when_the_campaign_gets_a_note(tmp_path: Path) -> None:
    pages = stored(tmp_path)
    pages.campaign(asked(campaign="c1"))
    pages.campaign(asked(campaign="c1"))
    assert len(pages.made) == 1
    with Store.open(pages.url) as store:
        store.note_campaign("c1", "after the new firmware")
    pages.campaign(asked(campaign="c1"))
    assert len(pages.made) == 2


def test_the_list_opens_the_store_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = stored(tmp_path)
    opened = []
    original = Store.open.__func__  # type: ignore[attr-defined]

    def counting(cls: type[Store], *arguments: Any, **options: Any) -> Store:
        opened.append(arguments)
        found: Store = original(cls, *arguments, **options)
        return found

    monkeypatch.setattr(Store, "open", classmethod(counting))
    pages.listing(asked())
    assert len(opened) == 1
