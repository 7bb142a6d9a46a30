"""Limits of the server: concurrent requests, listeners and connections, and the time for a request to arrive.

Also adds headers to every response, also of refusals and errors: no page is stored, framed, or read by another site.

Too many requests or connections get a 503 response at once; they are not queued. A late request is disconnected.
"""

import asyncio
import resource

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_REQUESTS = 64
MOST_LISTENERS = 32  # of these: pages that wait for events, each as long as it is open
HEADER_LIMIT_S = 10.0
KEEP_ALIVE_S = 2
NOT_READ_LIMIT_S = 30.0
DESCRIPTORS = 4096
OWN_DESCRIPTORS = 512  # file descriptors that are reserved for stores and files

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_BUSY = "too many requests at once; try again in a second\n"
_LINES = (
    "HTTP/1.1 503 Service Unavailable",
    "Retry-After: 1",
    "Connection: close",
    "Content-Type: text/plain",
)
_ALL = (*_LINES, *(f"{name}: {value}" for name, value in HEADERS.items()), f"Content-Length: {len(_BUSY)}")
_FULL = "\r\n".join((*_ALL, "", _BUSY)).encode()


class Bounded:
    """Responds with 503 to requests above the limits."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests = 0
        self.listeners = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        listens = scope["path"].endswith("/events")
        if self.requests >= MOST_REQUESTS or (listens and self.listeners >= MOST_LISTENERS):
            refusal = PlainTextResponse(_BUSY, status_code=503, headers={"Retry-After": "1"})
            await refusal(scope, receive, send)
            return
        self.requests, self.listeners = self.requests + 1, self.listeners + listens
        try:
            await self.app(scope, receive, send)
        finally:
            self.requests, self.listeners = self.requests - 1, self.listeners - listens


class Connection(H11Protocol):
    """Closes a connection whose request does not arrive completely in time, or that exceeds ``most_connections``."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.write(_FULL)
            transport.close()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the time limit for a request.

        It counts from the start of the wait; more data does not extend it. While a response is sent, there is no limit.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_LIMIT_S, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def make_room() -> None:
    """Raise the process's limit of open file descriptors as far as allowed, up to ``DESCRIPTORS``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Return the maximum number of connections.

    It leaves some file descriptors free: without any, the server could not respond at all.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return DESCRIPTORS
    return max(soft - OWN_DESCRIPTORS, soft // 2)


class WithHeaders:
    """Adds ``HEADERS`` to the responses of an application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the start of its response."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, sent)
