"""The dispatching process: runs dask.distributed's scheduler and submits assignments to it.

Run as ``python -m fslab.fleet.dispatching``, in the directory that ``fslab fleet scheduler`` made for it. Each line of
standard input contains the open assignments (``{assignment: machine}``). Dask provides the connected machines. The
process never reads what a task returns. Anyone with a certificate of the fleet can run code here too, so the process
has no privileges and no access to the database.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from fslab.cell import Frozen
from fslab.fleet import confined, dask_settings, link
from fslab.system import memory, syscalls

LONGEST_LINE = 64 << 20
MEMORY_BYTES = 2 << 30  # enough for 1,000 machines; on a larger host half of its memory
# By assignment: Dask's future, and the address of the link that runs it.
_Submitted = dict[str, tuple[Any, str]]


class DispatchSettings(Frozen):
    """``parent``: process id of ``fslab fleet scheduler``."""

    host: str
    port: int
    parent: int


async def serve(settings: DispatchSettings) -> None:
    """Schedule and dispatch until the process is ended."""
    import dask  # noqa: PLC0415 - takes a second
    from distributed import Client, Scheduler  # noqa: PLC0415

    with dask.config.set(dask_settings.SETTINGS):
        security = dask_settings.security()
        options = {"host": settings.host, "port": settings.port, "protocol": "tls", "security": security}
        async with Scheduler(
            **options, dashboard=False, dashboard_address=dask_settings.NO_PAGES
        ) as scheduler:
            print(f"listening at {scheduler.address}", flush=True)
            to_itself = Client(scheduler.address, security=security, asynchronous=True)  # type: ignore[no-untyped-call]
            async with to_itself as client:
                await _dispatch(scheduler, client)


async def _dispatch(scheduler: Any, client: Any) -> None:
    submitted: _Submitted = {}
    lines = asyncio.StreamReader(limit=LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await lines.readline():
        there = {worker.name: worker.address for worker in scheduler.workers.values()}
        _submit(client, json.loads(line), there, submitted)


def _submit(client: Any, wanted: dict[str, str], there: dict[str, str], submitted: _Submitted) -> None:
    """Submit new assignments to connected machines, and release the tasks of assignments that ended.

    A task is submitted again if it ended but its assignment did not (the agent or its link was killed), or if its link
    has disconnected (Dask would wait for that address forever).
    """
    for name, (future, address) in list(submitted.items()):
        if name not in wanted or future.done() or there.get(wanted[name]) != address:
            del submitted[name]
            future.release()
    for name, machine in wanted.items():
        if name not in submitted and machine in there:
            future = client.submit(
                link.measure, name, key=f"assignment-{name}-{there[machine]}", pure=False, retries=0,
                workers=[there[machine]], allow_other_workers=False, resources={dask_settings.SLOT: 1},
            )  # fmt: skip
            submitted[name] = (future, there[machine])


def main() -> None:
    """Read the settings of the current directory and serve."""
    settings = DispatchSettings.model_validate_json(Path("settings.json").read_bytes())
    syscalls.die_with(settings.parent, signal.SIGKILL)
    confined.limit_itself(max(MEMORY_BYTES, (memory.total_bytes() or 0) // 2))
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
