"""A machine's connection to the scheduler: a Dask worker without privileges. ``python -m fslab.fleet.link``.

Its one task is to name an assignment to the agent, and to wait until the agent says that it is over. Whoever has a
certificate of the fleet can make a Dask worker run other code, so this process has no access to anything else: what an
assignment may do is decided by the agent. Runs in the directory that the agent made for it.
"""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

from fslab.cell import Frozen
from fslab.fleet import confined, dask_settings
from fslab.system import syscalls

SOCKET = "agent.sock"
SOCKET_VARIABLE = "FSLAB_FLEET_AGENT"  # the task is run by another import of this module


class LinkSettings(Frozen):
    """``scheduler``: host:port; ``agent``: its process id; ``port``: to listen on, 0: any."""

    scheduler: str
    machine: str
    agent: int
    port: int = 0


def measure(assignment: str) -> str:
    """The task: the assignment's status when it is over."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(os.environ[SOCKET_VARIABLE])
        agent.sendall(json.dumps({"assignment": assignment}).encode() + b"\n")
        with agent.makefile("r", encoding="utf-8") as answer:
            return answer.readline(4096).strip()


async def serve(settings: LinkSettings) -> None:
    """Be a worker until the scheduler is gone."""
    import dask  # noqa: PLC0415 - takes a second
    from distributed import Worker  # noqa: PLC0415

    class RareWorker(Worker):
        """The scheduler asks few workers for a heartbeat twice a second: half of what all this takes of a CPU."""

        async def heartbeat(self) -> None:
            await super().heartbeat()
            self.periodic_callbacks["heartbeat"].callback_time = dask_settings.HEARTBEAT_S * 1000

    with dask.config.set(dask_settings.SETTINGS):
        worker = RareWorker(
            f"tls://{settings.scheduler}",
            name=settings.machine,
            nthreads=1,
            resources={dask_settings.SLOT: 1},
            security=dask_settings.security(),
            memory_limit=0,
            local_directory=str(Path.cwd()),
            heartbeat_interval=f"{dask_settings.HEARTBEAT_S:g}s",
            dashboard_address=dask_settings.NO_PAGES,
            death_timeout=60,
            port=settings.port,
        )
        async with worker:
            await worker.finished()  # type: ignore[no-untyped-call]


def main() -> None:
    """Read the settings of the current directory and serve."""
    settings = LinkSettings.model_validate_json(Path("settings.json").read_bytes())
    syscalls.die_with(settings.agent, signal.SIGKILL)
    confined.limit_itself()
    os.environ[SOCKET_VARIABLE] = f"/proc/self/cwd/{SOCKET}"  # short, as names of sockets are
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
