"""The guest's side of a virtio disk over vhost-user, for tests: memory, one virtqueue, and single requests."""

from __future__ import annotations

import array
import mmap
import os
import select
import socket
import struct
from pathlib import Path

from tests.limits import LIMIT_S

MEMORY = 8 << 20
GUEST_BASE = 1 << 30  # guest physical address of the memory
USER_BASE = 1 << 40  # user address of the memory, which vhost-user uses for the rings
DESCRIPTORS, AVAILABLE, USED, HEADER, STATUS, DATA = 0, 0x1000, 0x2000, 0x3000, 0x3100, 0x10000
QUEUE = 8
NEXT, WRITABLE, INDIRECT = 1, 2, 4
READ, WRITE, FLUSH, GET_ID, DISCARD, WRITE_ZEROES = 0, 1, 4, 8, 11, 13
OK, FAILED, UNSUPPORTED = 0, 1, 2
PROTOCOL_FEATURES = 1 << 30


class Client:
    """One connection. ``regions``: size of the memory table, of which one is used, as User-Mode Linux sends it."""

    def __init__(self, path: Path, *, regions: int = 1) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(str(path))
        self.descriptor = os.memfd_create("guest")
        os.ftruncate(self.descriptor, MEMORY)
        self.memory = mmap.mmap(self.descriptor, MEMORY)
        self.kick, self.call = os.eventfd(0), os.eventfd(0)
        self.regions, self.index, self.used = regions, 0, 0

    def send(self, request: int, payload: bytes = b"", *descriptors: int, reply: bool = False) -> bytes:
        header = struct.pack("<III", request, 1 | (8 if reply else 0), len(payload))
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        )
        self.socket.sendmsg([header + payload], rights)
        return self.reply() if reply or request in {1, 11, 15, 17, 24} else b""

    def reply(self) -> bytes:
        head = self.socket.recv(12, socket.MSG_WAITALL)
        if len(head) < 12:
            raise ConnectionError("the server hung up")
        _, _, size = struct.unpack("<III", head)
        return self.socket.recv(size, socket.MSG_WAITALL)

    def number(self, request: int) -> int:
        return int(struct.unpack("<Q", self.send(request))[0])

    def configuration(self) -> bytes:
        return self.send(24, struct.pack("<III", 0, 60, 0) + bytes(60))[12:]

    def begin(self) -> None:
        """Negotiate features, share the memory, and set up and enable the queue."""
        features = self.number(1)
        self.send(3)
        self.send(16, struct.pack("<Q", self.number(15)))
        region = struct.pack("<QQQQ", GUEST_BASE, MEMORY, USER_BASE, 0)
        table = struct.pack("<II", 1, 0) + region.ljust(self.regions * 32, b"\0")
        assert self.send(5, table, self.descriptor, reply=True) == bytes(8)
        self.send(2, struct.pack("<Q", features))
        self.send(8, struct.pack("<II", 0, QUEUE))
        self.send(10, struct.pack("<II", 0, 0))
        places = (USER_BASE + DESCRIPTORS, USER_BASE + USED, USER_BASE + AVAILABLE)
        assert self.send(9, struct.pack("<IIQQQQ", 0, 0, *places, 0), reply=True) == bytes(8)
        self.send(13, struct.pack("<Q", 0), self.call)
        self.send(12, struct.pack("<Q", 0), self.kick)
        assert self.send(18, struct.pack("<II", 0, 1), reply=True) == bytes(8)

    def describe(self, number: int, address: int, length: int, flags: int, after: int = 0) -> None:
        entry = struct.pack("<QIHH", address, length, flags, after)
        self.memory[DESCRIPTORS + 16 * number : DESCRIPTORS + 16 * (number + 1)] = entry

    def submit(self, head: int = 0) -> None:
        """Make a descriptor chain available and notify the server (kick)."""
        slot = AVAILABLE + 4 + 2 * (self.index % QUEUE)
        self.memory[slot : slot + 2] = struct.pack("<H", head)
        self.index += 1
        self.memory[AVAILABLE + 2 : AVAILABLE + 4] = struct.pack("<H", self.index & 0xFFFF)
        os.eventfd_write(self.kick, 1)

    def finished(self) -> bool:
        """Wait until the server has used one more descriptor chain.

        Returns False if the server closes the connection, or after LIMIT_S seconds.
        """
        poller = select.poll()
        poller.register(self.call, select.POLLIN)
        poller.register(self.socket, select.POLLIN | select.POLLHUP)
        while self._used() == self.used:
            events = dict(poller.poll(LIMIT_S * 1000))
            if self.call in events:
                os.eventfd_read(self.call)
            else:
                return False
        self.used += 1
        return True

    def _used(self) -> int:
        return int(struct.unpack("<H", self.memory[USED + 2 : USED + 4])[0])

    def request(self, kind: int, sector: int = 0, *, data: bytes = b"", room: int = 0) -> tuple[int, bytes]:
        """Send one virtio-blk request and wait for it. Return its status, and ``room`` bytes of data."""
        self.memory[HEADER : HEADER + 16] = struct.pack("<IIQ", kind, 0, sector)
        self.memory[DATA : DATA + len(data)] = data
        self.memory[STATUS] = 0xFF
        self.describe(0, GUEST_BASE + HEADER, 16, NEXT, 1)
        length = len(data) or room
        if length:
            self.describe(1, GUEST_BASE + DATA, length, NEXT | (0 if data else WRITABLE), 2)
        self.describe(2 if length else 1, GUEST_BASE + STATUS, 1, WRITABLE)
        self.submit()
        assert self.finished()
        return self.memory[STATUS], bytes(self.memory[DATA : DATA + room])

    def close(self) -> None:
        self.socket.close()
        self.memory.close()
        for descriptor in (self.descriptor, self.kick, self.call):
            os.close(descriptor)
