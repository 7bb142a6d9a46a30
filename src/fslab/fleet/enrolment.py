"""Joining a fleet: a machine presents its invitation and gets a certificate. Server and client.

One exchange over TLS, with one JSON document in each direction. The invitation contains the fingerprint of the fleet's
certificate. The machine compares it before it sends any data. The server limits the size of a request and the time that
it waits, and signs only public keys.
"""

import contextlib
import hashlib
import hmac
import json
import logging
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fslab import texts
from fslab.cell import Frozen
from fslab.errors import FslabError, UsageError
from fslab.fleet import certificates, invitations
from fslab.names import Word, shown
from fslab.system import files

log = logging.getLogger("fslab.fleet")

PORT = 8785
REQUEST_BYTES = 16 << 10
PATIENCE_S = 10.0
AT_ONCE = 32


class JoinRequest(Frozen):
    """The document that a machine sends. ``request``: a certificate request, PEM."""

    name: Word
    secret: str
    request: str


class Membership(Frozen):
    """The answer: the authority's and the machine's certificate (PEM), the scheduler's address, the store's URL."""

    authority: str
    certificate: str
    scheduler: str
    store: str


@dataclass(kw_only=True, slots=True)
class _Places:
    """The open connections, oldest first, and the addresses of their peers; at most ``AT_ONCE``.

    If all places are taken, the peer with the most connections loses its oldest one: idle connections of one peer do
    not keep others waiting.
    """

    taken: dict[socket.socket, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: socket.socket, address: str) -> socket.socket:
        """Return the place of a connection: a second descriptor of it, which TLS does not take over."""
        place = connection.dup()
        with self.lock:
            if len(self.taken) >= AT_ONCE:
                peer, _ = Counter(self.taken.values()).most_common(1)[0]
                oldest = next(each for each, its_peer in self.taken.items() if its_peer == peer)
                del self.taken[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread ends
            self.taken[place] = address
        return place

    def leave(self, place: socket.socket) -> None:
        with self.lock:
            self.taken.pop(place, None)
            place.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class EnrolmentServer:
    """Admits machines that have an invitation. ``directory``: of the fleet. ``scheduler`` and ``store`` are sent to the
    machine."""

    directory: Path
    scheduler: str
    store: str
    tell: Callable[[str], object]

    def serve(self, listening: socket.socket) -> None:
        """Serve until the socket is closed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        mine = certificates.Credentials(directory=self.directory)
        context.load_cert_chain(mine.certificate, mine.key)
        places = _Places()
        while True:
            try:
                connection, address = listening.accept()
                place = places.take(connection, address[0])
            except OSError:
                if listening.fileno() < 0:  # closed
                    return
                time.sleep(1)  # too many open files, or the connection was aborted
                continue
            arguments = (context, connection, address[0], partial(places.leave, place))
            threading.Thread(target=self._answer, args=arguments, daemon=True).start()

    def _answer(
        self, context: ssl.SSLContext, connection: socket.socket, address: str, leave: Callable[[], object]
    ) -> None:
        try:
            connection.settimeout(PATIENCE_S)
            with context.wrap_socket(connection, server_side=True) as secured:
                answer = self._membership(_read(secured), address)
                secured.sendall(json.dumps(answer).encode() + b"\n")
        except (OSError, ValueError) as error:
            log.info("enrolment of %s: %s", address, error)
        finally:
            connection.close()
            leave()

    def _membership(self, document: bytes, address: str) -> dict[str, Any]:
        try:
            wanted = JoinRequest.model_validate_json(document)
            secret = bytes.fromhex(wanted.secret)
        except (ValidationError, ValueError):
            return {"error": "the request is not valid"}
        try:
            certificate = certificates.issue(self.directory, wanted.request.encode(), wanted.name)
        except ValueError as error:
            return {"error": str(error)}
        if not invitations.accept(self.directory, secret):
            self.tell(f"refused {address}: it has no valid invitation")
            return {
                "error": "the invitation is not valid, has expired or was used: fslab fleet invite makes a new one"
            }
        self.tell(f"{wanted.name} ({address}) joined the fleet")
        authority = certificates.Credentials(directory=self.directory).authority
        return Membership(
            authority=authority.read_text("ascii"),
            certificate=certificate.decode("ascii"),
            scheduler=self.scheduler,
            store=self.store,
        ).model_dump()


def join(address: tuple[str, int], token: invitations.Invitation, name: str, directory: Path) -> Membership:
    """Join the fleet whose enrolment server is at ``address``; write the certificates to ``directory``.

    Raises FslabError if the server cannot be reached, does not match the invitation's fingerprint, or refuses.
    """
    where = f"{address[0]}:{address[1]}"
    key, request = certificates.make_request(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the fingerprint is compared below, before any data is sent
    try:
        with (
            socket.create_connection(address, timeout=PATIENCE_S) as connection,
            context.wrap_socket(connection) as secured,
        ):
            shown_certificate = secured.getpeercert(binary_form=True) or b""
            if not hmac.compare_digest(hashlib.sha256(shown_certificate).digest(), token.fingerprint):
                raise UsageError(
                    "this is not the fleet that the invitation is for",
                    where=where,
                    hint="check the address; if it is right, somebody may be between you and the fleet",
                )
            asked = JoinRequest(name=name, secret=token.secret.hex(), request=request.decode("ascii"))
            secured.sendall(asked.model_dump_json().encode() + b"\n")
            answer = texts.json_of(_read(secured))
            refusal = answer.get("error") if isinstance(answer, dict) else None
            membership = None if refusal else Membership.model_validate(answer)
    except (OSError, ValueError) as error:
        raise FslabError(
            f"cannot join the fleet: {error}", where=where, hint="is fslab fleet scheduler running there?"
        ) from error
    if membership is None:
        raise FslabError(f"the fleet refused: {shown(str(refusal))}", where=where)
    files.make_directories(directory, 0o700)
    mine = certificates.Credentials(directory=directory)
    certificates.write(mine.key, key, 0o600)
    certificates.write(mine.authority, membership.authority.encode(), 0o644)
    certificates.write(mine.certificate, membership.certificate.encode(), 0o644)
    return membership


def _read(connection: ssl.SSLSocket) -> bytes:
    """Return one line. Raises ValueError if it is too long, OSError if it does not arrive in time."""
    found, until = b"", time.monotonic() + PATIENCE_S
    while not found.endswith(b"\n"):
        connection.settimeout(max(0.1, until - time.monotonic()))
        piece = connection.recv(REQUEST_BYTES)
        if not piece:
            raise ConnectionError("the connection was closed")
        found += piece
        if len(found) > REQUEST_BYTES or time.monotonic() > until:
            raise ValueError("too long")
    return found
