"""Serves pages: the list of campaigns, each campaign, comparisons, and the fleet. Accepts GET and HEAD only."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from threading import BoundedSemaphore
from typing import Any

import uvicorn
from anyio import CapacityLimiter, sleep
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from fslab.api import comparisons, pages
from fslab.api.study_campaigns import list_campaigns
from fslab.campaign.liveness import as_it_is
from fslab.errors import (
    AmbiguousNameError,
    FslabError,
    NotStoredError,
    StoreError,
    StoreLostError,
    UsageError,
)
from fslab.names import shown
from fslab.report.fleet_terminal import changes_summary as summary
from fslab.report.fleet_terminal import fleet_changes as changes
from fslab.report.page import render
from fslab.serve import bounds
from fslab.serve.bounds import Bounded, WithHeaders
from fslab.serve.guard import Access, Guard
from fslab.store.campaign import Campaign, CampaignStatus
from fslab.store.fleet import FleetStore
from fslab.store.store import Store
from fslab.units import counted

KEPT = 8  # pages that are cached while their campaigns do not change
MOST_MADE = 3  # pages that are made at once; each may take a quarter of the memory for output of tools
MOST_OPEN = 8  # stores: of one that others can write to, each is a copy
MOST_COMPARED = 6
RETRY_S = 5
EVERY_S = 1.0
RUNS = 20


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


@dataclass(kw_only=True, slots=True)
class Pages:
    """Makes pages from a store.

    The store is opened again for each page, because another program writes to it. Any machine of a fleet can store a
    campaign whose page takes minutes: only those who want this page wait for it, and none of them keeps a thread.

    ``made``: finished pages. ``making``: pages that are being made, by the ids of their campaigns.
    """

    url: str | None
    made: dict[tuple[Any, ...], str] = field(default_factory=dict)
    making: dict[tuple[str, ...], asyncio.Task[str]] = field(default_factory=dict)
    at_once: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MOST_MADE))
    summing: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    opening: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MOST_OPEN))

    @contextmanager
    def _store(self) -> Iterator[Store]:
        """Open the store, when few others have it open. Not in the thread of the event loop."""
        with self.opening, Store.open(self.url, create=False) as store:
            yield store

    def listing(self, _request: Request) -> Response:
        """Return the list of all campaigns, newest first."""
        with self._store() as store:
            rows = list_campaigns(store)[::-1]
            return HTMLResponse(render.listing(rows, str(store.path), fleet=store.is_shared))

    def fleet(self, _request: Request) -> Response:
        """Return the page of the fleet that shares this store."""
        with self._store() as store:
            return HTMLResponse(fleet_page(FleetStore(store)))

    async def changes(self, request: Request) -> Response:
        """Return the page with the changes over time on all machines that ran a study."""
        study = request.query_params.get("study") or None
        return HTMLResponse(await run_sync(self._changes, study, limiter=self.summing))

    def _changes(self, study: str | None) -> str:
        with self._store() as store:
            found = comparisons.histories_of_machines(store, study)
        name = found[0].study if found else str(study)
        return render.changes(name, summary(found), changes(found))

    async def campaign(self, request: Request) -> Response:
        """Return the page of one campaign. While the campaign runs, its page receives events."""
        return HTMLResponse(await self._page((request.path_params["campaign"],)))

    async def compare(self, request: Request) -> Response:
        """Return a page that compares the selected campaigns, oldest first. UsageError for too few or too many."""
        names = tuple(dict.fromkeys(request.query_params.getlist("campaign")))
        if not 2 <= len(names) <= MOST_COMPARED:
            hint = f"select 2 to {MOST_COMPARED} and compare them again"
            raise UsageError(f"cannot compare {counted(len(names), 'campaign')}", hint=hint)
        return HTMLResponse(await self._page(names))

    def events(self, request: Request) -> Response:
        """Return the server-sent events of a campaign."""
        campaign = request.path_params["campaign"]
        self._state(campaign)  # StoreError for an unknown name, before the stream starts
        return StreamingResponse(events(lambda: self._state(campaign)), media_type="text/event-stream")

    def _state(self, name: str) -> CampaignProgress:
        with self._store() as store:
            return state_of(as_it_is(store.campaign(name), store), store)

    async def _page(self, names: tuple[str, ...]) -> str:
        key, campaigns, states = await run_sync(self._wanted, names)
        if (found := self.made.get(key)) is not None:
            return found
        ids = tuple(each.id for each in campaigns)
        making = self.making.get(ids)
        if making is None:
            making = self.making[ids] = asyncio.ensure_future(self._made(key, campaigns, states))
            making.add_done_callback(lambda _: self.making.pop(ids))
        return await asyncio.shield(making)  # made to its end also if who asked first is gone

    def _wanted(
        self, names: tuple[str, ...]
    ) -> tuple[tuple[Any, ...], list[Campaign], list[CampaignProgress]]:
        """Return the key of a page in ``made``, its campaigns and their progress."""
        with self._store() as store:
            found = (as_it_is(store.campaign(name), store) for name in names)
            campaigns = sorted(found, key=lambda each: each.created)
            states = [state_of(each, store) for each in campaigns]
            traced = [store.count_traced(each.id) for each in campaigns]
            return (*map(_shown, campaigns), *states, *traced), campaigns, states

    async def _made(
        self, key: tuple[Any, ...], campaigns: list[Campaign], states: list[CampaignProgress]
    ) -> str:
        alone = len(campaigns) == 1 and states[0].running
        events = f"/campaign/{campaigns[0].id}/events" if alone else None
        live = render.LivePage(events=events, known=states[0].text)

        def made() -> str:
            with self._store() as store:
                return pages.html_of(pages.page_of(campaigns, store), live)

        page = await run_sync(made, limiter=self.at_once)
        while len(self.made) >= KEPT:
            self.made.pop(next(iter(self.made)))
        self.made[key] = page
        return page


def _shown(campaign: Campaign) -> str:
    """Return what a page shows of a campaign and what can change without a trial: its plan, name and note."""
    return campaign.model_dump_json(include={"id", "settings", "trials", "name", "note"})


def application(url: str | None, access: Access) -> Starlette:
    served = Pages(url=url)
    app = Starlette(
        routes=[
            Route("/", served.listing),
            Route("/fleet", served.fleet),
            Route("/fleet/changes", served.changes),
            Route("/compare", served.compare),
            Route("/campaign/{campaign}", served.campaign),
            Route("/campaign/{campaign}/events", served.events),
        ],
        middleware=[Middleware(Bounded), Middleware(Guard)],
        exception_handlers={FslabError: _failed},
    )
    app.state.access = access
    return app


async def _failed(_request: Request, error: Exception) -> Response:
    """Return the message that a terminal shows too. Status 503 if the database is away, so that a page asks again."""
    headers = {"retry-after": str(RETRY_S)} if isinstance(error, StoreLostError) else {}
    return PlainTextResponse(f"{shown(str(error))}\n", status_code=_status(error), headers=headers)


def _status(error: Exception) -> int:
    match error:
        case StoreLostError():
            return 503
        case NotStoredError():
            return 404
        case StoreError() if not isinstance(error, AmbiguousNameError):
            return 500
    return 400


def state_of(campaign: Campaign, store: Store) -> CampaignProgress:
    """Return the progress of a campaign, whose status is the actual one (``as_it_is``)."""
    return CampaignProgress(
        trials=store.count(campaign.id),
        status=campaign.status.value.replace("_", " "),
        running=campaign.status is CampaignStatus.RUNNING,
    )


async def events(read: Callable[[], CampaignProgress]) -> AsyncIterator[str]:
    """Yield a message at once, then one for every change, until the campaign has ended or is not there any more.

    While the database is away, the message says so. The stream has begun: an error could not be answered any more.
    """
    known = ""
    while True:
        text, over = await run_sync(_news, read)
        if text != known:
            yield f"data: {json.dumps({'text': text, 'over': over})}\n\n"
        if over:
            return
        known = text
        await sleep(EVERY_S)


def _news(read: Callable[[], CampaignProgress]) -> tuple[str, bool]:
    """Return what to say about a campaign, and whether there is nothing more to say."""
    try:
        state = read()
    except StoreLostError:
        return "the store is unavailable; this page goes on when it is back", False
    except NotStoredError:
        return "the campaign is not in the store any more", True
    except StoreError as error:
        return shown(error.what), True
    return state.text, not state.running


def fleet_page(fleet: FleetStore) -> str:
    """Return the page with the current contents of the store."""
    machines, schedules, parts = fleet.machines(), fleet.schedules(), fleet.summaries(RUNS)
    online = sum(each.is_online for each in machines)
    busy = sum(each.is_online and each.running is not None for each in machines)
    late = sum(each.message is not None for each in schedules)
    summary = f"Machines online: {online} of {len(machines)}; running a study: {busy}."
    if late:
        summary += f" {counted(late, 'schedule')} could not be started."
    runs = [list(own) for _, own in groupby(parts, key=lambda each: each.run)]
    return render.fleet(summary, machines, schedules, runs)


BACKLOG = 2048


def run(
    url: str | None, *, host: str, port: int, names: Sequence[str], announce: Callable[[str], object]
) -> None:
    """Serve until a signal. OSError if it cannot listen on the address, UnicodeError if ``host`` is not a host name."""
    host.encode("idna")  # checked here, because bind() would raise TypeError
    access = Access.of(host, names)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Disconnects a client that does not read the response (tcp(7)). Accepted sockets inherit this option.
        not_read_ms = int(bounds.NOT_READ_LIMIT_S * 1000)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, not_read_ms)
        listening.bind((host, port))
        listening.listen(BACKLOG)  # from here on, the kernel accepts connections, even before uvicorn runs
        shown = f"[{host}]" if family is socket.AF_INET6 else host
        query = f"?token={access.token}" if access.token else ""
        announce(f"http://{shown}:{listening.getsockname()[1]}/{query}")
        server(application(url, access)).run(sockets=[listening])


def server(app: ASGIApp) -> uvicorn.Server:
    """Return a uvicorn server for an application, with the limits of ``bounds``."""
    bounds.make_room()
    config = uvicorn.Config(
        WithHeaders(app), log_level="error", server_header=False, timeout_graceful_shutdown=1, lifespan="off",
        backlog=BACKLOG, http=bounds.Connection, timeout_keep_alive=bounds.KEEP_ALIVE_S, ws="none",
    )  # fmt: skip
    return uvicorn.Server(config)
