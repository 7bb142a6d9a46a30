"""Tests of a disk that fslab-disk offers to guests over vhost-user, with normal and hostile drivers. No root needed."""

from __future__ import annotations

import contextlib
import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import vhost_client as virtio
from tests.disk_server import BINARY, MIB, SIZE, Server
from tests.limits import LIMIT_S
from tests.vhost_client import GUEST_BASE, Client

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="fslab-disk is not installed beside this Python")

Connect = Callable[..., Client]
PAGE = 4096


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, "--unmounted", "--profile", "hdd-7200")
    try:
        assert made.ask("offer", socket=str(tmp_path / "guest"), serial="disk-1") == {"ok": True}
        made.ask("pace", real=False)  # the requests need not take the modelled time
        yield made
    finally:
        made.end()


@pytest.fixture
def connect(server: Server, tmp_path: Path) -> Iterator[Connect]:
    with contextlib.ExitStack() as undo:

        def made(**options: int) -> Client:
            client = Client(tmp_path / "guest", **options)
            undo.callback(client.close)
            return client

        yield made


def operations(server: Server) -> dict[str, int]:
    return {name: each["requests"] for name, each in server.ask("statistics")["operations"].items()}


@pytest.mark.parametrize("regions", [1, 2])
def test_a_driver_reads_what_it_wrote(server: Server, connect: Connect, regions: int) -> None:
    client = connect(regions=regions)
    client.begin()
    assert struct.unpack("<Q", client.configuration()[:8]) == (SIZE // 512,)
    data = random.Random(1).randbytes(MIB)
    assert client.request(virtio.WRITE, 2048, data=data) == (virtio.OK, b"")
    assert client.request(virtio.FLUSH)[0] == virtio.OK
    assert client.request(virtio.READ, 2048, room=MIB) == (virtio.OK, data)
    ranges = struct.pack("<QII", 2048, 8, 0)
    assert client.request(virtio.WRITE_ZEROES, data=ranges)[0] == virtio.OK
    assert client.request(virtio.READ, 2048, room=MIB) == (virtio.OK, bytes(PAGE) + data[PAGE:])
    assert client.request(virtio.GET_ID, room=20) == (virtio.OK, b"disk-1".ljust(20, b"\0"))
    assert operations(server) == {"read": 2, "write": 1, "flush": 1, "discard": 1}


def test_a_hard_disk_has_no_discard_and_an_ssd_has(connect: Connect, tmp_path: Path) -> None:
    discard = 1 << 13
    assert not connect().number(1) & discard
    (tmp_path / "ssd").mkdir()
    ssd = Server(tmp_path / "ssd", "--unmounted", "--profile", "ssd-sata")
    try:
        ssd.ask("offer", socket=str(tmp_path / "ssd/guest"), serial="x")
        client = Client(tmp_path / "ssd/guest")
        client.begin()
        assert client.number(1) & discard
        assert client.request(virtio.DISCARD, data=struct.pack("<QII", 0, 8, 0))[0] == virtio.OK
        client.close()
    finally:
        ssd.end()


def test_one_guest_after_another(server: Server, connect: Connect) -> None:
    """A guest can connect after another has disconnected. It gets no reply to a request of the first one."""
    first = connect()
    first.begin()
    assert first.request(virtio.WRITE, 0, data=b"x" * PAGE)[0] == virtio.OK
    server.ask("pace", real=True)
    first.memory[virtio.HEADER : virtio.HEADER + 16] = struct.pack("<IIQ", virtio.READ, 0, 4096)
    first.submit()
    first.socket.close()
    second = connect()
    second.begin()
    server.ask("pace", real=False)
    assert second.request(virtio.READ, 0, room=PAGE) == (virtio.OK, b"x" * PAGE)


def test_a_cut_of_power_fails_a_guest_s_requests(server: Server, connect: Connect) -> None:
    client = connect()
    client.begin()
    assert client.request(virtio.WRITE, 0, data=b"x" * PAGE)[0] == virtio.OK
    assert client.request(virtio.FLUSH)[0] == virtio.OK
    server.ask("cut", unflushed="lost")
    assert client.request(virtio.READ, 0, room=PAGE)[0] == virtio.FAILED
    assert client.request(virtio.WRITE, 0, data=b"y" * PAGE)[0] == virtio.FAILED
    server.ask("power_on")
    assert client.request(virtio.READ, 0, room=PAGE) == (virtio.OK, b"x" * PAGE)


@pytest.mark.parametrize(
    ("kind", "sector", "length", "status"),
    [
        (virtio.READ, SIZE // 512, PAGE, virtio.FAILED),
        (virtio.READ, SIZE // 512 - 1, PAGE, virtio.FAILED),
        (virtio.READ, (1 << 55), PAGE, virtio.FAILED),
        (virtio.READ, (1 << 64) - 1, PAGE, virtio.FAILED),
        (virtio.READ, 0, 100, virtio.FAILED),
        (virtio.READ, 0, 6 * MIB, virtio.FAILED),
        (77, 0, PAGE, virtio.UNSUPPORTED),
    ],
)
def test_what_no_disk_has_is_refused(
    connect: Connect, kind: int, sector: int, length: int, status: int
) -> None:
    client = connect()
    client.begin()
    assert client.request(kind, sector, room=length)[0] == status
    assert client.request(virtio.READ, 0, room=PAGE)[0] == virtio.OK


@pytest.mark.parametrize(
    "ranges",
    [b"", b"short", struct.pack("<QII", SIZE // 512, 1, 0), struct.pack("<QII", (1 << 64) - 1, 99, 0)],
)
def test_ranges_that_are_none(connect: Connect, ranges: bytes) -> None:
    client = connect()
    client.begin()
    assert client.request(virtio.WRITE_ZEROES, data=ranges)[0] == virtio.FAILED
    assert client.request(virtio.READ, 0, room=PAGE)[0] == virtio.OK


def test_chains_that_are_none(server: Server, connect: Connect) -> None:
    """Invalid chains (loops, addresses outside the guest's memory, no room for a status) are returned, not executed."""
    client = connect()
    client.begin()
    away = GUEST_BASE + virtio.MEMORY
    chains = [
        [(GUEST_BASE + virtio.HEADER, 16, virtio.NEXT, 0)],
        [(away - 8, 16, 0, 0)],
        [((1 << 64) - 8, 0xFFFFFFFF, virtio.WRITABLE, 0)],
        [(GUEST_BASE + virtio.HEADER, 16, 0, 0)],
        [
            (GUEST_BASE + virtio.HEADER, 4, virtio.NEXT, 1),
            (GUEST_BASE + virtio.STATUS, 1, virtio.WRITABLE, 0),
        ],
        [(GUEST_BASE + virtio.HEADER, 16, virtio.NEXT, 1), (away, PAGE, virtio.WRITABLE, 0)],
        [(away, 16, virtio.INDIRECT, 0)],
        [(GUEST_BASE + virtio.HEADER, 17, virtio.INDIRECT, 0)],
    ]
    for chain in chains:
        for number, entry in enumerate(chain):
            client.describe(number, *entry)
        client.submit()
        assert client.finished()
    assert client.request(virtio.READ, 0, room=PAGE)[0] == virtio.OK
    assert operations(server)["write"] == 0


@pytest.mark.parametrize("seed", range(20))
def test_garbage_ends_the_connection_and_not_the_server(server: Server, connect: Connect, seed: int) -> None:
    source = random.Random(seed)
    client = connect()
    if seed % 2:
        client.begin()
    with contextlib.suppress(ConnectionError, AssertionError, BrokenPipeError):
        for _ in range(50):
            payload = source.randbytes(source.choice([0, 4, 8, 12, 40, 72, 4096]))
            files = [client.descriptor] * source.choice([0, 0, 1, 2])
            request = source.choice([*range(1, 40), 1 << 31])
            if request not in {1, 11, 15, 17, 24}:
                client.send(request, payload, *files)
        client.socket.shutdown(1)
        while client.socket.recv(PAGE):
            pass
    healthy = connect()
    healthy.begin()
    assert healthy.request(virtio.READ, 0, room=PAGE)[0] == virtio.OK


def test_a_guest_whose_memory_shrinks_costs_its_own_connection(tmp_path: Path) -> None:
    """Accessing the removed pages causes SIGBUS. The server process, which serves only this guest, ends."""
    server = Server(tmp_path, "--unmounted", "--profile", "hdd-7200")
    try:
        server.ask("offer", socket=str(tmp_path / "guest"), serial="x")
        client = Client(tmp_path / "guest")
        client.begin()
        os.ftruncate(client.descriptor, 0)
        os.eventfd_write(client.kick, 1)
        server.process.wait(LIMIT_S)
        client.socket.close()
    finally:
        server.end()


def test_it_is_offered_once(server: Server, tmp_path: Path) -> None:
    assert "offered already" in server.ask("offer", socket=str(tmp_path / "other"), serial="x")["error"]
    assert server.ready["fidelity"]["verdict"] == "unmeasured"


def test_a_path_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    server = Server(tmp_path, "--unmounted")
    try:
        assert "cannot offer" in server.ask("offer", socket=str(tmp_path / "mine"), serial="x")["error"]
        assert server.ask("offer", socket=str(tmp_path / "guest"), serial="x") == {"ok": True}
    finally:
        server.end()
    assert (tmp_path / "mine").read_text() == "precious"


def test_its_socket_goes_with_it(server: Server, tmp_path: Path) -> None:
    assert (tmp_path / "guest").is_socket()
    server.ask("shutdown")
    assert server.process.wait(LIMIT_S) == 0
    assert not (tmp_path / "guest").exists()
    assert not server.directory.exists()
