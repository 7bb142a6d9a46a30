"""Tests of the server's limits over real sockets: many or incomplete requests, listeners. Speed is not tested."""

from __future__ import annotations

import resource
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.made import campaign

from fslab.campaign import liveness
from fslab.serve import bounds
from fslab.serve.app import BACKLOG, application, server
from fslab.serve.guard import Access
from fslab.store import schema
from fslab.store.store import Store

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
GIVE_UP_S = 120.0  # only failing tests reach it

Connect = Callable[[], socket.socket]


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Return an event. Until it is set, all campaigns count as running, so that listeners stay connected."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def connect(tmp_path: Path, released: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Yield a function that connects to the test's own server, which has a store with one campaign."""
    url = str(tmp_path / "store.sqlite")
    with Store.open(url) as store:
        store.create_campaign(campaign(cells=()))
    monkeypatch.setattr(liveness, "is_running", lambda *_: not released.is_set())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    app = application(url, Access.of("localhost"))
    with ExitStack() as undo:
        listening = undo.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)))
        made = server(app)
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listening]})
        thread.start()

        def end() -> None:
            released.set()
            made.should_exit = True
            thread.join(GIVE_UP_S)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert not thread.is_alive()

        undo.callback(end)

        def one() -> socket.socket:
            made_socket = socket.create_connection(listening.getsockname(), timeout=GIVE_UP_S)
            return undo.enter_context(closing(made_socket))

        yield one


def answer(connection: socket.socket) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def code(connection: socket.socket) -> int:
    return int(answer(connection).split(None, 2)[1])


def answered(connect: Connect) -> int:
    """Return the status code of one more request. Repeat it on 503: earlier connections can still be open."""
    for _ in range(1000):
        connection = connect()
        connection.sendall(GET)
        if (found := code(connection)) != 503:
            return found
    return 503


def test_a_thousand_requests_at_once_are_all_answered(connect: Connect) -> None:
    connections = [connect() for _ in range(1000)]
    for connection in connections:
        connection.sendall(GET)
    answers = [answer(connection) for connection in connections]
    codes = Counter(int(text.split(None, 2)[1]) for text in answers)
    assert set(codes) <= {200, 503}
    assert all(b"x-frame-options: deny" in text.lower() for text in answers), "also where it refuses"
    assert codes.total() == 1000
    assert codes[200] >= 1
    assert answered(connect) == 200


def test_what_never_becomes_a_request_is_ended(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections without a complete request are closed.

    Among them: bytes that arrive one by one, a second request on the same connection, an incomplete body.
    """
    monkeypatch.setattr(bounds, "HEADER_LIMIT_S", 0.2)
    silent, begun, second, body = (connect() for _ in range(4))
    begun.sendall(b"GET / HTTP/1.1\r\nHost:")
    second.sendall(GET.replace(b"close", b"keep-alive") + b"GET /")
    body.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
    for connection in (silent, begun, second, body):
        answer(connection)  # returns only if the connection was closed
    dripping = connect()
    with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
        for _ in range(5000):  # closed because of the time, long before the header is too large
            dripping.sendall(b"x")
            time.sleep(0.01)
    assert answered(connect) == 200


def test_listeners_leave_room_for_readers(connect: Connect, released: threading.Event) -> None:
    listeners = [connect() for _ in range(bounds.MOST_REQUESTS + 10)]
    for connection in listeners:
        connection.sendall(GET.replace(b"GET /", b"GET /campaign/c1/events"))
    first = [connection.recv(12) for connection in listeners]
    assert Counter(first) == {
        b"HTTP/1.1 200": bounds.MOST_LISTENERS,
        b"HTTP/1.1 503": len(listeners) - bounds.MOST_LISTENERS,
    }
    assert answered(connect) == 200
    released.set()


def test_two_hosts_are_none(connect: Connect) -> None:
    for head in (b"Host: localhost\r\nHost: localhost", b"Host: 127.0.0.1:1@evil.com", b"X: y"):
        connection = connect()
        connection.sendall(b"GET / HTTP/1.1\r\n" + head + b"\r\nConnection: close\r\n\r\n")
        assert code(connection) == 400


def test_a_text_of_the_store_has_nothing_that_a_terminal_obeys(connect: Connect, tmp_path: Path) -> None:
    """Error messages contain no control characters from the store: curl prints them unchanged to the terminal."""
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as store, store:
        store.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9\x1b[31m'")
    with connect() as asking, asking.makefile("rb") as answer:
        asking.sendall(GET)
        told = answer.read()
    assert b"schema 9 [31m" in told
