"""The management console of User-Mode Linux: a datagram socket that takes commands even while the guest is stuck.

Each request has one reply (arch/um/drivers/mconsole.h, version 2), in one or more datagrams.
"""

import os
import socket
import struct
from pathlib import Path

from fslab.errors import GuestError
from fslab.system.files import opened

HEADER = struct.Struct("=III")
MAGIC, VERSION, MAX_DATA = 0xCAFEBABE, 2, 512
TIMEOUT_S = 20.0


def ask(path: Path, command: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """Return the console's reply to a command. GuestError if it reports an error or does not answer."""
    data = command.encode()
    if len(data) >= MAX_DATA:
        raise GuestError(f"a console command has at most {MAX_DATA - 1} bytes", where=command)
    try:
        with (
            opened(path.parent, os.O_PATH | os.O_DIRECTORY) as directory,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client,
        ):
            client.settimeout(timeout_s)
            client.bind("")  # an abstract name, for the reply
            # Through the descriptor, because a socket's path has at most 107 bytes.
            short = f"/proc/self/fd/{directory}/{path.name}"
            client.sendto(HEADER.pack(MAGIC, VERSION, len(data)) + data.ljust(MAX_DATA, b"\0"), short)
            return _reply(client, command)
    except OSError as error:
        raise GuestError(f"the guest's management console does not answer: {error}", where=command) from error


def _reply(client: socket.socket, command: str) -> str:
    said, more = b"", 1
    while more:
        answer = client.recv(4096)
        failed, more, length = HEADER.unpack_from(answer)
        said += answer[HEADER.size : HEADER.size + length].rstrip(b"\0")
        if failed:
            text = said.decode("utf-8", "replace").strip()
            raise GuestError(f"the guest's management console reports an error: {text}", where=command)
    return said.decode("utf-8", "replace")
