"""Listens and answers (uvicorn), and says where. The socket is bound first, so that the address printed is true."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import uvicorn

from fslab.report.sources import Voices
from fslab.serve.app import application
from fslab.serve.guard import Access
from fslab.system import paths


def run(
    url: str | None, *, host: str, port: int, names: Sequence[str], is_running: Callable[[str], bool],
    announce: Callable[[str], object], voices: Voices,
) -> None:  # fmt: skip
    """Serve until a signal; OSError if the address cannot be listened on."""
    access = Access.of(host, names)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)  # from here on nobody is refused, even while we are still starting
        shown = f"[{host}]" if family is socket.AF_INET6 else host
        query = f"?token={access.token}" if access.token else ""
        announce(f"http://{shown}:{listening.getsockname()[1]}/{query}")
        config = uvicorn.Config(
            application(url, access, is_running, paths.cache(), voices), log_level="warning", server_header=False,
            timeout_graceful_shutdown=1, lifespan="off",
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
