"""Decides which requests get a response.

The Host header must name this server. Unless the server is on the loopback, the token is required too. A web page can
send requests to any address, also under a name that its owner points to this machine (DNS rebinding): the Host header
reveals these. Pure, except that it makes responses.
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
# A registered name may have only the characters of DNS names and IPv4 addresses. Matched with fullmatch, because $ also
# matches before a final newline.
_NAME = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_HOST = re.compile(rf"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>{_NAME}))(?::[0-9]{{0,5}})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """Which requests are allowed.

    ``names``: hosts that a request may name. ``any_address``: whether it may also name any IP address. ``token``: None
    on the loopback.
    """

    names: Collection[str]
    any_address: bool = False
    token: str | None = None

    @classmethod
    def of(cls, host: str, more_names: Collection[str] = ()) -> Access:
        """Return the access rules for a server bound to ``host``, an address or a name."""
        if is_loopback(host):
            return cls(names=LOOPBACK_NAMES | {_canonical(name) for name in (host, *more_names)})
        everywhere = host in {"0.0.0.0", "::", ""}  # noqa: S104 - asked for by the user, and guarded by a token
        names = {_canonical(name) for name in (host, *more_names)} | LOOPBACK_NAMES
        return cls(names=names, any_address=everywhere, token=secrets.token_urlsafe(24))

    def allows_host(self, header: str | None) -> bool:
        """Return whether a Host header names this server."""
        name = host_of(header or "")
        if name is None:
            return False
        return name in self.names or (self.any_address and _address(name) is not None)

    def allows_token(self, given: str | None) -> bool:
        """Return whether a token is correct. The comparison takes the same time wherever the token differs."""
        return self.token is None or (
            given is not None and secrets.compare_digest(given.encode(), self.token.encode())
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address of a host."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def host_of(header: str) -> str | None:
    """Return the host of ``name:port``, ``[::1]:port`` or ``name`` in lower case; None for an invalid Host header.

    RFC 9110, section 7.2: ``uri-host [ ":" port ]``, as in RFC 3986, section 3.2.2. User information is not allowed.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return None
    if found["literal"] is not None:
        address = _address(found["literal"])
        return str(address) if isinstance(address, ipaddress.IPv6Address) and not address.scope_id else None
    return found["name"].lower()


def _canonical(name: str) -> str:
    """Return an address in its shortest form, or a name in lower case."""
    address = _address(name)
    return name.lower() if address is None else str(address)


class Guard(BaseHTTPMiddleware):
    """Refuses requests with 400 (unknown host), 401 (no token) or 403 (by another site)."""

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Refuse the request or pass it on."""
        access: Access = request.app.state.access
        return _refusal(access, request) or await call_next(request)


def _refusal(access: Access, request: Request) -> Response | None:
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or not access.allows_host(hosts[0]):
        return PlainTextResponse("unknown host name; to allow it: fslab serve --name HOST\n", status_code=400)
    # Pages are expensive to make, and making one disturbs a campaign that runs: another site may link to one, not load
    # it in the background or in a frame. Fetch Metadata Request Headers (W3C); only browsers send them.
    site, mode, what = (request.headers.get(f"sec-fetch-{name}") for name in ("site", "mode", "dest"))
    if site in {"cross-site", "same-site"} and (mode, what) != ("navigate", "document"):
        return PlainTextResponse("requested by another site\n", status_code=403)
    if access.token is None:
        return None
    given = request.query_params.get("token")
    if given is not None and access.allows_token(given):
        # Redirect to a URL without the token, so that it is not visible in the address bar or the history.
        # Exactly one slash: a path that starts with two would name another server.
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
