"""Tests of ``fslab serve`` with a real server, store and browser: its pages, and the requests that it rejects."""

from __future__ import annotations

import http.client
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser import campaigns
from tests.browser.conftest import Opener
from tests.hold import Hold
from tests.limits import LIMIT_S
from tests.starter import Started, Starter

from fslab.store.campaign import CampaignStatus
from fslab.store.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass
class Server:
    address: str

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/", self.address)
        assert found
        return int(found[1])

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = (
            answer.status,
            answer.read().decode(),
            {key.lower(): value for key, value in answer.getheaders()},
        )
        connection.close()
        return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return the path of a store with two finished campaigns."""
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as opened:
        for number, name in enumerate(("20261120-214900-aaaa", "20261121-214900-bbbb")):
            campaign, trials = campaigns.small()
            opened.create_campaign(
                campaign.model_copy(update={"id": name, "study_title": f"{campaigns.TITLE} {number}"})
            )
            for trial in trials:
                opened.add_trial(
                    trial.model_copy(update={"key": trial.key.model_copy(update={"campaign": name})})
                )
    return path


@pytest.fixture
def serve(store: Path, starter: Starter, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started = []

    def start(*more: str) -> Server:
        argv = ["fslab", "serve", "--store", str(store), "--port", "0", *more]
        started.append(starter.start(argv, cwd=tmp_path))
        return Server(address=started[-1].first_line())

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)


def test_a_list_a_campaign_and_two_compared(serve: Callable[..., Server], opened: Opener) -> None:
    server = serve()
    found = opened(server.address)
    page = found.page
    assert page.locator("tbody tr").count() == 2
    page.get_by_role("link", name=campaigns.TITLE).first.click()
    assert page.locator("h1").inner_text() == f"{campaigns.TITLE} 1"
    page.locator("figure.chart").first.scroll_into_view_if_needed()  # it is drawn when it is nearly in view
    page.locator("figure.chart svg").first.wait_for()
    page.get_by_role("link", name="All campaigns").click()
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare").click()
    page.locator(".comparison svg").first.wait_for()
    assert page.locator(".comparison table", has_text="Every figure").locator("tbody tr").count() == 9
    assert page.evaluate("window.evil") is None
    assert [url for url in found.asked if not url.startswith((server.address, "data:"))] == []
    assert [text for text in found.said if text.startswith(("error", "warning"))] == []


def test_a_campaign_that_was_killed_has_no_news(serve: Callable[..., Server], store: Path) -> None:
    """A campaign with the status "running" that no process runs is shown as interrupted. Its events end at once."""
    server = serve()
    with Store.open(str(store)) as opened_store:
        opened_store.set_campaign_status("20261120-214900-aaaa", CampaignStatus.RUNNING)
    code, text, headers = server.ask("/campaign/20261120-214900-aaaa/events")
    assert code == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert text == 'data: {"text": "interrupted, 41 trials stored", "over": true}\n\n'
    assert "interrupted" in server.ask("/")[1]
    assert "Interrupted: 41 trials" in server.ask("/campaign/20261120-214900-aaaa")[1]


STUDY = """\
title: Live
media: {{here: {{type: directory, path: .}}}}
stacks: {{here: {{medium: here}}}}
workloads:
  held: {{tool: command, run: {run}, space: 1m}}
trials: 3
cache: warm
"""


@dataclass
class Live:
    """A campaign that runs, held in its first trial, and its page."""

    process: Started
    page: Page


@pytest.fixture
def live(
    serve: Callable[..., Server], starter: Starter, tmp_path: Path, opened: Opener, hold: Hold
) -> Iterator[Live]:
    (tmp_path / "live.yaml").write_text(STUDY.format(run=hold.run))
    server = serve()
    argv = ["fslab", "run", "live.yaml", "--store", "store.sqlite", "--json", "--allow-commands"]
    running = starter.start(argv, cwd=tmp_path)
    try:
        hold.reached(running)
        page = opened(server.address).page
        page.get_by_role("link", name="Live").click()
        page.locator("#live", has_text="running").wait_for()
        yield Live(process=running, page=page)
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=LIMIT_S)


def test_a_running_campaign_goes_on_in_the_page(live: Live, hold: Hold) -> None:
    """The page of a running campaign shows its progress, and at the end its results, without being loaded again."""
    page = live.page
    page.evaluate("window.loaded = 'once'")
    hold.release()
    page.locator("#live", has_text="1 trial").wait_for()
    hold.release_all()
    page.locator("#live", has_text=re.compile(r"finished, \d+ trials stored")).wait_for()
    page.locator("h2", has_text="Machine and method").wait_for()
    page.locator("details", has_text=re.compile(r"\d+ stored")).first.wait_for()
    assert page.evaluate("window.loaded") == "once"
    assert live.process.wait(timeout=LIMIT_S) == 0


def test_a_live_page_survives_a_database_that_is_away(live: Live, hold: Hold) -> None:
    """The page stays as it is while the server cannot read the store, and is renewed when it can."""
    page, away = live.page, re.compile(r"/campaign/[^/]+$")
    page.route(away, lambda route: route.fulfill(status=503, body="the database is away"))
    with page.expect_response(lambda answer: answer.status == 503):
        hold.release_all()
    page.locator("#live", has_text=re.compile(r"finished, \d+ trials stored")).wait_for()
    assert page.locator("#main h1").count() == 1
    page.unroute(away)
    page.locator("h2", has_text="Machine and method").wait_for()
    assert live.process.wait(timeout=LIMIT_S) == 0


def test_the_page_of_a_campaign_that_is_deleted_says_so_and_asks_no_more(live: Live, tmp_path: Path) -> None:
    page = live.page
    (tmp_path / "store.sqlite-running").unlink()  # its lock: else nobody on this machine can delete it
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        page.expect_response(lambda each: each.status == 404),
    ):
        store.delete_campaign(store.campaign().id)
    page.locator("#live", has_text="not in the store any more").wait_for()
    assert page.locator("#main h1").count() == 1, "what was seen stays"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(4000)  # longer than the pause before a page asks again
    assert asked == []


def test_what_is_refused(serve: Callable[..., Server]) -> None:
    server = serve()
    assert server.ask("/")[0] == 200
    assert server.ask("/", Host="evil.example")[0] == 400
    assert server.ask("/", Host=f"localhost:{server.port}")[0] == 200
    for method in ("POST", "PUT", "DELETE"):
        assert server.ask("/", method)[0] == 405
    assert server.ask("/campaign/none")[0] == 404
    assert server.ask("/compare?campaign=20261120-214900-aaaa")[0] == 400
    for path, host in (("/", "localhost"), ("/", "evil.example"), ("/campaign/none", "localhost")):
        headers = server.ask(path, Host=f"{host}:{server.port}")[2]
        assert headers["x-frame-options"] == "DENY", path
        assert headers["cache-control"] == "no-store", path


def test_elsewhere_than_on_the_loopback_a_token_is_needed(
    serve: Callable[..., Server], opened: Opener
) -> None:
    server = serve("--host", "0.0.0.0")
    token = server.address.partition("?token=")[2]
    assert server.ask("/")[0] == 401
    assert server.ask("/?token=wrong")[0] == 401
    code, _, headers = server.ask(f"/?token={token}")
    assert code == 303
    assert headers["location"] == "/"
    assert "HttpOnly" in headers["set-cookie"]
    assert "samesite=strict" in headers["set-cookie"].lower()
    page = opened(f"http://127.0.0.1:{server.port}/?token={token}").page
    assert page.url == f"http://127.0.0.1:{server.port}/"
    assert page.locator("tbody tr").count() == 2


def test_another_site_can_link_to_a_page_but_not_load_it(serve: Callable[..., Server]) -> None:
    server, expected = (
        serve(),
        {
            ("cross-site", "no-cors", "image"): 403,
            ("cross-site", "navigate", "iframe"): 403,
            ("same-site", "cors", "empty"): 403,
            ("cross-site", "navigate", "document"): 200,
            ("same-origin", "cors", "empty"): 200,
            ("none", "navigate", "document"): 200,
        },
    )
    keys = ("Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest")
    assert {each: server.ask("/", **dict(zip(keys, each, strict=True)))[0] for each in expected} == expected
