"""Runs the server (uvicorn) and announces its URL. The socket is bound first, so that the announced URL is correct."""

import socket
from collections.abc import Callable, Sequence

import uvicorn
from starlette.types import ASGIApp

from fslab.serve import bounds
from fslab.serve.app import application
from fslab.serve.guard import Access
from fslab.serve.headers import WithHeaders

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
