"""A machine's connection to the scheduler: a Dask worker without privileges. ``python -m fslab.fleet.link``.

Its only task is to name an assignment to the agent and to wait until the agent reports its end. Anyone with a
certificate of the fleet can run other code in a Dask worker. Therefore this process has no access to anything else: the
agent decides what an assignment may do. Runs in the directory that the agent made for it.
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
MEMORY_BYTES = 2 << 30  # a link takes about 0.1 GiB
SOCKET_VARIABLE = "FSLAB_FLEET_AGENT"  # for the task, which runs in another import of this module


class LinkSettings(Frozen):
    """``scheduler``: host:port. ``agent``: the agent's process id. ``port``: the port to listen on; 0: any."""

    scheduler: str
    machine: str
    agent: int
    port: int = 0


def measure(assignment: str) -> str:
    """The task that Dask runs: have the agent run an assignment, and wait for its end. Returns the agent's answer."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(os.environ[SOCKET_VARIABLE])
        agent.sendall(json.dumps({"assignment": assignment}).encode() + b"\n")
        with agent.makefile("r", encoding="utf-8") as answer:
            return answer.readline(4096).strip()


async def serve(settings: LinkSettings) -> None:
    """Run a Dask worker until the connection to the scheduler is lost."""
    import dask  # noqa: PLC0415 - takes a second
    from distributed import Worker  # noqa: PLC0415

    class RareWorker(Worker):
        """A worker with a heartbeat every ``HEARTBEAT_S``. With few workers the scheduler asks for two per second,
        which would take half of the CPU time of this process."""

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
    confined.limit_itself(MEMORY_BYTES)
    os.environ[SOCKET_VARIABLE] = f"/proc/self/cwd/{SOCKET}"  # short: a socket's path has at most 107 bytes
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
