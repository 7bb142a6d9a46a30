"""How much a server takes on at once: requests, listeners, connections, and how long a request may take to arrive.

Beyond it the response is 503, at once: requests are not queued.
"""

import asyncio
import resource
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_REQUESTS = 64
MOST_LISTENERS = 32  # of these: pages that wait for news, each as long as it is open
HEADER_LIMIT_S = 10.0
KEEP_ALIVE_S = 2
NOT_READ_LIMIT_S = 30.0
DESCRIPTORS = 4096
OWN_DESCRIPTORS = 512  # for stores and files

_BUSY = "too many requests at once; try again in a second\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(_BUSY), _BUSY.encode())
)


class Bounded:
    """Answers 503 to what is too much."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests = 0
        self.listeners = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
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
    """Ends a connection whose request does not arrive whole in time, and refuses those beyond ``most_connections``."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.write(_FULL)
            transport.close()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """From the first byte that we wait for, not from the last one that came; while it is answered not at all."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_LIMIT_S, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def make_room() -> None:
    """Let the process have as many descriptors as it may, up to what is useful."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Without a descriptor left, nothing could be answered at all."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return DESCRIPTORS
    return max(soft - OWN_DESCRIPTORS, soft // 2)


def settings() -> dict[str, Any]:
    """What uvicorn is told."""
    return {"http": Connection, "timeout_keep_alive": KEEP_ALIVE_S, "ws": "none"}
