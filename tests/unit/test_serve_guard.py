"""Tests of the server's access control: which Host headers and tokens are accepted."""

from __future__ import annotations

import pytest

from fslab.serve import app
from fslab.serve.guard import Access, host_of


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("127.0.0.1:8765", "127.0.0.1"),
        ("LocalHost", "localhost"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("evil.example:8765", "evil.example"),
        ("127.0.0.1:", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]:1", "::1"),
    ],
)
def test_the_host_of_a_header(header: str, host: str) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(
    "header",
    [
        "", " ", ":80", "127.0.0.1:1@evil.com", "localhost:evil.com", "[::1]evil.com", "[::1]:evil", "[::1", "::1",
        "[127.0.0.1]", "[localhost]", "[::1%lo]", "[::1%25lo]", "user@localhost", "localhost@evil.com", "localhost/",
        "localhost\\@evil.com", "localhost?", "localhost#", "localhost:80:80", "localhost:-1", "localhost:123456",
        "localhost\n", "localhost evil.com", "localhost,evil.com", "localhost.", "localhost..x", ".localhost",
        "lo%63alhost", "\uff4cocalhost", "localhost:\uff18\uff10", "http://localhost",
    ],
)  # fmt: skip
def test_what_is_no_host_header_is_refused(header: str) -> None:
    assert host_of(header) is None
    assert not Access.of("127.0.0.1").allows_host(header)
    assert not Access.of("0.0.0.0").allows_host(header)


@pytest.mark.parametrize("bound", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_on_the_loopback_no_token_but_names_of_its_own(bound: str) -> None:
    access = Access.of(bound)
    assert access.token is None
    assert access.allows_token(None)
    assert access.allows_host("localhost:8765")
    assert access.allows_host(f"[{bound}]:1" if ":" in bound else f"{bound}:1")
    for other in ("evil.example:8765", "127.0.0.1.evil.example", "", None, "192.0.2.7:8765"):
        assert not access.allows_host(other)


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "192.0.2.7", "lab.example"])
def test_elsewhere_a_token(bound: str) -> None:
    access = Access.of(bound, ["proxy.example"])
    assert access.token is not None
    assert len(access.token) >= 32
    assert access.allows_token(access.token)
    for wrong in (None, "", access.token[:-1], access.token + "x", "ä"):
        assert not access.allows_token(wrong)
    assert access.allows_host("proxy.example")
    assert not access.allows_host("evil.example")
    assert access.allows_host("198.51.100.1:8765") is (bound in {"0.0.0.0", "::"})


def test_each_server_has_a_token_of_its_own() -> None:
    assert Access.of("0.0.0.0").token != Access.of("0.0.0.0").token


@pytest.mark.parametrize("host", ["a..b", "a\udcff", "x" * 64])
def test_what_is_no_name_of_a_host_is_an_error(host: str) -> None:
    with pytest.raises(UnicodeError):
        app.run(None, host=host, port=0, names=[], announce=print)
