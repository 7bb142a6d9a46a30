"""Tests of the served pages without a server: the status that they show for campaigns that are stored as running."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Coroutine, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any, TypeVar

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from tests.browser import campaigns
from tests.limits import LIMIT_S
from tests.store.sql import sql

from fslab.api import pages as making
from fslab.campaign import liveness
from fslab.errors import StoreLostError
from fslab.report.page import assemble
from fslab.report.page.model import Page
from fslab.serve import app as serving
from fslab.serve.app import Pages, application
from fslab.serve.guard import Access
from fslab.store.campaign import Campaign, CampaignSettings, CampaignStatus
from fslab.store.store import Store
from fslab.trial_record import Value
from fslab.units import Unit

T = TypeVar("T")
CAMPAIGN, TRIALS = campaigns.small()
ELSEWHERE: dict[str, dict[str, Any]] = {
    "another machine": {"machine": {"hostname": "elsewhere"}},
    "another user": {"settings": CampaignSettings(user_id=os.geteuid() + 1)},
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


def page_at(pages: Pages, campaign: str) -> str:
    return body(ended(pages.campaign(asked(campaign=campaign))))


def ended(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: the browser of other tests has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def first_event(pages: Pages) -> str:
    async def read() -> str:
        response = pages.events(asked(campaign="c1"))
        assert isinstance(response, StreamingResponse)
        async for text in response.body_iterator:
            return str(text)
        return ""

    return ended(read())


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_campaign_that_runs_elsewhere_is_running(tmp_path: Path, where: str) -> None:
    """On a shared store, only the machine and the user of a campaign know whether it still runs."""
    pages = stored(tmp_path, **ELSEWHERE[where])
    listing = body(pages.listing(asked()))
    assert "<td>running</td>" in listing
    assert '"over": false' in first_event(pages)
    assert "Running: 3 trials" in page_at(pages, "c1")


def test_a_campaign_that_was_killed_is_interrupted_on_every_page(tmp_path: Path) -> None:
    pages = stored(tmp_path)
    assert "<td>interrupted</td>" in body(pages.listing(asked()))
    assert first_event(pages) == 'data: {"text": "interrupted, 3 trials stored", "over": true}\n\n'
    page = page_at(pages, "c1")
    assert "Interrupted: 3 trials" in page
    assert "Running: " not in page
    assert "data-events" not in page


def test_a_campaign_that_ends_between_two_looks_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that finishes between the read of its status and the check of its process is not "interrupted"."""
    pages = stored(tmp_path)

    def ends(*_: object) -> bool:
        with Store.open(pages.url) as another:
            another.set_campaign_status("c1", CampaignStatus.FINISHED)
        return False

    monkeypatch.setattr(liveness, "is_running", ends)
    assert "<td>finished</td>" in body(pages.listing(asked()))


def test_the_events_of_a_campaign_that_is_deleted_end_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database is away, the stream says so and goes on."""
    pages = stored(tmp_path, **ELSEWHERE["another machine"])
    monkeypatch.setattr(serving, "EVERY_S", 0.0)
    state, away = pages._state, [False, True, True, False]

    def look(name: str) -> Any:
        if not away:
            with Store.open(pages.url) as another:
                another.delete_campaign("c1")
        elif away.pop(0):
            raise StoreLostError("no connection")
        return state(name)

    async def read() -> list[str]:
        return [each async for each in serving.events(lambda: look("c1"))]

    said = [json.loads(each.removeprefix("data: ")) for each in ended(read())]
    assert said == [
        {"text": "running, 3 trials stored", "over": False},
        {"text": "the store is unavailable; this page goes on when it is back", "over": False},
        {"text": "running, 3 trials stored", "over": False},
        {"text": "the campaign is not in the store any more", "over": True},
    ]


def test_the_list_leaves_out_what_is_deleted_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = stored(tmp_path)
    with Store.open(pages.url) as store:
        store.create_campaign(CAMPAIGN.model_copy(update={"id": "c2"}))

    def goes(*_: object) -> bool:
        with Store.open(pages.url) as another:
            another.delete_campaign("c1")
        return False

    monkeypatch.setattr(liveness, "is_running", goes)
    page = body(pages.listing(asked()))
    assert "/campaign/c2" in page
    assert "/campaign/c1" not in page
    assert status_of(pages, "/campaign/c1")[0] == 404


def test_a_page_is_made_again_when_the_campaign_gets_a_note(tmp_path: Path) -> None:
    pages = stored(tmp_path)
    note = "after the <b>new</b> firmware"
    assert "firmware" not in page_at(pages, "c1")
    assert len(pages.made) == 1
    with Store.open(pages.url) as store:
        store.note_campaign("c1", note)
    page = page_at(pages, "c1")
    assert escape(note) in page
    assert note not in page
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


def test_a_page_that_takes_long_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made once for all who want it, and none of them keeps a thread: there are fewer threads than that."""
    served, made, release = stored(tmp_path), [], Event()
    with Store.open(served.url) as store:
        store.create_campaign(CAMPAIGN.model_copy(update={"id": "c2"}))
    page_of = making.page_of

    def slowly(campaigns: Sequence[Campaign], store: Store) -> Page:
        made.append(campaigns[0].id)
        assert campaigns[0].id == "c2" or release.wait(LIMIT_S)
        return page_of(campaigns, store)

    monkeypatch.setattr(making, "page_of", slowly)

    async def read() -> list[Response]:
        waiting = [asyncio.ensure_future(served.campaign(asked(campaign="c1"))) for _ in range(50)]
        try:
            for _ in range(2):  # the second time it is cached
                await asyncio.wait_for(served.campaign(asked(campaign="c2")), LIMIT_S)
            await asyncio.wait_for(served.changes(asked()), LIMIT_S)
            assert not any(each.done() for each in waiting)
        finally:
            release.set()
        return list(await asyncio.gather(*waiting))

    assert {body(each) for each in ended(read())} == {page_at(served, "c1")}
    assert sorted(made) == ["c1", "c2"]


def test_few_stores_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty requests made fifty copies of a store that others can write to, and each may take half of the space."""
    served, together = stored(tmp_path), Barrier(serving.MOST_OPEN + 1)

    def meeting(_store: Store) -> list[Campaign]:
        with suppress(BrokenBarrierError):
            together.wait(0.5)
            met.append(True)
        return []

    met: list[bool] = []
    monkeypatch.setattr(serving, "list_campaigns", meeting)
    with ThreadPoolExecutor(2 * serving.MOST_OPEN) as pool:
        found = [pool.submit(served.listing, asked()) for _ in range(2 * serving.MOST_OPEN)]
        assert {each.result().status_code for each in found} == {200}
    assert not met


def test_a_page_of_too_many_figures_is_brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any machine of a fleet can store a trial with millions of them."""
    monkeypatch.setattr(assemble, "BRIEF_FROM_FIGURES", 200)
    served = stored(tmp_path)
    assert "Omitted, because" not in page_at(served, "c1")
    made_up = {f"made_up_{number}": Value(value=1.0, unit=Unit.COUNT) for number in range(200)}
    key = TRIALS[3].key.model_copy(update={"campaign": "c1"})
    with Store.open(served.url) as store:
        store.add_trial(
            TRIALS[3].model_copy(update={"key": key, "metrics": {**TRIALS[3].metrics, **made_up}})
        )
        figures = store.count_figures("c1")
    page = page_at(served, "c1")
    assert f"Omitted, because the campaign has {figures} figures" in page
    assert "made_up_1" not in page


def status_of(pages: Pages, path: str) -> tuple[int, dict[str, str]]:
    """Ask the application, as a server would, and return the status and the headers of its answer."""
    said: list[MutableMapping[str, Any]] = []
    address, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": address, "raw_path": address.encode(), "query_string": query.encode(),
        "headers": [(b"host", b"localhost")], "server": ("localhost", 80), "scheme": "http", "root_path": "",
        "http_version": "1.1",
    }  # fmt: skip

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    ended(application(pages.url, Access.of("localhost"))(scope, receive, send))
    start = said[0]
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200), ("/campaign/c1", 200), ("/campaign/none", 404), ("/campaign/none/events", 404),
        ("/campaign/last~7", 404), ("/fleet/changes?study=none", 404), ("/campaign/c", 400),
        ("/compare?campaign=c1", 400), ("/fleet", 404),
    ],
)  # fmt: skip
def test_each_failure_has_its_status(tmp_path: Path, path: str, status: int) -> None:
    pages = stored(tmp_path)
    with Store.open(pages.url) as store:
        store.create_campaign(CAMPAIGN.model_copy(update={"id": "c2"}))
    assert status_of(pages, path)[0] == status


def test_a_campaign_that_cannot_be_read_is_an_error_of_the_server(tmp_path: Path) -> None:
    pages = stored(tmp_path)
    sql(f"sqlite:///{pages.url}", "UPDATE cells SET spec = '{}'")
    assert status_of(pages, "/campaign/c1")[0] == 500


def test_a_database_that_is_away_is_asked_again(tmp_path: Path) -> None:
    """Nothing listens on the port of this server."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        pages = Pages(url=f"postgresql+psycopg://127.0.0.1:{closed.getsockname()[1]}/fslab")
        for path in ("/", "/campaign/c1", "/campaign/c1/events"):
            status, headers = status_of(pages, path)
            assert (status, headers["retry-after"]) == (503, "5")
