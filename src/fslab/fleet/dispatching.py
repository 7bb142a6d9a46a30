"""The scheduler of a fleet: dask.distributed's, and what submits assignments to it. ``python -m
fslab.fleet.dispatching``.

Each line of standard input says what is to be done (``{assignment: machine}``), Dask who is there. It never reads what
a task returns. Whoever has a certificate of the fleet can run code here too, so it has no privileges and knows no
database. Runs in the directory that ``fslab fleet scheduler`` made for it.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from fslab.cell import Frozen
from fslab.fleet import confined, dask_settings, link
from fslab.system import syscalls

LONGEST_LINE = 64 << 20
# By assignment: what Dask knows it by, and the address of the link that it is for.
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
    """Submit what is not submitted yet to machines that are there, and forget what is over.

    Submitted again is a task that ended although its assignment did not (the agent or its link was killed), and one for
    a link that is gone: Dask would wait for its address for ever.
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
    confined.limit_itself()
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
