"""Who is answered: requests that name this server as their host and, off the loopback, bring the token.

A page in a browser may send requests to any address, also under a name that its owner makes point here (DNS
rebinding): the Host header tells these apart. Pure but for the answers that it gives.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

COOKIE = "fslab_token"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Of a registered name only what DNS and IPv4 addresses are made of; fullmatch, for $ would allow a line's end.
_NAME = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_HOST = re.compile(rf"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>{_NAME}))(?::[0-9]{{0,5}})?", re.ASCII)
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """``names``: hosts that a request may name; ``any_address``: also any IP address. ``token``: None on loopback."""

    names: Collection[str]
    any_address: bool = False
    token: str | None = None

    @classmethod
    def of(cls, host: str, more_names: Collection[str] = ()) -> Access:
        """For a server bound to a host: an address or a name."""
        if is_loopback(host):
            return cls(names=LOOPBACK_NAMES | {_canonical(name) for name in (host, *more_names)})
        everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104 - asked for by the user, and guarded by a token
        names = {_canonical(name) for name in (host, *more_names)} | LOOPBACK_NAMES
        return cls(names=names, any_address=everywhere, token=secrets.token_urlsafe(24))

    def allows_host(self, header: str | None) -> bool:
        """Whether a Host header names this server."""
        name = host_of(header or "")
        if name is None:
            return False
        return name in self.names or (self.any_address and _address(name) is not None)

    def allows_token(self, given: str | None) -> bool:
        """Whether a token is the right one; compared in the same time wherever it differs."""
        return self.token is None or (
            given is not None and secrets.compare_digest(given.encode(), self.token.encode())
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host's address."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def host_of(header: str) -> str | None:
    """The host of ``name:port``, ``[::1]:port`` or ``name``, in lower case; None for what is no Host header.

    RFC 9110, section 7.2: ``uri-host [ ":" port ]``, as in RFC 3986, section 3.2.2. User information is no part of it.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return None
    if found["literal"] is not None:
        address = _address(found["literal"])
        return str(address) if isinstance(address, ipaddress.IPv6Address) and not address.scope_id else None
    return found["name"].lower()


def _canonical(name: str) -> str:
    """An address in its shortest form, a name in lower case."""
    address = _address(name)
    return name.lower() if address is None else str(address)


class Guard(BaseHTTPMiddleware):
    """Refuses with 400 (another host) or 401 (no token); puts the headers on every answer."""

    access: Access

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Decide, then let it be answered."""
        access: Access = request.app.state.access
        response = _refusal(access, request) or await call_next(request)
        response.headers.update(HEADERS)
        return response


def _refusal(access: Access, request: Request) -> Response | None:
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or not access.allows_host(hosts[0]):
        return PlainTextResponse("unknown host name; to allow it: fslab serve --name HOST\n", status_code=400)
    if access.token is None:
        return None
    given = request.query_params.get("token")
    if given is not None and access.allows_token(given):
        # The token leaves the address bar, and with it the history.
        # One slash: two would name another server.
        clean = RedirectResponse("/" + request.url.path.lstrip("/\\"), status_code=303)
        clean.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        return clean
    if access.allows_token(request.cookies.get(COOKIE)):
        return None
    return PlainTextResponse(
        "the token is missing or wrong: open the URL that fslab serve printed\n", status_code=401
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
